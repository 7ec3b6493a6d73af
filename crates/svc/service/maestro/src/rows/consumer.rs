//! A consumer: one target cluster.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Moment;
use crate::fault::{Code, Fault};

/// The longest name: it becomes the name of a namespace.
const MAX_NAME: usize = 63;

/// One consumer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumer {
    /// A UUID.
    pub id: String,
    /// Unique; bundles name it.
    pub name: String,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// When it was created.
    pub created_at: Moment,
    /// When it last changed.
    pub updated_at: Moment,
    /// When a removal began; no bundle may be created for it meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving_since: Option<Moment>,
    /// Whether orphans on its cluster may be deleted.
    #[serde(default, skip_serializing_if = "OrphanDeletion::is_allowed", rename = "standing")]
    pub orphan_deletion: OrphanDeletion,
}

/// Whether works that an agent has and the store does not know may be deleted. The store may be an empty one that the server
/// was given by mistake. Serialized names are those of stored documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrphanDeletion {
    /// No bundle was created for the consumer yet.
    #[serde(rename = "new")]
    Undecided,
    /// The agent reported works before any bundle was created here. An operator has to allow the deletion, or the agent has
    /// to report that no unknown work is left.
    #[serde(rename = "disputed")]
    Blocked,
    /// Orphans are deleted.
    #[default]
    #[serde(rename = "believed")]
    Allowed,
}

impl OrphanDeletion {
    // The signature that serde requires.
    #[expect(clippy::trivially_copy_pass_by_ref)]
    fn is_allowed(&self) -> bool {
        *self == Self::Allowed
    }
}

/// Checks the name of a consumer: an RFC 1123 label.
pub fn check_name(name: &str) -> Result<(), Fault> {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let good = !name.is_empty()
        && name.len() <= MAX_NAME
        && name.chars().all(|c| word(c) || c == '-')
        && name.starts_with(word)
        && name.ends_with(word);
    if good {
        return Ok(());
    }
    let reason = "name must consist of lower-case letters, digits and '-', begin and end with a letter or digit, and have at most 63 characters";
    Err(Fault::new(Code::Validation, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumer_name_is_a_dns_label() {
        let long = "a".repeat(63);
        for good in ["a", "cluster1", "1-a", "7ff1a8f4-8811-49b4-8c19-9271bc51975e", &long] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "-a", "a-", "a_b", "a.b", "ü", &format!("{long}a")] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
