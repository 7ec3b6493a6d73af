//! What is recorded of a saga, and the port that stores it.

use aro_base::{Class, Classify, Timestamp};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::FencingToken;

/// Where a saga stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "phase")]
pub enum Phase {
    /// It goes forward.
    Running,
    /// A step failed; what was done is undone in reverse order.
    Undoing {
        /// The step that failed.
        step: String,
        /// Why.
        reason: String,
    },
    /// Every step is done.
    Completed,
    /// A step failed, and everything is undone.
    Failed {
        /// The step that failed.
        step: String,
        /// Why.
        reason: String,
    },
    /// It goes neither forward nor back until it is resumed.
    Stuck {
        /// The step that failed, forward or in its undo.
        step: String,
        /// Why.
        reason: String,
        /// The failure that is being undone; `None` if the saga goes forward.
        undoing: Option<Waiting>,
    },
}

/// A step and what it waits for, or why it failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The step.
    pub step: String,
    /// What it waits for.
    pub reason: String,
}

/// The journal of one saga of one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The saga's name.
    pub saga: String,
    /// The version of its steps.
    pub version: u16,
    /// Where it stands.
    #[serde(flatten)]
    pub phase: Phase,
    /// Steps that are done.
    pub done: Vec<String>,
    /// Steps that are undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<String>,
    /// When the present stage, or the present undo, began.
    pub since: Timestamp,
    /// What the present stage waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The saga's state.
    pub state: Value,
}

/// Names a stored state of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision(pub String);

/// A record as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The record.
    pub record: Record,
    /// To name in the next write.
    pub revision: Revision,
}

/// Why a journal was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another writer was faster, or holds the lease now.
    #[error("another writer changed the journal of `{key}`")]
    Conflict {
        /// Whose.
        key: String,
    },
    /// The journal's own failure.
    #[error("the journal of `{key}` is not available")]
    Failed {
        /// Whose.
        key: String,
        /// Whether another attempt can help.
        class: Class,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Classify for JournalError {
    fn class(&self) -> Class {
        match self {
            Self::Conflict { .. } => Class::Retry,
            Self::Failed { class, .. } => *class,
        }
    }
}

/// Stores the journals of sagas. `port/store` implements it over a document in the partition of what the saga works on.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Reads the journal of a saga of a key.
    async fn load(&self, key: &str, saga: &str) -> Result<Option<Entry>, JournalError>;

    /// Creates it (`read` is `None`), or replaces what was read. With a token the write fails once a later holder of the
    /// lease has written.
    async fn store(
        &self,
        key: &str,
        record: &Record,
        read: Option<&Revision>,
        token: Option<FencingToken>,
    ) -> Result<Revision, JournalError>;

    /// Removes it, if it is there.
    async fn remove(&self, key: &str, saga: &str, token: Option<FencingToken>) -> Result<(), JournalError>;
}
