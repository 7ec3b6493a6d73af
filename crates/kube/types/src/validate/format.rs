//! Forms of texts: names, labels, ports, addresses. Each function says what is wrong, in upstream's words.

use std::net::IpAddr;

const DNS_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS_LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '";
const DNS_SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '";
const DNS_1035_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const WILDCARD_RULE: &str = r"a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY_RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const PERCENT_RULE: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
pub const IP_RULE: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
pub const CIDR_RULE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

fn too_long(most: usize) -> String {
    format!("must be no more than {most} characters")
}

fn lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Not empty, edges and inner bytes as told.
fn shaped(text: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    edge(*first) && edge(*last) && bytes.iter().all(|byte| inner(*byte))
}

pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && shaped(text, lower_or_digit, |byte| lower_or_digit(byte) || byte == b'-')
}

pub fn dns_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(too_long(63));
    }
    if !shaped(text, lower_or_digit, |byte| lower_or_digit(byte) || byte == b'-') {
        let dotted = is_dns_subdomain(text);
        wrong.push(if dotted {
            "must not contain dots".to_owned()
        } else {
            format!("{DNS_LABEL_RULE}{DNS_LABEL}')")
        });
    }
    wrong
}

fn is_dns_subdomain(text: &str) -> bool {
    text.split('.').all(|part| shaped(part, lower_or_digit, |byte| lower_or_digit(byte) || byte == b'-'))
}

pub fn dns_subdomain(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push(too_long(253));
    }
    if !is_dns_subdomain(text) {
        wrong.push(format!("{DNS_SUBDOMAIN_RULE}{DNS_SUBDOMAIN}')"));
    }
    wrong
}

pub fn wildcard_subdomain(text: &str) -> Vec<String> {
    match text.strip_prefix("*.") {
        Some(rest) if is_dns_subdomain(rest) && text.len() <= 253 => Vec::new(),
        _ => vec![WILDCARD_RULE.to_owned()],
    }
}

pub fn dns_1035_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(too_long(63));
    }
    let starts = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if !starts || !shaped(text, lower_or_digit, |byte| lower_or_digit(byte) || byte == b'-') {
        wrong.push(DNS_1035_RULE.to_owned());
    }
    wrong
}

fn is_name(text: &str) -> bool {
    shaped(
        text,
        |byte| byte.is_ascii_alphanumeric(),
        |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte),
    )
}

/// The key of a label or annotation: `name` or `prefix/name`.
pub fn qualified_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            wrong.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            wrong.extend(dns_subdomain(prefix).into_iter().map(|why| format!("prefix part {why}")));
            name
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name(name) {
        wrong.push(format!("name part {NAME_RULE}"));
    }
    wrong
}

pub fn label_value(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push("must be no more than 63 bytes".to_owned());
    }
    if !text.is_empty() && !is_name(text) {
        wrong.push(LABEL_VALUE_RULE.to_owned());
    }
    wrong
}

/// The key of a ConfigMap or Secret.
pub fn config_key(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push(too_long(253));
    }
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        wrong.push(CONFIG_KEY_RULE.to_owned());
    }
    match text {
        "." => wrong.push("must not be '.'".to_owned()),
        ".." => wrong.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

pub fn env_name(text: &str) -> Vec<String> {
    let sound = !text.is_empty() && text.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'=');
    if sound {
        Vec::new()
    } else {
        vec!["a valid environment variable name must consist only of printable ASCII characters other than '='".to_owned()]
    }
}

/// The name of a port of a container.
pub fn port_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 15 {
        wrong.push(too_long(15));
    }
    if text.is_empty() || !text.bytes().all(|byte| lower_or_digit(byte) || byte == b'-') {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// A name that becomes one segment of a URL's path.
pub fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." => return vec!["may not be '.'".to_owned()],
        ".." => return vec!["may not be '..'".to_owned()],
        _ => {}
    }
    ["/", "%"]
        .iter()
        .filter(|illegal| text.contains(**illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

pub fn percent(text: &str) -> Vec<String> {
    let number = text.strip_suffix('%').unwrap_or_default();
    let sound = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if sound { Vec::new() } else { vec![PERCENT_RULE.to_owned()] }
}

/// `domain/path`, as signers and controllers are named.
pub fn is_domain_path(text: &str) -> bool {
    text.split_once('/').is_some_and(|(domain, path)| is_dns_subdomain(domain) && !path.is_empty())
}

pub fn ip(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// Address and length of a prefix.
pub fn cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let length: u8 = length.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    (length <= most).then_some((address, length))
}

/// Whether a prefix holds an address.
pub fn contains(block: (IpAddr, u8), address: IpAddr) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)) << 96,
        IpAddr::V6(v6) => u128::from(v6),
    };
    let mask = u128::MAX.checked_shl(128 - u32::from(block.1)).unwrap_or_default();
    block.0.is_ipv4() == address.is_ipv4() && bits(block.0) & mask == bits(address) & mask
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sound_texts_pass() {
        for text in ["a", "a-b", "1.2", "example.com"] {
            assert!(dns_subdomain(text).is_empty(), "{text}");
        }
        for text in ["a", "A_b.c", "example.com/A"] {
            assert!(qualified_name(text).is_empty(), "{text}");
        }
        assert!(label_value("").is_empty());
        assert!(port_name("http-2").is_empty());
        assert_eq!(port_name("-").len(), 2);
    }

    #[test]
    fn prefixes_hold_addresses() {
        let block = cidr("10.1.0.0/16").unwrap();
        assert!(contains(block, "10.1.2.3".parse().unwrap()));
        assert!(!contains(block, "10.2.2.3".parse().unwrap()));
        assert!(!contains(cidr("::/0").unwrap(), "10.2.2.3".parse().unwrap()));
        assert!(contains(cidr("0.0.0.0/0").unwrap(), "10.2.2.3".parse().unwrap()));
        assert!(cidr("10.0.0.0/33").is_none());
    }

    proptest! {
        #[test]
        fn checks_never_panic(text in "\\PC{0,40}") {
            for check in [dns_label, dns_subdomain, dns_1035_label, qualified_name, label_value, config_key, port_name, path_segment, percent, env_name, wildcard_subdomain] {
                check(&text);
            }
            cidr(&text);
        }
    }
}
