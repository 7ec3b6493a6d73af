//! The api-versions that are served, oldest first.

use std::fmt;

use crate::schema;

/// An api-version. Ordered by age: a later one is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApiVersion {
    V2024_06_10Preview,
    V2025_12_23Preview,
    V2026_06_30Preview,
    V2026_09_01Preview,
    V2026_10_01,
}

impl ApiVersion {
    pub const ALL: [Self; 5] = [
        Self::V2024_06_10Preview,
        Self::V2025_12_23Preview,
        Self::V2026_06_30Preview,
        Self::V2026_09_01Preview,
        Self::V2026_10_01,
    ];
    pub const OLDEST: Self = Self::V2024_06_10Preview;
    /// The version whose shape the internal model has.
    pub const NEWEST: Self = Self::V2026_10_01;

    /// Reads the query parameter, without regard to case.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str().eq_ignore_ascii_case(text))
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_06_10Preview => "2024-06-10-preview",
            Self::V2025_12_23Preview => "2025-12-23-preview",
            Self::V2026_06_30Preview => "2026-06-30-preview",
            Self::V2026_09_01Preview => "2026-09-01-preview",
            Self::V2026_10_01 => "2026-10-01",
        }
    }

    /// Its place in [`Self::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl schema::Version for ApiVersion {
    const ALL: &'static [Self] = &Self::ALL;
    const OLDEST: Self = Self::OLDEST;
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_parses_from_its_text_in_any_case_and_they_are_ordered_by_age() {
        for (index, version) in ApiVersion::ALL.into_iter().enumerate() {
            assert_eq!(version.index(), index);
            assert_eq!(ApiVersion::parse(version.as_str()), Some(version));
            assert_eq!(ApiVersion::parse(&version.as_str().to_uppercase()), Some(version));
        }
        assert!(ApiVersion::ALL.is_sorted());
        assert_eq!(ApiVersion::parse("2026-10-01-preview"), None);
        assert_eq!(ApiVersion::parse(""), None);
    }
}
