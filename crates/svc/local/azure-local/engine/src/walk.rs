//! Places in a body: `properties.subnets[].properties.addressPrefix`.

use serde_json::{Map, Value};

/// Calls `visit` with the exact place and the value of every match of a path. Absent members and `null` are not visited;
/// neither is what lies below a value of another kind: the member's own check reports that.
pub fn visit<'a>(value: &'a Value, path: &str, visit: &mut dyn FnMut(&str, &'a Value)) {
    descend(value, String::new(), path, visit);
}

/// The same for the members of an object.
pub fn visit_object<'a>(body: &'a Map<String, Value>, path: &str, visit: &mut dyn FnMut(&str, &'a Value)) {
    let (name, below) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
    if let Some(member) = body.get(name) {
        descend(member, name.to_owned(), below, visit);
    }
}

fn descend<'a>(value: &'a Value, place: String, rest: &str, visit: &mut dyn FnMut(&str, &'a Value)) {
    if value.is_null() {
        return;
    }
    let Some(rest) = (!rest.is_empty()).then_some(rest) else { return visit(&place, value) };
    if let Some(rest) = rest.strip_prefix("[]") {
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        for (index, item) in items.iter().enumerate() {
            descend(item, format!("{place}[{index}]"), rest, visit);
        }
        return;
    }
    let rest = rest.strip_prefix('.').unwrap_or(rest);
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    let (name, below) = rest.split_at(end);
    if let Some(member) = value.get(name) {
        let place = if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
        descend(member, place, below, visit);
    }
}

/// The same for values that are changed in place.
pub fn visit_mut(value: &mut Value, path: &str, visit: &mut dyn FnMut(&mut Value)) {
    if value.is_null() {
        return;
    }
    if path.is_empty() {
        return visit(value);
    }
    if let Some(rest) = path.strip_prefix("[]") {
        for item in value.as_array_mut().into_iter().flatten() {
            visit_mut(item, rest, visit);
        }
        return;
    }
    let rest = path.strip_prefix('.').unwrap_or(path);
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    let (name, below) = rest.split_at(end);
    if let Some(member) = value.get_mut(name) {
        visit_mut(member, below, visit);
    }
}

/// The parents of a path's last member: where a required member must be.
pub fn split_last(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn places(value: &Value, path: &str) -> Vec<String> {
        let mut found = Vec::new();
        visit(value, path, &mut |place, _| found.push(place.to_owned()));
        found
    }

    #[test]
    fn every_match_of_a_path_is_visited_with_its_place() {
        let body = json!({"a": {"b": [{"c": 1}, {"d": 2}, {"c": null}, {"c": 3}]}});
        assert_eq!(places(&body, "a.b[].c"), ["a.b[0].c", "a.b[3].c"]);
        assert_eq!(places(&body, "a"), ["a"]);
        assert_eq!(places(&json!([1, 2]), "[]"), ["[0]", "[1]"]);
    }

    #[test]
    fn values_of_another_kind_are_passed_over() {
        for body in [json!(null), json!(1), json!("a"), json!({"a": 1}), json!({"a": {"b": "x"}})] {
            assert!(places(&body, "a.b[].c").is_empty(), "{body}");
        }
    }

    #[test]
    fn matches_can_be_changed_in_place() {
        let mut body = json!({"a": [{"b": 1}, {"b": 2}]});
        visit_mut(&mut body, "a[].b", &mut |value| *value = json!(0));
        assert_eq!(body, json!({"a": [{"b": 0}, {"b": 0}]}));
    }
}
