//! Times in rows: always with six fractional digits, so that the order of strings is the order of times.

use std::fmt;

use aro_base::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub Timestamp);

impl Moment {
    /// The Kubernetes format, without fractions.
    pub fn seconds(self) -> String {
        self.written().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Clamps a time to years of four digits. An agent may report any time, and a row with another year could not be
    /// decoded.
    fn written(self) -> Timestamp {
        self.0.max(Timestamp::from_second(EARLIEST).unwrap_or_default())
    }
}

/// The first second of the year 1. There is no time after the year 9999.
const EARLIEST: i64 = -62_135_596_800;

impl From<Timestamp> for Moment {
    fn from(time: Timestamp) -> Self {
        Self(time)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.written().strftime("%Y-%m-%dT%H:%M:%S%.6fZ"))
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

    #[test]
    fn whatever_time_somebody_says_it_is_can_be_read_again() {
        for odd in [Timestamp::MIN, Timestamp::MAX, "-000001-01-01T00:00:00Z".parse().unwrap()] {
            let text = serde_json::to_string(&Moment(odd)).unwrap();
            let read: Moment = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
        assert!(Moment(Timestamp::MAX).seconds().starts_with("9999-"));
        assert_eq!(Moment(Timestamp::MIN).seconds(), "0001-01-01T00:00:00Z");
    }
}
