//! From ARM's model to Clusters Service's: bodies of creates, bodies of updates, and whether an object is as desired.
//!
//! What it is: pure functions, one module per resource. A create body holds everything that Clusters Service needs; an
//! update body holds the members that can change, always all of them, so that an update states the whole desired state.
//!
//! The comparison is between canonical forms: `canonical` of an update body equals `canonical` of an object exactly if the
//! update would change nothing. It knows what Clusters Service treats alike: an absent list and an empty one, durations of
//! the same length, `allow_all` with and without values.
//!
//! Bodies are JSON values, not types: a body must say "empty" and "absent" as two things, and holds nothing else than what
//! is written here.

pub mod cluster;
pub mod external_auth;
pub mod node_pool;

use std::collections::BTreeMap;

use aro_arm::hcp::openshift_version::Release;
use serde_json::Value;

/// The members that decide whether an object is as desired, by name.
pub type Canonical = BTreeMap<&'static str, Value>;

/// The names of the members that differ.
pub fn differences(desired: &Canonical, observed: &Canonical) -> Vec<&'static str> {
    let names = desired.keys().chain(observed.keys().filter(|name| !desired.contains_key(*name)));
    names.filter(|name| desired.get(*name) != observed.get(*name)).copied().collect()
}

/// The id of a version: `openshift-v4.20.8`, with the channel group unless it is the default.
pub fn version_id(release: &Release, channel_group: &str) -> String {
    match channel_group {
        "" | "stable" => format!("openshift-v{release}"),
        group => format!("openshift-v{release}-{group}"),
    }
}

/// The member at a path, or null.
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    static NULL: Value = Value::Null;
    value.pointer(path).unwrap_or(&NULL)
}

/// A text member; absent is empty.
fn text(value: &Value, path: &str) -> Value {
    at(value, path).as_str().unwrap_or_default().into()
}

/// A list member; absent is empty.
fn list(value: &Value, path: &str) -> Vec<Value> {
    at(value, path).as_array().cloned().unwrap_or_default()
}

/// A drain time as minutes; absent stays absent.
fn minutes(value: &Value) -> Value {
    let Some(amount) = at(value, "/value").as_f64() else { return Value::Null };
    let factor = match at(value, "/unit").as_str() {
        Some("hours" | "hour") => 60.0,
        Some("seconds" | "second") => 1.0 / 60.0,
        _ => 1.0,
    };
    (amount * factor).into()
}

/// The seconds of a duration as Go writes it (`15m`, `7.5m`, `1h0m0s`); null if it is none.
fn go_seconds(value: &Value) -> Value {
    let Some(mut rest) = value.as_str().filter(|text| !text.is_empty()) else { return Value::Null };
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let factor = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => return Value::Null,
        };
        let Ok(number) = number.parse::<f64>() else { return Value::Null };
        seconds += number * factor;
        rest = tail;
    }
    // Whole milliseconds: 7.1 minutes are no whole number of binary fractions.
    ((seconds * 1000.0).round() as i64).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_are_compared_by_their_length() {
        for (a, b) in [("15m", "900s"), ("7.5m", "7m30s"), ("1h0m0s", "60m"), ("7.1m", "426s")] {
            assert_eq!(go_seconds(&json!(a)), go_seconds(&json!(b)), "{a} and {b}");
        }
        for none in ["", "15", "m", "15x", "-3m"] {
            assert_eq!(go_seconds(&json!(none)), Value::Null, "{none}");
        }
        assert_eq!(
            minutes(&json!({"unit": "hours", "value": 2})),
            minutes(&json!({"unit": "minutes", "value": 120.0}))
        );
    }

    #[test]
    fn the_id_of_a_version_names_its_channel_group_unless_it_is_stable() {
        let release = Release::new(4, 20, 8);
        assert_eq!(version_id(&release, "stable"), "openshift-v4.20.8");
        assert_eq!(version_id(&release, "candidate"), "openshift-v4.20.8-candidate");
    }
}
