//! The change feed: the latest version of every changed document, at least once, in order within a partition.

use serde::{Deserialize, Serialize};

use crate::{DocKey, Document};

/// A position in a container's feed. Store it after handling what came before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(String);

impl Cursor {
    /// Wraps the text of a cursor, as stored by a consumer or as made by an adapter.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text to store.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One delivery. Intermediate versions may be skipped; the same one may come twice. Expiry by TTL is not delivered.
#[derive(Debug, Clone)]
pub enum Change {
    /// The document was created or replaced.
    Upsert(Document),
    /// The document was deleted.
    Delete {
        /// Which one.
        key: DocKey,
        /// What kind it was.
        resource_type: String,
        /// Its resource id.
        resource_id: String,
        /// The version its deletion counts as; greater than any version it had.
        version: u64,
    },
}

impl Change {
    /// The document it is about.
    pub fn key(&self) -> &DocKey {
        match self {
            Self::Upsert(document) => &document.key,
            Self::Delete { key, .. } => key,
        }
    }

    /// The version it is about.
    pub fn version(&self) -> u64 {
        match self {
            Self::Upsert(document) => document.version,
            Self::Delete { version, .. } => *version,
        }
    }
}

/// A stretch of the feed.
#[derive(Debug, Clone)]
pub struct ChangePage {
    /// The changes, in order within each partition.
    pub changes: Vec<Change>,
    /// Where to go on. Equal to the cursor asked with when nothing is new.
    pub next: Cursor,
    /// Whether more is ready right now.
    pub more: bool,
}
