//! Durations and sizes as people write them: `"30s"`, `"8MiB"`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A text that is no duration or size.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{text}` is not {expected}")]
pub struct UnitError {
    text: String,
    expected: &'static str,
}

const TIME_UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
const SIZE_UNITS: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// A span of time, written `250ms`, `30s`, `5m` or `2h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(Duration);

/// A number of bytes, written `512B`, `64KiB`, `8MiB` or `1GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(u64);

impl Period {
    /// So many milliseconds.
    pub const fn millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// So many seconds.
    pub const fn secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }

    /// As the standard library's type.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl ByteSize {
    /// So many bytes.
    pub const fn bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// So many mebibytes.
    pub const fn mib(mib: u64) -> Self {
        Self(mib << 20)
    }

    /// In bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Splits `30s` into number and unit and multiplies; `None` if it is not that, or too large.
fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Writes with the largest unit that leaves no remainder.
fn write(f: &mut fmt::Formatter<'_>, amount: u64, units: &[(&str, u64)]) -> fmt::Result {
    let fits = units.iter().rev().find(|(_, factor)| amount != 0 && amount.is_multiple_of(*factor));
    let (name, factor) = fits.or(units.first()).copied().unwrap_or(("", 1));
    write!(f, "{}{name}", amount / factor)
}

impl FromStr for Period {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &TIME_UNITS).map(Self::millis).ok_or_else(|| UnitError {
            text: text.to_owned(),
            expected: "a duration such as `250ms`, `30s`, `5m` or `2h`",
        })
    }
}

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &SIZE_UNITS).map(Self).ok_or_else(|| UnitError {
            text: text.to_owned(),
            expected: "a size such as `512B`, `64KiB`, `8MiB` or `1GiB`",
        })
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0.as_millis() as u64, &TIME_UNITS)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, &SIZE_UNITS)
    }
}

macro_rules! as_text {
    ($($name:ident),*) => { $(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    )* };
}
as_text!(Period, ByteSize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back_as_the_same() {
        for text in ["0ms", "250ms", "30s", "5m", "2h", "90s", "1501ms"] {
            assert_eq!(text.parse::<Period>().unwrap().to_string(), text);
        }
        for text in ["0B", "1000B", "64KiB", "8MiB", "1GiB", "1025MiB"] {
            assert_eq!(text.parse::<ByteSize>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn numbers_without_unit_and_overflows_are_refused() {
        for text in ["", "30", "s", "-1s", "1.5s", "30 s", "30S", "18446744073709551615h"] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
        for text in ["8", "8MB", "8mib", "17179869184GiB"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }
}
