//! Times as rows keep them: always with six digits of a second, so that the order of texts is the order of times.

use std::fmt;

use aro_base::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub Timestamp);

impl Moment {
    /// As Kubernetes writes times: without fractions.
    pub fn seconds(self) -> String {
        self.0.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl From<Timestamp> for Moment {
    fn from(time: Timestamp) -> Self {
        Self(time)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%Y-%m-%dT%H:%M:%S%.6fZ"))
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Timestamp::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_texts_is_the_order_of_times() {
        let text = |text: &str| Moment(text.parse().unwrap()).to_string();
        assert_eq!(text("2026-01-02T03:04:05Z"), "2026-01-02T03:04:05.000000Z");
        assert!(text("2026-01-02T03:04:05Z") < text("2026-01-02T03:04:05.5Z"));
        assert!(text("2026-01-02T03:04:05.5Z") < text("2026-01-02T03:04:05.51Z"));
        assert_eq!(Moment("2026-01-02T03:04:05.9Z".parse().unwrap()).seconds(), "2026-01-02T03:04:05Z");
        let read: Moment = serde_json::from_str("\"2026-01-02T03:04:05.900000Z\"").unwrap();
        assert_eq!(read.to_string(), "2026-01-02T03:04:05.900000Z");
    }
}
