//! Columns of tables: what a definition asks for, and one cell of an object.

use serde_json::Value;

use crate::cel::functions::strings::shown_double as double;
use crate::json_path::JsonPath;

/// One column of a table: the name, or one of `additionalPrinterColumns`.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    /// As written in the definition.
    pub json_path: String,
    /// The parsed path. `None` when it is not understood: such a column is empty.
    path: Option<JsonPath>,
}

// Wire constants: upstream shows the descriptions of the built-in fields.
const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const AGE_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

impl Column {
    fn new(name: &str, kind: &str, format: &str, description: &str, priority: i64, json_path: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            format: format.to_owned(),
            description: description.to_owned(),
            priority,
            json_path: json_path.to_owned(),
            path: JsonPath::parse(json_path),
        }
    }
}

/// The columns of one version of a definition: the name, and what it asks for or else the age.
pub(crate) fn columns(version: &Value) -> Vec<Column> {
    let mut columns = vec![Column::new("Name", "string", "name", NAME_DESCRIPTION, 0, ".metadata.name")];
    let asked = version.get("additionalPrinterColumns").and_then(Value::as_array);
    match asked.filter(|asked| !asked.is_empty()) {
        Some(asked) => columns.extend(asked.iter().map(column)),
        None => {
            columns.push(Column::new("Age", "date", "", AGE_DESCRIPTION, 0, ".metadata.creationTimestamp"));
        }
    }
    columns
}

fn column(asked: &Value) -> Column {
    let text = |key: &str| asked.get(key).and_then(Value::as_str).unwrap_or_default();
    let json_path = text("jsonPath");
    let described = format!("Custom resource definition column (in JSONPath format): {json_path}");
    let description = if text("description").is_empty() { &described } else { text("description") };
    let priority = asked.get("priority").and_then(Value::as_i64).unwrap_or_default();
    Column::new(text("name"), text("type"), text("format"), description, priority, json_path)
}

/// What the column shows of an object. A cell of kind `date` holds the timestamp as it is stored (a string, or null
/// when there is none): the server turns it into an age.
pub fn cell(object: &Value, column: &Column) -> Value {
    let found = column.path.as_ref().map(|path| path.find(object)).unwrap_or_default();
    let Some(value) = found.first() else { return Value::Null };
    match (column.kind.as_str(), value) {
        ("integer", Value::Number(number)) => {
            number.as_i64().or_else(|| number.as_f64().map(|f| f as i64)).into()
        }
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) | ("date", Value::String(_)) => {
            (*value).clone()
        }
        ("string", value) => Value::String(text(value)),
        _ => Value::Null,
    }
}

/// A value as text: scalars plain, the rest as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<no value>".to_owned(),
        Value::Number(number) if number.is_f64() => double(number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_show_what_upstream_shows() {
        let object = json!({"spec": {"s": "text", "i": 7, "f": 1.5, "b": true, "arr": ["a", "b"], "o": {"x": 1},
            "ia": [1, 2], "nl": null}});
        // Recorded from a real server.
        for (kind, path, shown) in [
            ("string", ".spec.s", json!("text")),
            ("integer", ".spec.i", json!(7)),
            ("number", ".spec.f", json!(1.5)),
            ("boolean", ".spec.b", json!(true)),
            ("string", ".spec.arr", json!(r#"["a","b"]"#)),
            ("string", ".spec.o", json!(r#"{"x":1}"#)),
            ("string", ".spec.arr[*]", json!("a")),
            ("string", ".spec.i", json!("7")),
            ("string", ".spec.b", json!("true")),
            ("string", ".spec.f", json!("1.5")),
            ("integer", ".spec.s", Value::Null),
            ("integer", ".spec.f", json!(1)),
            ("number", ".spec.i", json!(7)),
            ("boolean", ".spec.s", Value::Null),
            ("integer", ".spec.ia", Value::Null),
            ("integer", ".spec.ia[*]", json!(1)),
            ("string", ".spec.nl", json!("<no value>")),
            ("string", ".spec.missing", Value::Null),
            ("string", ".spec['s", Value::Null),
        ] {
            assert_eq!(cell(&object, &Column::new("C", kind, "", "", 0, path)), shown, "{kind} {path}");
        }
    }

    #[test]
    fn a_definition_without_columns_shows_name_and_age() {
        let names: Vec<_> = columns(&json!({})).into_iter().map(|column| column.name).collect();
        assert_eq!(names, ["Name", "Age"]);
        let asked = json!({"additionalPrinterColumns": [{"name": "X", "type": "string", "jsonPath": ".x"}]});
        let columns = columns(&asked);
        assert_eq!(columns.len(), 2);
        assert_eq!(columns[1].description, "Custom resource definition column (in JSONPath format): .x");
    }
}
