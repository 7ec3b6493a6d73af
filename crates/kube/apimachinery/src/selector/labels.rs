//! Requirements on labels.

use std::fmt;

use serde_json::Value;

use super::parse;
use super::syntax::{label_key_problems, label_value_problems};
use crate::status::{FieldError, aggregate};

/// Which labels an object must carry. Requirements are kept in the order of their keys; all must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equals,
    DoubleEquals,
    NotEquals,
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl LabelSelector {
    /// Reads `a=b,c!=d,e in (x,y),f notin (x),g,!h,i>1`. An empty text selects everything.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse::requirements(text).map(Self::of)
    }

    /// Reads a `metav1.LabelSelector` object. Null or `{}` selects everything: what an absent selector means is the
    /// caller's to say. Field names in errors are relative to the selector.
    pub fn from_object(selector: &Value) -> Result<Self, Vec<FieldError>> {
        let mut requirements = Vec::new();
        let mut errors = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            let wrong = |text: &str| {
                let text = text.to_owned();
                move |problem| FieldError::invalid("matchLabels", text.clone(), problem)
            };
            errors.extend(label_key_problems(key).into_iter().map(wrong(key)));
            errors.extend(label_value_problems(value).into_iter().map(wrong(value)));
            requirements.push(Requirement {
                key: key.clone(),
                operator: Operator::Equals,
                values: vec![value.to_owned()],
            });
        }
        let expressions = selector.get("matchExpressions").and_then(Value::as_array);
        for (index, expression) in expressions.into_iter().flatten().enumerate() {
            match Requirement::from_object(expression, &format!("matchExpressions[{index}]")) {
                Ok(requirement) => requirements.push(requirement),
                Err(found) => errors.extend(found),
            }
        }
        if errors.is_empty() { Ok(Self::of(requirements)) } else { Err(errors) }
    }

    fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements }
    }

    /// Selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether labels, looked up by key, satisfy every requirement.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.holds(get(&requirement.key)))
    }
}

impl Requirement {
    /// Checks what the query grammar could read. The error is upstream's text.
    pub(super) fn checked(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, String> {
        let mut errors = Vec::new();
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (index, value) in values.iter().enumerate().filter(|(_, value)| integer(value).is_none()) {
                let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(FieldError::invalid(format!("values[{index}]"), &**value, detail));
            }
        }
        for (index, value) in values.iter().enumerate() {
            let problems = label_value_problems(value);
            if !problems.is_empty() {
                errors.push(FieldError::invalid(
                    format!("values[{index}][{key}]"),
                    &**value,
                    problems.join("; "),
                ));
            }
        }
        if errors.is_empty() {
            Ok(Self { key: key.to_owned(), operator, values })
        } else {
            Err(aggregate(&errors))
        }
    }

    fn from_object(expression: &Value, path: &str) -> Result<Self, Vec<FieldError>> {
        let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
        let values: Vec<String> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|value| value.as_str().unwrap_or_default().to_owned())
            .collect();
        let mut errors = Vec::new();
        let operator = match text("operator") {
            "In" => Some(Operator::In),
            "NotIn" => Some(Operator::NotIn),
            "Exists" => Some(Operator::Exists),
            "DoesNotExist" => Some(Operator::DoesNotExist),
            _ => None,
        };
        match operator {
            Some(Operator::In | Operator::NotIn) if values.is_empty() => errors.push(FieldError::required(
                format!("{path}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            Some(Operator::Exists | Operator::DoesNotExist) if !values.is_empty() => {
                errors.push(FieldError::forbidden(
                    format!("{path}.values"),
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ));
            }
            None => errors.push(FieldError::invalid(
                format!("{path}.operator"),
                text("operator"),
                "not a valid selector operator",
            )),
            Some(_) => {}
        }
        for problem in label_key_problems(text("key")) {
            errors.push(FieldError::invalid(format!("{path}.key"), text("key"), problem));
        }
        for (index, value) in values.iter().enumerate() {
            for problem in label_value_problems(value) {
                errors.push(FieldError::invalid(format!("{path}.values[{index}]"), &**value, problem));
            }
        }
        match operator {
            Some(operator) if errors.is_empty() => Ok(Self { key: text("key").to_owned(), operator, values }),
            _ => Err(errors),
        }
    }

    fn holds(&self, label: Option<&str>) -> bool {
        use Operator as O;
        let listed = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            O::Equals | O::DoubleEquals | O::In => label.is_some_and(listed),
            O::NotEquals | O::NotIn => !label.is_some_and(listed),
            O::Exists => label.is_some(),
            O::DoesNotExist => label.is_none(),
            O::GreaterThan | O::LessThan => {
                let bound = self.values.first().and_then(|value| integer(value));
                match (label.and_then(integer), bound) {
                    (Some(label), Some(bound)) if self.operator == O::GreaterThan => label > bound,
                    (Some(label), Some(bound)) => label < bound,
                    _ => false,
                }
            }
        }
    }
}

/// As Go's `ParseInt`: Rust's differs in nothing that matters here.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Operator as O;
        let key = &self.key;
        let mut values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        match self.operator {
            O::Equals => write!(f, "{key}={values}"),
            O::DoubleEquals => write!(f, "{key}=={values}"),
            O::NotEquals => write!(f, "{key}!={values}"),
            O::In => write!(f, "{key} in ({values})"),
            O::NotIn => write!(f, "{key} notin ({values})"),
            O::Exists => f.write_str(key),
            O::DoesNotExist => write!(f, "!{key}"),
            O::GreaterThan => write!(f, "{key}>{values}"),
            O::LessThan => write!(f, "{key}<{values}"),
        }
    }
}
