//! Whether a body and a name are what their type allows. Pure.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::refusal::Refusal;
use crate::spec::{Member, MemberKind, NameShape, Naming};
use crate::walk;

/// Checks the members of a body that its type names, and writes texts of closed sets in the case of the set.
pub fn members(body: &mut Value, members: &[Member]) -> Result<(), Refusal> {
    for member in members {
        if member.required {
            required(body, member.path)?;
        }
        let mut problem = None;
        walk::visit(body, member.path, &mut |place, value| {
            if problem.is_none() {
                problem = kind(value, member.kind).err().map(|detail| Refusal::member(place, &detail));
            }
        });
        if let Some(problem) = problem {
            return Err(problem);
        }
        if let MemberKind::OneOf(set) = member.kind {
            walk::visit_mut(body, member.path, &mut |value| canonical(value, set));
        }
    }
    Ok(())
}

/// A required member must be in each of its parents, where there is a parent at all; of `properties` itself always.
fn required(body: &Value, path: &str) -> Result<(), Refusal> {
    let (parent, name) = walk::split_last(path);
    let mut missing = None;
    let mut look = |place: &str, value: &Value| {
        let absent = value.get(name).is_none_or(Value::is_null);
        if absent && missing.is_none() {
            missing = Some(if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") });
        }
    };
    if parent.is_empty() {
        look("", body);
    } else {
        if parent == "properties" && body.get(parent).is_none_or(Value::is_null) {
            return Err(Refusal::missing_member(path));
        }
        walk::visit(body, parent, &mut look);
    }
    missing.map_or(Ok(()), |place| Err(Refusal::missing_member(&place)))
}

fn kind(value: &Value, kind: MemberKind) -> Result<(), String> {
    let text = || value.as_str().ok_or_else(|| format!("must be a string, not {}", name_of(value)));
    match kind {
        MemberKind::Text => text().map(|_| ()),
        MemberKind::OneOf(set) => {
            let given = text()?;
            let known = set.iter().any(|known| known.eq_ignore_ascii_case(given));
            known.then_some(()).ok_or_else(|| format!("must be one of {}", set.join(", ")))
        }
        MemberKind::Integer(least, most) => {
            let number =
                value.as_i64().ok_or_else(|| format!("must be a whole number, not {}", name_of(value)))?;
            let fits = (least..=most).contains(&number);
            fits.then_some(()).ok_or_else(|| format!("must be between {least} and {most}"))
        }
        MemberKind::Flag => value.as_bool().map(|_| ()).ok_or_else(|| "must be true or false".to_owned()),
        MemberKind::Network => network(text()?).map(|_| ()),
        MemberKind::Address => {
            text()?.parse::<IpAddr>().map(|_| ()).map_err(|_| "must be an IP address".to_owned())
        }
        MemberKind::Guid => Uuid::try_parse(text()?).map(|_| ()).map_err(|_| "must be a GUID".to_owned()),
        MemberKind::Object => {
            value.as_object().map(|_| ()).ok_or_else(|| format!("must be an object, not {}", name_of(value)))
        }
        MemberKind::List => list(value).map(|_| ()),
        MemberKind::NonEmptyList => match list(value)? {
            [] => Err("must have at least one item".to_owned()),
            _ => Ok(()),
        },
        MemberKind::Texts => match list(value)?.iter().all(Value::is_string) {
            true => Ok(()),
            false => Err("must be a list of strings".to_owned()),
        },
        MemberKind::Networks => {
            let mut texts = list(value)?.iter().map(|item| item.as_str().unwrap_or_default());
            texts.try_for_each(|text| network(text).map(|_| ()))
        }
    }
}

fn list(value: &Value) -> Result<&[Value], String> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| format!("must be a list, not {}", name_of(value)))
}

/// A network whose address has no bits beyond its prefix.
pub fn network(text: &str) -> Result<IpNet, String> {
    let net: IpNet = text.parse().map_err(|_| format!("'{text}' is not a network in CIDR notation"))?;
    match net.trunc() == net {
        true => Ok(net),
        false => Err(format!("'{text}' has bits set beyond its prefix; did you mean '{}'", net.trunc())),
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn canonical(value: &mut Value, set: &[&str]) {
    let known = value.as_str().and_then(|given| set.iter().find(|known| known.eq_ignore_ascii_case(given)));
    if let Some(known) = known {
        *value = Value::from(*known);
    }
}

/// Whether a name is allowed for a type.
pub fn name(name: &str, naming: &Naming) -> Result<(), Refusal> {
    let count = name.chars().count();
    if count > naming.longest {
        let detail = format!("The name can be up to {} characters long.", naming.longest);
        return Err(Refusal::resource_name(name, &detail));
    }
    match has_shape(name, naming.shape) {
        true => Ok(()),
        false => Err(Refusal::resource_name(name, shape_text(naming.shape))),
    }
}

fn has_shape(name: &str, shape: NameShape) -> bool {
    let all = |allowed: fn(char) -> bool| name.chars().all(allowed);
    let first = name.chars().next();
    let last = name.chars().next_back();
    let edge = |c: Option<char>, allowed: fn(char) -> bool| c.is_some_and(allowed);
    let alphanumeric = |c: char| c.is_ascii_alphanumeric();
    match shape {
        NameShape::Word => {
            edge(first, alphanumeric)
                && edge(last, |c| c.is_ascii_alphanumeric() || c == '_')
                && all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        }
        NameShape::SystemWord => has_shape(name.strip_prefix('_').unwrap_or(name), NameShape::Word),
        NameShape::LowerAlphanumeric => {
            name.len() >= 3 && all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        }
        NameShape::Alphanumeric => name.len() >= 5 && all(alphanumeric),
        NameShape::Hyphenated => {
            name.len() >= 3
                && edge(first, |c| c.is_ascii_alphabetic())
                && edge(last, alphanumeric)
                && all(|c| c.is_ascii_alphanumeric() || c == '-')
                && !name.contains("--")
        }
        NameShape::DnsZone => name.contains('.') && name.split('.').all(is_label),
        NameShape::DnsRecord => {
            name == "@" || name.strip_prefix("*.").unwrap_or(name).split('.').all(|l| l == "*" || is_label(l))
        }
        NameShape::Guid => Uuid::try_parse(name).is_ok(),
        NameShape::Default => name.eq_ignore_ascii_case("default"),
    }
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

fn shape_text(shape: NameShape) -> &'static str {
    match shape {
        NameShape::Word | NameShape::SystemWord => {
            "The name must begin with a letter or number, end with a letter, number or underscore, and may contain only letters, numbers, underscores, periods, or hyphens."
        }
        NameShape::LowerAlphanumeric => {
            "The name must be at least 3 characters long and use numbers and lower-case letters only."
        }
        NameShape::Alphanumeric => {
            "The name must be at least 5 characters long and use letters and numbers only."
        }
        NameShape::Hyphenated => {
            "The name must be at least 3 characters long, begin with a letter, end with a letter or digit, and not contain consecutive hyphens."
        }
        NameShape::DnsZone => "The name must be a DNS name of at least two labels.",
        NameShape::DnsRecord => "The name must be '@', a wildcard or a relative DNS name.",
        NameShape::Guid => "The name must be a GUID.",
        NameShape::Default => "The name must be 'default'.",
    }
}

/// The most tags of a resource.
const MOST_TAGS: usize = 50;

/// Whether `tags` is a map of texts within Azure's limits.
pub fn tags(tags: &Value) -> Result<(), Refusal> {
    if tags.is_null() {
        return Ok(());
    }
    let Some(tags) = tags.as_object() else { return Err(Refusal::member("tags", "must be an object")) };
    if tags.len() > MOST_TAGS {
        let message = format!("Number of tags exceeded the maximum allowed value '{MOST_TAGS}'.");
        return Err(Refusal::new(http::StatusCode::BAD_REQUEST, "TooManyTags", message));
    }
    for (name, value) in tags {
        let Some(value) = value.as_str() else {
            return Err(Refusal::member(&format!("tags.{name}"), "must be a string"));
        };
        let forbidden = |c: char| "<>%&\\?/".contains(c) || c.is_control();
        if name.is_empty() || name.chars().count() > 512 || name.contains(forbidden) {
            let message =
                format!("The tag name '{name}' is empty, too long or has one of the characters <>%&\\?/.");
            return Err(Refusal::new(http::StatusCode::BAD_REQUEST, "InvalidTagNameCharacters", message));
        }
        if value.chars().count() > 256 {
            let message =
                format!("Tag value too large. Following tag value '{name}' exceeded the maximum length.");
            return Err(Refusal::new(http::StatusCode::BAD_REQUEST, "InvalidTagValueLength", message));
        }
    }
    Ok(())
}

/// Whether the parts of the envelope beside `properties` are of the right kind.
pub fn envelope(body: &Map<String, Value>) -> Result<(), Refusal> {
    for (name, value) in body.iter().filter(|(_, value)| !value.is_null()) {
        let right = match name.as_str() {
            "location" | "kind" | "managedBy" => value.is_string(),
            "properties" | "sku" | "identity" | "plan" | "extendedLocation" => value.is_object(),
            "zones" => value.is_array(),
            _ => true,
        };
        if !right {
            return Err(Refusal::member(name, &format!("must not be {}", name_of(value))));
        }
    }
    tags(body.get("tags").unwrap_or(&Value::Null))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MEMBERS: &[Member] = &[
        Member { path: "properties.space", kind: MemberKind::Networks, required: true },
        Member { path: "properties.items[].name", kind: MemberKind::Text, required: true },
        Member {
            path: "properties.items[].mode",
            kind: MemberKind::OneOf(&["Static", "Dynamic"]),
            required: false,
        },
        Member { path: "properties.count", kind: MemberKind::Integer(1, 9), required: false },
    ];

    fn refused(mut body: Value) -> Option<String> {
        members(&mut body, MEMBERS).err().map(|refusal| refusal.0.target.unwrap_or_default())
    }

    #[test]
    fn the_exact_place_of_a_wrong_member_is_named() {
        assert_eq!(refused(json!({})), Some("properties.space".to_owned()));
        assert_eq!(refused(json!({"properties": {"space": 7}})), Some("properties.space".to_owned()));
        assert_eq!(
            refused(json!({"properties": {"space": ["10.0.0.1/8"]}})),
            Some("properties.space".to_owned())
        );
        let items = |items: Value| json!({"properties": {"space": ["10.0.0.0/8"], "items": items}});
        assert_eq!(refused(items(json!([{"name": "a"}, {}]))), Some("properties.items[1].name".to_owned()));
        assert_eq!(
            refused(items(json!([{"name": "a", "mode": "x"}]))),
            Some("properties.items[0].mode".to_owned())
        );
        assert_eq!(refused(items(json!([{"name": "a", "mode": null}]))), None);
    }

    #[test]
    fn texts_of_closed_sets_get_the_case_of_the_set() {
        let mut body =
            json!({"properties": {"space": ["10.0.0.0/8"], "items": [{"name": "a", "mode": "static"}]}});
        members(&mut body, MEMBERS).unwrap();
        assert_eq!(body["properties"]["items"][0]["mode"], "Static");
    }

    #[test]
    fn names_follow_the_rules_of_their_type() {
        let allowed = |text: &str, shape, longest| {
            name(text, &Naming { longest, shape, unique_everywhere: None }).is_ok()
        };
        for (text, shape, expected) in [
            ("my-vnet_1.a_", NameShape::Word, true),
            ("-vnet", NameShape::Word, false),
            ("_repositories_pull", NameShape::SystemWord, true),
            ("_repositories_pull", NameShape::Word, false),
            ("__pull", NameShape::SystemWord, false),
            ("vnet.", NameShape::Word, false),
            ("storage1", NameShape::LowerAlphanumeric, true),
            ("Storage1", NameShape::LowerAlphanumeric, false),
            ("kv-1", NameShape::Hyphenated, true),
            ("1kv", NameShape::Hyphenated, false),
            ("example.com", NameShape::DnsZone, true),
            ("com", NameShape::DnsZone, false),
            ("a..b", NameShape::DnsZone, false),
            ("@", NameShape::DnsRecord, true),
            ("*.apps", NameShape::DnsRecord, true),
            ("*", NameShape::DnsRecord, true),
            ("_acme.x", NameShape::DnsRecord, true),
            ("a b", NameShape::DnsRecord, false),
            ("not-a-guid", NameShape::Guid, false),
        ] {
            assert_eq!(allowed(text, shape, 80), expected, "{text}");
        }
        assert!(!allowed("abcdef", NameShape::Word, 5));
    }

    #[test]
    fn tags_are_a_map_of_texts_within_limits() {
        assert!(tags(&json!({"a": "b"})).is_ok());
        assert!(tags(&json!(["a"])).is_err() && tags(&json!({"a": 1})).is_err());
        assert!(tags(&json!({"a<b": "x"})).is_err());
        let many: Map<String, Value> = (0..51).map(|n| (n.to_string(), json!(""))).collect();
        assert!(tags(&Value::Object(many)).is_err());
    }
}
