//! Values that many objects have.

use aro_ocm::Value;

use super::Found;

/// A week, in minutes.
const MAX_DRAIN_MINUTES: f64 = 10_080.0;

/// A grace period for draining nodes.
pub(super) fn drain_period(found: &mut Found, field: &str, value: Option<&Value>) {
    let Some(value) = value else { return };
    if value.unit.as_deref().is_some_and(|unit| !matches!(unit, "minutes" | "minute")) {
        found.invalid(&format!("{field}.unit"), format!("'{field}.unit' must be 'minutes'"));
    }
    let minutes = value.value.unwrap_or_default().0;
    if !(0.0..=MAX_DRAIN_MINUTES).contains(&minutes) {
        let reason = format!("'{field}.value' must be between 0 and {MAX_DRAIN_MINUTES} minutes");
        found.invalid(&format!("{field}.value"), reason);
    }
}

/// Seconds of a duration as Go writes it, such as `7.5m` or `1h30m`.
pub(super) fn go_duration(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0.0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        // The longer unit first: `m` begins `ms`.
        let units =
            [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
        let (unit, factor) = units.into_iter().find(|(unit, _)| {
            rest.strip_prefix(unit).is_some_and(|after| !after.starts_with(|c: char| c.is_ascii_alphabetic()))
        })?;
        seconds += number * factor;
        rest = rest.strip_prefix(unit)?;
    }
    Some(sign * seconds)
}

/// A label's or taint's key: an optional DNS prefix and a name.
pub(super) fn is_qualified_name(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let is_prefix = |prefix: &str| {
        !prefix.is_empty()
            && prefix.len() <= 253
            && prefix.split('.').all(|part| {
                let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
                !part.is_empty()
                    && part.starts_with(word)
                    && part.ends_with(word)
                    && part.chars().all(|c| word(c) || c == '-')
            })
    };
    !name.is_empty() && is_label_value(name) && prefix.is_none_or(is_prefix)
}

/// A label's or taint's value.
pub(super) fn is_label_value(value: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric();
    value.is_empty()
        || (value.len() <= 63
            && value.starts_with(word)
            && value.ends_with(word)
            && value.chars().all(|c| word(c) || matches!(c, '-' | '_' | '.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, seconds) in
            [("15m", 900.0), ("7.5m", 450.0), ("1h30m", 5400.0), ("250ms", 0.25), ("0", 0.0), ("-3s", -3.0)]
        {
            assert_eq!(go_duration(text), Some(seconds), "{text}");
        }
        for text in ["", "15", "m", "1x", "1h-3m", ".m", "1 m"] {
            assert_eq!(go_duration(text), None, "{text}");
        }
    }

    #[test]
    fn keys_and_values_are_those_of_kubernetes() {
        for key in ["a", "example.com/a-b_c.d", "A1"] {
            assert!(is_qualified_name(key), "{key}");
        }
        for key in ["", "/a", "a/", "-a", "Example.com/a", "a/b/c", &"a".repeat(64)] {
            assert!(!is_qualified_name(key), "{key}");
        }
        assert!(is_label_value("") && !is_label_value("a b"));
    }
}
