//! Times, numbers and secrets as the API writes them.

use std::fmt;

use aro_base::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::wire::{Described, Shape};

/// A time, always written with six fractional digits, so that the order of texts is the order of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Timestamp);

/// The first second of the year 1: an earlier year would be written with a sign and six digits.
const EARLIEST: i64 = -62_135_596_800;

impl From<Timestamp> for Time {
    fn from(time: Timestamp) -> Self {
        Self(time)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = self.0.max(Timestamp::from_second(EARLIEST).unwrap_or_default());
        write!(f, "{}", written.strftime("%Y-%m-%dT%H:%M:%S%.6fZ"))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Timestamp::deserialize(deserializer).map(Self)
    }
}

impl Described for Time {
    const SHAPE: &'static Shape = &Shape::Date;
}

/// A number that is written without fraction when it has none.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Float(pub f64);

/// Beyond this an `f64` does not hold every integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.fract() == 0.0 && self.0.abs() < EXACT {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Float {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self)
    }
}

impl Described for Float {
    const SHAPE: &'static Shape = &Shape::Number;
}

/// A text that no log and no error message may show. It is written to JSON as it is.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sensitive(String);

impl Sensitive {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Sensitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<sensitive>")
    }
}

impl Described for Sensitive {
    const SHAPE: &'static Shape = &Shape::Text;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_written_times_is_the_order_of_times() {
        let text = |text: &str| Time(text.parse().unwrap()).to_string();
        assert_eq!(text("2026-01-02T03:04:05Z"), "2026-01-02T03:04:05.000000Z");
        assert!(text("2026-01-02T03:04:05Z") < text("2026-01-02T03:04:05.5Z"));
        assert_eq!(serde_json::to_string(&Time(Timestamp::MIN)).unwrap(), "\"0001-01-01T00:00:00.000000Z\"");
    }

    #[test]
    fn a_sensitive_text_is_not_in_debug_output() {
        assert_eq!(format!("{:?}", Sensitive::new("kubeconfig")), "<sensitive>");
    }

    #[test]
    fn whole_numbers_are_written_without_fraction() {
        let again =
            |text: &str| serde_json::to_string(&serde_json::from_str::<Float>(text).unwrap()).unwrap();
        for (read, written) in [("0", "0"), ("10.0", "10"), ("1.5", "1.5"), ("-3", "-3"), ("1e300", "1e+300")]
        {
            assert_eq!(again(read).replace("1e300", "1e+300"), written, "{read}");
        }
    }
}
