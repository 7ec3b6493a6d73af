//! Expressions over one whole object, outside of any schema: rules attached to objects of any kind.

use serde_json::Value;

use crate::cel::Program;
use crate::cel::eval::{Budget, Failure};
use crate::cel::lower;
use crate::cel::value::Val;

/// A compiled expression that sees `object`, and `result` if there is one.
#[derive(Debug)]
pub struct Expression(Program);

impl Expression {
    /// Compiles an expression. The error says what is wrong with it.
    pub fn compile(source: &str) -> Result<Self, String> {
        let names = lower::Names { this: "object", other: "result" };
        Program::compile_with(source, names).map(Self)
    }

    /// Whether it holds. Anything but a truth value is an error.
    pub fn truth(&self, object: &Value, result: Option<&Value>) -> Result<bool, String> {
        self.run(object, result, |value| if let Val::Bool(truth) = value { Some(*truth) } else { None })?
            .ok_or_else(|| "the expression gives no bool".to_owned())
    }

    /// The text it gives. Anything else is an error.
    pub fn text(&self, object: &Value, result: Option<&Value>) -> Result<String, String> {
        self.run(
            object,
            result,
            |value| if let Val::Str(text) = value { Some(text.to_string()) } else { None },
        )?
        .ok_or_else(|| "the expression gives no string".to_owned())
    }

    fn run<T>(
        &self,
        object: &Value,
        result: Option<&Value>,
        read: impl FnOnce(&Val<'_>) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let mut budget = Budget::new();
        let result = result.map(|result| Val::of(result, None));
        match self.0.run(Val::of(object, None), result, &mut budget) {
            Ok(value) => Ok(read(&value)),
            Err(Failure::Error(error)) => Err(error),
            Err(Failure::Exhausted) => Err("the expression takes too many steps".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions_see_the_object_and_the_result() {
        let object = json!({"status": {"n": 2, "conditions": [{"type": "Ready", "status": "True"}]}});
        let ready = "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')";
        assert_eq!(Expression::compile(ready).unwrap().truth(&object, None), Ok(true));
        let says = Expression::compile("result ? 'n is ' + string(object.status.n) : 'no'").unwrap();
        assert_eq!(says.text(&object, Some(&json!(true))).unwrap(), "n is 2");
        assert!(says.text(&object, None).is_err(), "there is no result");
        assert!(says.truth(&object, Some(&json!(true))).is_err(), "a text is no truth");
        assert!(Expression::compile("self.status").is_err(), "that name belongs to schemas");
        assert!(Expression::compile("object.").is_err());
    }
}
