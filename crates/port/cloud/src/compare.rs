//! Whether a resource is already as wanted, and what to send if it is not.
//!
//! A reply holds more than a request: defaults, read-only members, ids of children. Only the members that the caller sets
//! are compared, and only they are changed.

use serde_json::{Map, Value};

/// Members that only the cloud sets.
const READ_ONLY: [&str; 6] = ["id", "name", "type", "etag", "systemData", "provisioningState"];

/// What a list of named parts, such as the rules of a security group, may hold besides the wanted ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lists {
    /// Nothing.
    Exact,
    /// Parts of others, which stay.
    Shared,
}

/// Whether every member of `wanted` is in `actual` with the same value. `null` and empty containers equal absence; resource
/// ids and locations compare without regard to case; lists without regard to order.
pub fn covers(actual: &Value, wanted: &Value) -> bool {
    covers_with(actual, wanted, Lists::Exact)
}

/// [`covers`] with a rule for lists of named parts.
pub(crate) fn covers_with(actual: &Value, wanted: &Value, lists: Lists) -> bool {
    covers_member("", actual, wanted, lists)
}

fn covers_member(key: &str, actual: &Value, wanted: &Value, lists: Lists) -> bool {
    match (actual, wanted) {
        (_, Value::Array(wanted)) if wanted.is_empty() && lists == Lists::Shared => true,
        (actual, wanted) if is_empty(wanted) => is_empty(actual) || wanted.is_null() || wanted.is_object(),
        (Value::Object(actual), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            covers_member(key, find(actual, key).unwrap_or(&Value::Null), wanted, lists)
        }),
        (Value::Array(actual), Value::Array(wanted)) => covers_list(actual, wanted, lists),
        (Value::String(actual), Value::String(wanted)) => same_text(key, actual, wanted),
        (Value::Number(actual), Value::Number(wanted)) => actual.as_f64() == wanted.as_f64(),
        (actual, wanted) => actual == wanted,
    }
}

/// Members of maps such as identities are resource ids, whose case the cloud may change.
fn find<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    let same = |name: &str| key.starts_with('/') && name.eq_ignore_ascii_case(key);
    object.get(key).or_else(|| object.iter().find(|(name, _)| same(name)).map(|(_, value)| value))
}

fn covers_list(actual: &[Value], wanted: &[Value], lists: Lists) -> bool {
    let shared = lists == Lists::Shared && are_named(wanted);
    if actual.len() != wanted.len() && !shared {
        return false;
    }
    let mut left: Vec<&Value> = actual.iter().collect();
    wanted.iter().all(|part| {
        // Removed when matched: two equal parts need two.
        let found =
            left.iter().position(|actual| same_name(actual, part) && covers_member("", actual, part, lists));
        found.map(|index| left.swap_remove(index)).is_some()
    })
}

fn are_named(parts: &[Value]) -> bool {
    !parts.is_empty() && parts.iter().all(|part| part.get("name").is_some_and(Value::is_string))
}

fn same_name(actual: &Value, wanted: &Value) -> bool {
    wanted.get("name").is_none_or(|name| actual.get("name") == Some(name))
}

fn same_text(key: &str, actual: &str, wanted: &str) -> bool {
    match key {
        "location" => place(actual).eq(place(wanted)),
        _ if wanted.starts_with('/') => actual.eq_ignore_ascii_case(wanted),
        _ => actual == wanted,
    }
}

/// `UK South` and `uksouth` are the same.
fn place(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| *c != ' ').map(|c| c.to_ascii_lowercase())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(parts) => parts.is_empty(),
        _ => false,
    }
}

/// The body of a PUT that changes only the wanted members: what the resource is, without what only the cloud sets, with the
/// wanted members over it. Lists are replaced as a whole.
pub fn overlay(actual: &Value, wanted: &Value) -> Value {
    overlay_with(actual, wanted, Lists::Exact)
}

/// [`overlay`] with a rule for lists of named parts.
pub(crate) fn overlay_with(actual: &Value, wanted: &Value, lists: Lists) -> Value {
    let mut body = actual.clone();
    strip(&mut body);
    if let Some(properties) = body.get_mut("properties") {
        strip(properties);
    }
    merge(&mut body, wanted, lists);
    body
}

fn strip(value: &mut Value) {
    if let Value::Object(members) = value {
        members.retain(|key, _| !READ_ONLY.contains(&key.as_str()));
    }
}

fn merge(body: &mut Value, wanted: &Value, lists: Lists) {
    match (body, wanted) {
        (Value::Object(body), Value::Object(wanted)) => {
            for (key, value) in wanted {
                match value {
                    Value::Null => {
                        body.remove(key);
                    }
                    value => merge(body.entry(key.clone()).or_insert(Value::Null), value, lists),
                }
            }
        }
        (Value::Array(body), Value::Array(wanted)) if lists == Lists::Shared && are_named(wanted) => {
            for part in wanted {
                match body.iter_mut().find(|existing| existing.get("name") == part.get("name")) {
                    Some(existing) => merge(existing, part, lists),
                    None => body.push(part.clone()),
                }
            }
        }
        (Value::Array(_), Value::Array(wanted)) if lists == Lists::Shared && wanted.is_empty() => {}
        (body, wanted) => *body = wanted.clone(),
    }
}

/// The provisioning state of a resource, if it has one.
pub(crate) fn provisioning_state(resource: &Value) -> Option<&str> {
    resource.pointer("/properties/provisioningState").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_members_that_are_set_are_compared() {
        let actual = json!({"id": "/x", "location": "uksouth", "tags": {"a": "1", "b": "2"},
            "properties": {"provisioningState": "Succeeded", "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}});
        assert!(covers(&actual, &json!({"location": "UK South", "tags": {"a": "1"}})));
        assert!(covers(
            &actual,
            &json!({"properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}})
        ));
        assert!(!covers(&actual, &json!({"tags": {"a": "2"}})));
        assert!(!covers(&actual, &json!({"properties": {"dhcpOptions": {"dnsServers": ["1.1.1.1"]}}})));
    }

    #[test]
    fn absence_equals_null_and_empty() {
        let actual = json!({"properties": {"present": ["x"]}});
        assert!(covers(&actual, &json!({"tags": {}, "zones": [], "properties": {"absent": null}})));
        assert!(!covers(&actual, &json!({"properties": {"present": []}})), "emptying a list is a change");
    }

    #[test]
    fn ids_compare_without_case_and_other_texts_with_it() {
        let actual = json!({"nsg": {"id": "/subscriptions/S/resourceGroups/g"}, "name": "A"});
        assert!(covers(&actual, &json!({"nsg": {"id": "/subscriptions/s/resourcegroups/G"}})));
        assert!(!covers(&actual, &json!({"name": "a"})));
    }

    #[test]
    fn lists_of_named_parts_and_scalars_have_no_order() {
        let actual = json!([{"name": "b", "properties": {"p": 1, "q": 2}}, {"name": "a"}]);
        assert!(covers(&actual, &json!([{"name": "a"}, {"name": "b", "properties": {"p": 1}}])));
        assert!(!covers(&actual, &json!([{"name": "a"}])), "a part that is not wanted is a difference");
        assert!(covers(&json!(["2", "1"]), &json!(["1", "2"])));
        let servers = json!([{"nsdname": "b."}, {"nsdname": "a."}]);
        assert!(covers(&servers, &json!([{"nsdname": "a."}, {"nsdname": "b."}])));
        assert!(!covers(&json!(["1", "1"]), &json!(["1", "2"])));
    }

    #[test]
    fn parts_of_others_stay_in_a_shared_list() {
        let actual = json!({"rules": [{"name": "theirs", "p": 1}, {"name": "ours", "p": 1}]});
        let same = json!({"rules": [{"name": "ours", "p": 1}]});
        let other = json!({"rules": [{"name": "ours", "p": 2}, {"name": "new"}]});
        assert!(covers_with(&actual, &same, Lists::Shared) && !covers(&actual, &same));
        assert!(!covers_with(&actual, &other, Lists::Shared));
        let body = overlay_with(&actual, &other, Lists::Shared);
        assert_eq!(
            body,
            json!({"rules": [{"name": "theirs", "p": 1}, {"name": "ours", "p": 2}, {"name": "new"}]})
        );
        let none = json!({"rules": []});
        assert!(covers_with(&actual, &none, Lists::Shared));
        assert_eq!(overlay_with(&actual, &none, Lists::Shared), actual);
    }

    #[test]
    fn an_update_keeps_what_it_does_not_set() {
        let actual = json!({"id": "/v", "etag": "e", "location": "uksouth", "tags": {"theirs": "1"},
            "properties": {"provisioningState": "Succeeded", "subnets": [{"name": "s"}], "flow": 4}});
        let body = overlay(&actual, &json!({"tags": {"ours": "1"}, "properties": {"flow": null}}));
        assert_eq!(
            body,
            json!({"location": "uksouth", "tags": {"theirs": "1", "ours": "1"},
            "properties": {"subnets": [{"name": "s"}]}})
        );
        assert!(covers(&body, &json!({"tags": {"ours": "1"}})));
    }
}
