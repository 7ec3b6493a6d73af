//! What differs between two values.

use std::fmt;

use serde_json::Value;

/// One difference, where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub path: String,
    pub ours: Option<Value>,
    pub real: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show =
            |value: &Option<Value>| value.as_ref().map_or_else(|| "(nothing)".to_owned(), Value::to_string);
        write!(f, "{}\n      ours {}\n      real {}", self.path, show(&self.ours), show(&self.real))
    }
}

/// Every difference, each at the deepest place where it shows.
pub fn differences(path: &str, ours: &Value, real: &Value, found: &mut Vec<Difference>) {
    let mut push = |path: String, ours: Option<&Value>, real: Option<&Value>| {
        found.push(Difference { path, ours: ours.cloned(), real: real.cloned() });
    };
    match (ours, real) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a {
                let inner = join(path, name);
                match b.get(name) {
                    Some(other) => differences(&inner, value, other, found),
                    None => found.push(Difference { path: inner, ours: Some(value.clone()), real: None }),
                }
            }
            for (name, value) in b.iter().filter(|(name, _)| !a.contains_key(*name)) {
                found.push(Difference { path: join(path, name), ours: None, real: Some(value.clone()) });
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (one, other)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{index}]"), one, other, found);
            }
        }
        (a, b) if a != b => push(path.to_owned(), Some(a), Some(b)),
        _ => {}
    }
}

fn join(path: &str, name: &str) -> String {
    if name.contains(['.', '[', '/']) { format!("{path}[{name}]") } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_shown_where_they_are() {
        let mut found = Vec::new();
        let ours = json!({"a": {"b": [1, {"c": 2}]}, "x.y/z": 1, "same": true});
        let real = json!({"a": {"b": [1, {"c": 3}]}, "d": null, "same": true});
        differences("body", &ours, &real, &mut found);
        let paths: Vec<&str> = found.iter().map(|difference| difference.path.as_str()).collect();
        assert_eq!(paths, ["body.a.b[1].c", "body[x.y/z]", "body.d"]);
    }
}
