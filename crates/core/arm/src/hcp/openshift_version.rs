//! OpenShift versions: a release (`4.22.11`, `5.0.0-ec.1`) and a release line (`4.22`).
//!
//! Also the moves between lines that are allowed, which need no knowledge but the numbers.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A release line: `major.minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    pub major: u64,
    pub minor: u64,
}

/// The oldest line a cluster can be created with.
pub const MIN_CLUSTER_LINE: Line = Line::new(4, 20);
/// From here on a cluster can change the version of its KMS key and pull with an identity of its own.
pub const LINE_4_22: Line = Line::new(4, 22);

/// Where a cluster may go across a major version.
const CROSS_MAJOR_UPGRADES: [(Line, Line); 2] =
    [(Line::new(4, 22), Line::new(5, 0)), (Line::new(4, 23), Line::new(5, 1))];
/// Which control planes of the next major version a node pool can be served by.
const CROSS_MAJOR_SKEW: [(Line, &[Line]); 3] = [
    (Line::new(4, 21), &[Line::new(5, 0)]),
    (Line::new(4, 22), &[Line::new(5, 0), Line::new(5, 1)]),
    (Line::new(4, 23), &[Line::new(5, 1), Line::new(5, 2)]),
];
/// How many minor versions a node pool may be behind its control plane.
pub const MAX_SKEW: u64 = 2;

impl Line {
    pub const fn new(major: u64, minor: u64) -> Self {
        Self { major, minor }
    }

    /// Reads exactly `major.minor`, without leading zeros or signs.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self { major: number(major)?, minor: number(minor)? })
    }

    /// Whether a cluster of this line may be upgraded to the other in one step.
    pub fn may_upgrade_to(self, to: Self) -> bool {
        if self.major == to.major {
            self.minor <= to.minor && to.minor - self.minor <= 1
        } else {
            CROSS_MAJOR_UPGRADES.contains(&(self, to))
        }
    }

    /// Whether a node pool of this line may move to the other in one step. Going back is allowed within a major.
    pub fn may_move_to(self, to: Self) -> bool {
        if self.major == to.major { to.minor <= self.minor + MAX_SKEW } else { self.may_be_served_by(to) }
    }

    /// Whether a node pool of this line can be served by a control plane of the other.
    pub fn may_be_served_by(self, control_plane: Self) -> bool {
        if self.major == control_plane.major {
            self.minor <= control_plane.minor && control_plane.minor - self.minor <= MAX_SKEW
        } else {
            CROSS_MAJOR_SKEW.iter().any(|(line, planes)| *line == self && planes.contains(&control_plane))
        }
    }
}

fn number(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    (canonical && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A release: `major.minor.patch` with an optional pre-release part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release(semver::Version);

impl Release {
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self(semver::Version::new(major, minor, patch))
    }

    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    /// Whether it carries build metadata, which releases never do.
    pub fn has_build(&self) -> bool {
        !self.0.build.is_empty()
    }

    pub const fn line(&self) -> Line {
        Line { major: self.0.major, minor: self.0.minor }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Release {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Release {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_two_plain_numbers() {
        assert_eq!(Line::parse("4.22"), Some(Line::new(4, 22)));
        for bad in
            ["", "4", "4.", ".2", "4.022", "04.2", "+4.2", "4.22.1", "4.x", "v4.22", "4.99999999999999999999"]
        {
            assert_eq!(Line::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_upgrade_is_one_minor_or_an_allowed_step_to_the_next_major() {
        for (from, to, allowed) in [
            ("4.20", "4.20", true),
            ("4.20", "4.21", true),
            ("4.20", "4.22", false),
            ("4.21", "4.20", false),
            ("4.22", "5.0", true),
            ("4.23", "5.1", true),
            ("4.22", "5.1", false),
            ("4.23", "5.0", false),
            ("5.0", "4.22", false),
        ] {
            let line = |text| Line::parse(text).unwrap();
            assert_eq!(line(from).may_upgrade_to(line(to)), allowed, "{from} to {to}");
        }
    }

    #[test]
    fn a_node_pool_is_at_most_two_minors_behind() {
        for (pool, plane, allowed) in [
            ("4.20", "4.20", true),
            ("4.20", "4.22", true),
            ("4.20", "4.23", false),
            ("4.21", "4.20", false),
            ("4.21", "5.0", true),
            ("4.20", "5.0", false),
            ("4.22", "5.1", true),
            ("4.23", "5.2", true),
            ("4.23", "5.0", false),
            ("5.0", "4.23", false),
        ] {
            let line = |text| Line::parse(text).unwrap();
            assert_eq!(line(pool).may_be_served_by(line(plane)), allowed, "{pool} under {plane}");
        }
    }

    #[test]
    fn a_release_is_strict_and_ordered() {
        assert!(Release::parse("4.20.8").unwrap() > Release::parse("4.20.8-rc.1").unwrap());
        assert_eq!(Release::parse("4.20"), None);
        assert_eq!(Release::parse("v4.20.1"), None);
        assert_eq!(Release::parse("4.22.1").unwrap().line(), LINE_4_22);
    }
}
