//! What label keys and values may look like, and the words for what is wrong with them.
//!
//! Checked by hand instead of by regular expressions: this runs for every label of every write.

const MAX_PART: usize = 63;
const MAX_SUBDOMAIN: usize = 253;
const KEY_FORM: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character";

/// What is wrong with a label key (or any qualified name: `example.com/name`). Empty when nothing is.
pub fn label_key_problems(key: &str) -> Vec<String> {
    let (prefix, name) = match key.split_once('/') {
        None => (None, key),
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                key_rule()
            )];
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    let mut problems = Vec::new();
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            problems.extend(subdomain_problems(prefix).into_iter().map(|text| format!("prefix part {text}")));
        }
        None => {}
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_PART {
        problems.push(format!("name part must be no more than {MAX_PART} bytes"));
    }
    if !is_name(name) {
        problems.push(format!("name part {}", key_rule()));
    }
    problems
}

/// What is wrong with a label value. Empty when nothing is.
pub fn label_value_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > MAX_PART {
        problems.push(format!("must be no more than {MAX_PART} bytes"));
    }
    if !value.is_empty() && !is_name(value) {
        problems.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
             for validation is '({KEY_FORM})?')"
        ));
    }
    problems
}

/// What is wrong with a DNS subdomain. Empty when nothing is.
pub fn subdomain_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > MAX_SUBDOMAIN {
        problems.push(format!("must be no more than {MAX_SUBDOMAIN} bytes"));
    }
    if !text.split('.').all(is_dns_label) {
        problems.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
             must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    problems
}

fn key_rule() -> String {
    format!(
        "{KEY_RULE} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{KEY_FORM}')"
    )
}

fn is_name(text: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    ends_with_alphanumerics(text, u8::is_ascii_alphanumeric) && text.as_bytes().iter().all(inner)
}

fn is_dns_label(text: &str) -> bool {
    let end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    ends_with_alphanumerics(text, end) && text.as_bytes().iter().all(|byte| end(byte) || *byte == b'-')
}

/// Both ends are of that sort.
fn ends_with_alphanumerics(text: &str, sort: impl Fn(&u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&sort) && bytes.last().is_some_and(&sort)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_keys_and_values_have_no_problems() {
        for key in ["a", "A.b_c-d", "example.com/x", "0", &"x".repeat(63)] {
            assert_eq!(label_key_problems(key), Vec::<String>::new(), "{key}");
        }
        for value in ["", "a", "My_value.1"] {
            assert_eq!(label_value_problems(value), Vec::<String>::new(), "{value}");
        }
    }

    #[test]
    fn problems_read_like_upstreams() {
        let rule = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
            alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
            '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        assert_eq!(label_key_problems("a b"), [format!("name part {rule}")]);
        assert_eq!(
            label_key_problems("/"),
            ["prefix part must be non-empty", "name part must be non-empty", &format!("name part {rule}")]
        );
        assert!(label_key_problems("a/b/c")[0].starts_with("a valid label key must consist"));
        assert!(label_key_problems("A/b")[0].starts_with("prefix part a lowercase RFC 1123 subdomain"));
        assert_eq!(label_key_problems(&"x".repeat(64)), ["name part must be no more than 63 bytes"]);
        assert_eq!(label_value_problems(&"x".repeat(64)), ["must be no more than 63 bytes"]);
        assert!(label_value_problems("-")[0].contains("regex used for validation is '(([A-Za-z0-9]"));
    }
}
