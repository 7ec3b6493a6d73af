//! Names of zones and records.

use hickory_proto::rr::Name;

/// A fully qualified name in lower case; a dot at the end does not matter. `None`: it is not a name.
pub(crate) fn parse_name(text: &str) -> Option<Name> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.is_empty() {
        return None;
    }
    from_labels(text.split('.'))
}

/// The name of a record set in a zone: `@` is the zone itself.
pub(crate) fn relative_name(relative: &str, origin: &Name) -> Option<Name> {
    if relative == "@" {
        return Some(origin.clone());
    }
    from_labels(relative.split('.'))?.append_domain(origin).ok().filter(|name| name.len() <= 255)
}

fn from_labels<'a>(labels: impl Iterator<Item = &'a str>) -> Option<Name> {
    let labels: Vec<&[u8]> = labels.map(str::as_bytes).collect();
    let valid = |label: &&[u8]| (1..=63).contains(&label.len()) && label.iter().all(u8::is_ascii_graphic);
    if !labels.iter().all(valid) {
        return None;
    }
    let mut name = Name::from_labels(labels).ok()?.to_lowercase();
    name.set_fqdn(true);
    Some(name)
}

/// The names from the child of `origin` down to `name`; without both ends being equal, `name` is the last.
pub(crate) fn below(origin: &Name, name: &Name) -> impl Iterator<Item = Name> + use<> {
    let (from, to, name) = (usize::from(label_count(origin)), usize::from(label_count(name)), name.clone());
    (from + 1..=to).map(move |labels| name.trim_to(labels))
}

/// How many labels a name has, a wildcard included.
pub(crate) fn label_count(name: &Name) -> u8 {
    u8::try_from(name.iter().len()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_and_fully_qualified() {
        let name = parse_name("API.Example.com").unwrap();
        assert_eq!(name.to_ascii(), "api.example.com.");
        assert_eq!(parse_name("api.example.com."), Some(name));
        for bad in ["", ".", "a..b", "a b", "ä.example", &"x".repeat(64), &"abc.".repeat(80)] {
            assert_eq!(parse_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn relative_names_end_in_the_zone() {
        let origin = parse_name("example.com").unwrap();
        for (relative, expected) in [
            ("@", Some("example.com.")),
            ("www", Some("www.example.com.")),
            ("*", Some("*.example.com.")),
            ("*.Apps", Some("*.apps.example.com.")),
            ("_sip._tcp", Some("_sip._tcp.example.com.")),
            ("", None),
            ("a..b", None),
        ] {
            let name = relative_name(relative, &origin).map(|name| name.to_ascii());
            assert_eq!(name.as_deref(), expected, "{relative}");
        }
    }

    #[test]
    fn the_names_below_a_zone_are_walked_from_the_top() {
        let origin = parse_name("example.com").unwrap();
        let walked = |name: &str| -> Vec<String> {
            below(&origin, &parse_name(name).unwrap()).map(|name| name.to_ascii()).collect()
        };
        assert_eq!(walked("a.b.example.com"), ["b.example.com.", "a.b.example.com."]);
        assert_eq!(walked("*.b.example.com"), ["b.example.com.", "*.b.example.com."]);
        assert!(walked("example.com").is_empty());
    }
}
