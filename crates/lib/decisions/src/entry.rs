//! One decision of a role.

use aro_base::Timestamp;
use serde::{Deserialize, Serialize};

/// The longest text of an entry, in bytes; longer ones are cut.
const MAX_TEXT: usize = 4096;
/// The most names of an entry.
const MAX_SUBJECTS: usize = 8;

/// What a role decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// ARM's correlation id of the request that led here.
    pub correlation_id: Option<String>,
    /// The names of the thing: resource ids, hrefs, operation ids, bundle ids. The id of the hosted cluster, or of one of its
    /// children, should be among them.
    pub subjects: Vec<String>,
    /// What the entry is about: `preflight`, `managed-resource-group`, `publish`.
    pub step: &'static str,
    /// How it went.
    pub outcome: Outcome,
    /// One sentence for the operator. No secrets.
    pub detail: String,
}

/// How a step went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum Outcome {
    /// It began.
    Started,
    /// It is done.
    Done,
    /// It waits for something.
    Waiting {
        /// For what.
        on: String,
    },
    /// It failed for good.
    Failed {
        /// Why.
        reason: String,
    },
}

/// An entry as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// When it was recorded.
    pub at: Timestamp,
    /// Orders the entries of one role in one instant.
    pub sequence: u64,
    /// The role.
    pub role: String,
    /// See [`Entry::correlation_id`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// See [`Entry::subjects`].
    pub subjects: Vec<String>,
    /// See [`Entry::step`].
    pub step: String,
    /// See [`Entry::outcome`].
    pub outcome: Outcome,
    /// See [`Entry::detail`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl Recorded {
    /// An entry of a role, within the limits of what is stored.
    pub(crate) fn new(entry: Entry, role: &str, at: Timestamp, sequence: u64) -> Self {
        let subjects = entry.subjects.into_iter().take(MAX_SUBJECTS).map(|name| subject(&name));
        let outcome = match entry.outcome {
            Outcome::Waiting { on } => Outcome::Waiting { on: cut(on) },
            Outcome::Failed { reason } => Outcome::Failed { reason: cut(reason) },
            other => other,
        };
        Self {
            at,
            sequence,
            role: role.to_owned(),
            correlation_id: entry.correlation_id.map(cut),
            subjects: subjects.filter(|name| !name.is_empty()).collect(),
            step: entry.step.to_owned(),
            outcome,
            detail: cut(entry.detail),
        }
    }

    /// About how much memory it takes.
    pub(crate) fn size(&self) -> usize {
        256 + self.detail.len() + self.subjects.iter().map(String::len).sum::<usize>()
    }
}

/// A name in the form it is compared in.
pub(crate) fn subject(name: &str) -> String {
    let trimmed = name.trim().trim_end_matches('/');
    // Clusters Service serves the same things below two roots.
    let trimmed = trimmed
        .strip_prefix("/api/clusters_mgmt/v1/clusters/")
        .or_else(|| trimmed.strip_prefix("/api/aro_hcp/v1alpha1/clusters/"))
        .unwrap_or(trimmed);
    cut(trimmed.to_lowercase())
}

/// The id of the hosted cluster that a name belongs to, if it is a resource id below one.
pub(crate) fn hosted_cluster(subject: &str) -> Option<&str> {
    const KIND: &str = "/providers/microsoft.redhatopenshift/hcpopenshiftclusters/";
    let at = subject.find(KIND)? + KIND.len();
    let name = subject.get(at..)?.split('/').next()?;
    subject.get(..at + name.len())
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let end = (0..=MAX_TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_belongs_to_its_cluster_and_an_href_to_its_id() {
        let pool = subject(
            "/subscriptions/S/resourceGroups/G/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/C/nodePools/n",
        );
        let cluster =
            "/subscriptions/s/resourcegroups/g/providers/microsoft.redhatopenshift/hcpopenshiftclusters/c";
        assert_eq!(hosted_cluster(&pool), Some(cluster));
        assert_eq!(hosted_cluster("2abc"), None);
        assert_eq!(
            subject("/api/clusters_mgmt/v1/clusters/2abc"),
            subject("/api/aro_hcp/v1alpha1/clusters/2ABC/")
        );
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        let entry = Entry {
            correlation_id: None,
            subjects: vec!["x".to_owned(); 20],
            step: "s",
            outcome: Outcome::Failed { reason: "ü".repeat(MAX_TEXT) },
            detail: "ü".repeat(MAX_TEXT),
        };
        let recorded = Recorded::new(entry, "role", Timestamp::UNIX_EPOCH, 1);
        assert!(recorded.detail.len() <= MAX_TEXT && recorded.subjects.len() == MAX_SUBJECTS);
    }
}
