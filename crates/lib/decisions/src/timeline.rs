//! Reading the journal.

use std::collections::BTreeSet;

use aro_runtime::Metrics;
use aro_store::{CollectionError, Page, PartitionKey, SharedStore, UnreadableDocuments};
use serde::Serialize;

use crate::documents::Documents;
use crate::entry::{Outcome, Recorded, hosted_cluster, subject};

/// The most entries of a timeline.
const MAX_ENTRIES: usize = 10_000;
/// The most names that are followed.
const MAX_NAMES: usize = 64;
/// Steps whose end is the end of what a role did before.
const ENDS: [&str; 2] = ["operation", "state"];
/// Entries read at once.
const PAGE: usize = 500;

/// Why a timeline cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("read the decision journal")]
pub struct TimelineError(#[from] CollectionError);

/// Everything that was decided about one thing, in order of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// The name that was asked for.
    pub subject: String,
    /// The entries.
    pub entries: Vec<Recorded>,
    /// Whether there are more than are shown.
    pub truncated: bool,
}

impl Timeline {
    /// Reads the timeline of a resource id, an operation id, an id of Clusters Service, or a bundle id.
    pub async fn read(store: &SharedStore, name: &str) -> Result<Self, TimelineError> {
        let documents = Documents::new(store, &UnreadableDocuments::new(&Metrics::new()));
        let asked = subject(name);
        let mut waiting = vec![hosted_cluster(&asked).map_or_else(|| asked.clone(), str::to_owned)];
        let (mut seen, mut entries) = (BTreeSet::new(), Vec::new());
        let mut truncated = false;
        while let Some(name) = waiting.pop() {
            if seen.len() >= MAX_NAMES || !seen.insert(name.clone()) {
                continue;
            }
            if let Some(alias) = documents.aliases.find(&Documents::alias_key(&name)).await? {
                waiting.push(alias.value.of);
            }
            let query = documents.entries.in_partition(&PartitionKey::new(&name));
            let mut page = Page::first(PAGE);
            loop {
                let listed = documents.entries.page(&query, page).await?;
                entries.extend(listed.items.into_iter().map(|typed| typed.value));
                truncated |= entries.len() >= MAX_ENTRIES;
                match listed.next.filter(|_| !truncated) {
                    Some(after) => page = Page { size: PAGE, after: Some(after) },
                    None => break,
                }
            }
            let known = entries.iter().flat_map(|entry| &entry.subjects);
            waiting.extend(
                known.filter(|name| !seen.contains(*name) && hosted_cluster(name).is_none()).cloned(),
            );
        }
        entries.sort_by(|a, b| (a.at, &a.role, a.sequence).cmp(&(b.at, &b.role, b.sequence)));
        entries.truncate(MAX_ENTRIES);
        Ok(Self { subject: asked, entries, truncated })
    }

    /// What the thing waits for now: the last entry of each step that is neither done nor failed. When a role has ended an
    /// operation, or has reached a state, what it recorded before is history.
    pub fn blockers(&self) -> Vec<&Recorded> {
        let mut last: Vec<&Recorded> = Vec::new();
        for entry in &self.entries {
            let ends = ENDS.contains(&entry.step.as_str())
                && matches!(entry.outcome, Outcome::Done | Outcome::Failed { .. });
            last.retain(|other| other.role != entry.role || (!ends && other.step != entry.step));
            last.push(entry);
        }
        last.retain(|entry| matches!(entry.outcome, Outcome::Started | Outcome::Waiting { .. }));
        last
    }
}
