//! A consumer: one cluster that bundles go to, as the server knows it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Moment;
use crate::fault::{Code, Fault};

/// How long a name may be: it becomes a namespace's.
const MAX_NAME: usize = 63;

/// One consumer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumer {
    /// A UUID.
    pub id: String,
    /// Unique; bundles name it.
    pub name: String,
    /// Free texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// When it was created.
    pub created_at: Moment,
    /// When it last changed.
    pub updated_at: Moment,
    /// Somebody began to remove it then, and nothing may be created for it meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving_since: Option<Moment>,
    /// Whether the store is believed that nothing but what it knows is wanted.
    #[serde(default, skip_serializing_if = "Standing::is_believed")]
    pub standing: Standing,
}

/// Whether a store that does not know what an agent has is believed that nobody wants it. It may be an empty one that was
/// given to the server by mistake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    /// Nothing was wanted for the consumer here yet.
    New,
    /// Its agent came with something before anything was wanted here: somebody has to say that the store is right, or the
    /// agent that there is nothing unknown left.
    Disputed,
    /// It is.
    #[default]
    Believed,
}

impl Standing {
    // The form that serde asks for.
    #[expect(clippy::trivially_copy_pass_by_ref)]
    fn is_believed(&self) -> bool {
        *self == Self::Believed
    }
}

/// Whether a name may be a consumer's: an RFC 1123 label.
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
    fn a_name_is_a_label() {
        let long = "a".repeat(63);
        for good in ["a", "cluster1", "1-a", "7ff1a8f4-8811-49b4-8c19-9271bc51975e", &long] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "-a", "a-", "a_b", "a.b", "ü", &format!("{long}a")] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
