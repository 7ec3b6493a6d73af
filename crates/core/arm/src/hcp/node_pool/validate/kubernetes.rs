//! Kubernetes' rules for names and values of labels.

use crate::schema::pattern;

const MAX_PART: usize = 63;
const MAX_PREFIX: usize = 253;

pattern!(
    NAME_PART,
    "^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
);
pattern!(
    PREFIX_PART,
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    "prefix part must be a lowercase RFC 1123 subdomain"
);
const VALUE: &str = "a valid label must be empty or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// What is wrong with `[prefix/]name`, if something is.
pub fn wrong_qualified_name(text: &str) -> Option<&'static str> {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if name.contains('/') {
        return Some("must be a name with an optional prefix and one '/'");
    }
    match prefix {
        Some("") => return Some("prefix part must be non-empty"),
        Some(prefix) if prefix.len() > MAX_PREFIX => {
            return Some("prefix part must be no more than 253 bytes");
        }
        Some(prefix) if !PREFIX_PART.matches(prefix) => return Some(PREFIX_PART.why),
        _ => {}
    }
    if name.is_empty() {
        Some("name part must be non-empty")
    } else if name.len() > MAX_PART {
        Some("name part must be no more than 63 bytes")
    } else {
        (!NAME_PART.matches(name)).then_some(NAME_PART.why)
    }
}

/// What is wrong with the value of a label, if something is.
pub fn wrong_label_value(text: &str) -> Option<&'static str> {
    if text.len() > MAX_PART {
        return Some("must be no more than 63 bytes");
    }
    (!text.is_empty() && !NAME_PART.matches(text)).then_some(VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_names_are_judged_as_kubernetes_does() {
        for good in ["a", "a.b/c", "example.com/My_Name.1", "1"] {
            assert_eq!(wrong_qualified_name(good), None, "{good}");
        }
        let (long, long_prefix) = ("a".repeat(64), format!("{}/a", "a".repeat(254)));
        for (bad, why) in [
            ("", "name part must be non-empty"),
            ("a/", "name part must be non-empty"),
            ("/a", "prefix part must be non-empty"),
            ("a/b/c", "must be a name with an optional prefix and one '/'"),
            ("A.b/c", "prefix part must be a lowercase RFC 1123 subdomain"),
            (long.as_str(), "name part must be no more than 63 bytes"),
            (long_prefix.as_str(), "prefix part must be no more than 253 bytes"),
            ("-a", NAME_PART.why),
            ("a b", NAME_PART.why),
        ] {
            assert_eq!(wrong_qualified_name(bad), Some(why), "{bad}");
        }
    }

    #[test]
    fn label_values_may_be_empty_but_not_odd() {
        assert_eq!(wrong_label_value(""), None);
        assert_eq!(wrong_label_value("4.12"), None);
        assert_eq!(wrong_label_value("-a"), Some(VALUE));
        assert_eq!(wrong_label_value(&"a".repeat(64)), Some("must be no more than 63 bytes"));
    }
}
