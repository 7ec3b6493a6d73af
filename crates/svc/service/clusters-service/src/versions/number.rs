//! Version numbers: `x.y.z`, with an optional pre-release.

use std::cmp::Ordering;
use std::fmt;

/// The longest text of a version.
const MAX: usize = 64;

/// A version number. A pre-release comes before its release.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VersionNumber {
    major: u32,
    minor: u32,
    patch: u32,
    pre_release: Option<String>,
}

impl VersionNumber {
    /// A release.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch, pre_release: None }
    }

    /// Reads a version.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX {
            return None;
        }
        let (numbers, pre_release) = match text.split_once('-') {
            Some((numbers, pre_release)) => (numbers, Some(pre_release)),
            None => (text, None),
        };
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        if pre_release.is_some_and(|text| text.is_empty() || !text.chars().all(word)) {
            return None;
        }
        let mut parts = numbers.split('.').map(|part| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| part.parse().ok()).flatten()
        });
        let version = Self {
            major: parts.next()??,
            minor: parts.next()??,
            patch: parts.next()??,
            pre_release: pre_release.map(str::to_owned),
        };
        parts.next().is_none().then_some(version)
    }

    /// `x` and `y`.
    pub const fn line(&self) -> (u32, u32) {
        (self.major, self.minor)
    }

    /// Whether there is an edge to another version: a later one of the same minor version, or one of the next.
    pub fn leads_to(&self, other: &Self) -> bool {
        self < other
            && self.major == other.major
            && (self.minor == other.minor || self.minor + 1 == other.minor)
    }
}

impl Ord for VersionNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = (self.major, self.minor, self.patch).cmp(&(other.major, other.minor, other.patch));
        numbers.then_with(|| match (&self.pre_release, &other.pre_release) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(one), Some(other)) => compare_pre_releases(one, other),
        })
    }
}

impl PartialOrd for VersionNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Identifier by identifier; numbers by value and before words.
fn compare_pre_releases(one: &str, other: &str) -> Ordering {
    let key = |part: &str| (part.parse::<u64>().map_or(u64::MAX, |number| number), part.to_owned());
    one.split('.').map(key).cmp(other.split('.').map(key))
}

impl fmt::Display for VersionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        match &self.pre_release {
            Some(pre_release) => write!(f, "-{pre_release}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> VersionNumber {
        VersionNumber::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn versions_are_ordered_by_number_and_pre_releases_come_first() {
        let sorted =
            ["4.19.9", "4.20.0-ec.2", "4.20.0-ec.10", "4.20.0-rc.1", "4.20.0", "4.20.2", "4.20.10", "5.0.0"];
        for (one, other) in sorted.iter().zip(sorted.iter().skip(1)) {
            assert!(version(one) < version(other), "{one} {other}");
        }
        for text in [
            "",
            "4",
            "4.20",
            "4.20.",
            "4.20.1.2",
            "4.x.1",
            "4.20.1-",
            "4.20.1-a b",
            "+4.1.1",
            &"1".repeat(100),
        ] {
            assert_eq!(VersionNumber::parse(text), None, "{text}");
        }
        assert_eq!(version("4.20.0-ec.2").to_string(), "4.20.0-ec.2");
    }

    #[test]
    fn edges_lead_to_later_patches_and_the_next_minor_version() {
        let leads = |from: &str, to: &str| version(from).leads_to(&version(to));
        assert!(leads("4.20.1", "4.20.2") && leads("4.20.8", "4.21.0"));
        assert!(!leads("4.20.1", "4.20.1") && !leads("4.20.2", "4.20.1"));
        assert!(!leads("4.20.1", "4.22.0") && !leads("4.22.0", "5.0.0"));
    }
}
