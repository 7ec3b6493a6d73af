//! Conversion between versions with the strategy `None`: only the version's name changes.

use serde_json::Value;

/// Makes the object one of another version of its type. What is no object stays as it is.
pub fn convert(object: &mut Value, api_version: &str) {
    if let Value::Object(members) = object {
        members.insert("apiVersion".to_owned(), Value::String(api_version.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_version_changes() {
        let mut object = json!({"apiVersion": "a/v1", "kind": "K", "spec": {"x": 1}});
        convert(&mut object, "a/v2");
        assert_eq!(object, json!({"apiVersion": "a/v2", "kind": "K", "spec": {"x": 1}}));
    }
}
