//! Entries and aliases as documents.
//!
//! The partition of an entry is the id of its hosted cluster, or its first name where it has none. An alias is a document in
//! the partition of the other name, so that a read by any name is a point read.

use std::time::Duration;

use aro_store::{
    Collection, Container, DocId, DocKey, Kind, Names, PartitionKey, SharedStore, UnreadableDocuments,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::entry::Recorded;

/// Where the journal is.
const DECISIONS: Container = Container::new("Decisions");
/// How long entries are kept: as long as operations.
const KEPT: Duration = Duration::from_hours(7 * 24);
const ENTRY: Kind<Recorded> = Kind::new("entries").expiring(KEPT);
/// Aliases outlive the entries that they lead to, for they are written once.
const ALIAS: Kind<Alias> = Kind::new("aliases").expiring(Duration::from_hours(14 * 24)).by_key_only();

/// Leads from one name to the partition with the entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Alias {
    /// The partition.
    pub of: String,
}

/// The two collections.
#[derive(Clone)]
pub(crate) struct Documents {
    pub entries: Collection<Recorded>,
    pub aliases: Collection<Alias>,
}

impl Documents {
    pub fn new(store: &SharedStore, unreadable: &UnreadableDocuments) -> Self {
        Self {
            entries: Collection::new(store.clone(), DECISIONS, ENTRY, unreadable.clone()),
            aliases: Collection::new(store.clone(), DECISIONS, ALIAS, unreadable.clone()),
        }
    }

    /// The key of the alias of a name.
    pub fn alias_key(subject: &str) -> DocKey {
        DocKey { container: DECISIONS, partition: PartitionKey::new(subject), id: DocId::new("alias") }
    }

    pub fn alias_names() -> Names {
        Names { id: DocId::new("alias"), resource_id: String::new() }
    }

    /// What names an entry. Ids sort by time; the random part tells replicas apart.
    pub fn entry_names(entry: &Recorded) -> Names {
        let nanos = entry.at.as_nanosecond().max(0);
        let id = format!("{nanos:024}-{:08}-{}", entry.sequence, Uuid::new_v4().simple());
        Names { id: DocId::new(&id), resource_id: format!("/{id}") }
    }
}
