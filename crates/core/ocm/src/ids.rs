//! Identifiers, checked where they enter.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// Why a text is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {what}: {rule}")]
pub struct BadId {
    /// The text, shortened.
    pub text: String,
    /// What it should be.
    pub what: &'static str,
    /// The rule.
    pub rule: &'static str,
}

fn bad(text: &str, what: &'static str, rule: &'static str) -> BadId {
    BadId { text: text.chars().take(64).collect(), what, rule }
}

fn label(text: &str, max: usize) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=max).contains(&text.len())
        && text.chars().all(|c| word(c) || c == '-')
        && text.starts_with(word)
        && text.ends_with(word)
}

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident, $what:literal, $max:literal, $rule:literal;)*) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(String);

            impl $name {
                /// Checks a text.
                pub fn parse(text: &str) -> Result<Self, BadId> {
                    if label(text, $max) { Ok(Self(text.to_owned())) } else { Err(bad(text, $what, $rule)) }
                }

                /// The text.
                pub fn as_str(&self) -> &str {
                    &self.0
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(&self.0)
                }
            }

            impl std::str::FromStr for $name {
                type Err = BadId;

                fn from_str(text: &str) -> Result<Self, BadId> {
                    Self::parse(text)
                }
            }

            impl Serialize for $name {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str(&self.0)
                }
            }

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                    Self::parse(&text).map_err(serde::de::Error::custom)
                }
            }
        )*
    };
}

ids! {
    /// The id of a cluster: 32 characters when minted ([`ClusterId::mint`]). The limit keeps the control-plane namespace a label.
    ClusterId, "cluster id", 32, "1 to 32 lower-case letters, digits and '-'";
    /// The id of a node pool inside its cluster: the lower-cased ARM name.
    NodePoolId, "node pool id", 15, "1 to 15 lower-case letters, digits and '-'";
    /// The id of an external auth inside its cluster: the lower-cased ARM name.
    ExternalAuthId, "external auth id", 15, "1 to 15 lower-case letters, digits and '-'";
    /// The id of a break-glass credential.
    CredentialId, "credential id", 63, "1 to 63 lower-case letters, digits and '-'";
}

/// Seconds of the first KSUID.
const EPOCH: i64 = 1_400_000_000;

impl ClusterId {
    /// An id that sorts by time: 4 bytes of seconds and 16 random ones, in lower-case base32hex.
    pub fn mint(now: aro_base::Timestamp, random: [u8; 16]) -> Self {
        let seconds = u32::try_from((now.as_second() - EPOCH).clamp(0, i64::from(u32::MAX))).unwrap_or(0);
        let mut bytes = [0_u8; 20];
        let (time, rest) = bytes.split_at_mut(4);
        time.copy_from_slice(&seconds.to_be_bytes());
        rest.copy_from_slice(&random);
        Self(base32hex(&bytes))
    }
}

const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// Lower-case base32hex of a multiple of five bytes, without padding.
fn base32hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for five in bytes.chunks(5) {
        let group = five.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        for place in (0..8).rev() {
            text.push(char::from(DIGITS[(group >> (place * 5) & 31) as usize]));
        }
    }
    text
}

/// The id of a provision shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShardId(Uuid);

impl ShardId {
    /// The shard with this UUID.
    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// Checks a text.
    pub fn parse(text: &str) -> Result<Self, BadId> {
        Uuid::try_parse(text).map(Self).map_err(|_| bad(text, "provision shard id", "a UUID"))
    }

    /// The UUID.
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl std::str::FromStr for ShardId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minted_cluster_ids_are_32_characters_and_sort_by_time() {
        let at = |seconds: i64, byte: u8| {
            ClusterId::mint(aro_base::Timestamp::from_second(seconds).unwrap(), [byte; 16])
        };
        let (early, late) = (at(1_700_000_000, 0xff), at(1_700_000_001, 0));
        assert_eq!(early.as_str().len(), 32);
        assert!(early < late);
        assert_eq!(ClusterId::parse(late.as_str()).unwrap(), late);
        assert_eq!(at(0, 0).as_str(), "0".repeat(32));
        assert_eq!(base32hex(b"fooba"), "cpnmuoj1");
    }

    #[test]
    fn ids_with_upper_case_or_separators_are_refused() {
        for good in ["a", "np-1", "2qrppk0otds3rdmdcojqcqkqq8f0s591"] {
            assert!(ClusterId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "a/b", "-a", "a-", "a_b", &"a".repeat(33), "ü"] {
            assert!(ClusterId::parse(bad).is_err(), "{bad}");
        }
        assert!(NodePoolId::parse("sixteencharacter").is_err());
        assert!(ShardId::parse("nouuid").is_err());
    }
}
