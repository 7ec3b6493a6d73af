//! Why a pass over a resource fails.

use std::time::Duration;

use aro_arm::operation::OperationError;
use aro_base::{Class, Classify};
use aro_peers::CallError;
use aro_store::{CollectionError, StoreError};

/// How long a change waits that Clusters Service does not take now. Its event feed enqueues the key earlier.
const NOT_NOW: Duration = Duration::from_secs(2);

/// How long a difference stays that no operation asks to remove and that Clusters Service refuses to.
const REFUSED_DRIFT: Duration = Duration::from_mins(5);

/// Why a pass fails.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// A call of Clusters Service failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A document was not read or written.
    #[error(transparent)]
    Store(#[from] CollectionError),
    /// Clusters Service does not take the change in its present state.
    #[error("Clusters Service does not take the change now: {0}")]
    NotNow(String),
    /// Clusters Service refuses to remove a difference that no operation asks to remove.
    #[error("Clusters Service refuses to change what differs: {0}")]
    DriftRefused(String),
    /// Clusters Service refuses what the operation asks for.
    #[error("operation {operation} is refused: {}", .error.message)]
    Rejected {
        /// The operation's name.
        operation: String,
        /// What its caller reads.
        error: OperationError,
    },
}

impl From<StoreError> for WorkError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

impl Classify for WorkError {
    fn class(&self) -> Class {
        match self {
            // What is refused for good becomes `Rejected` where an operation can carry the reason.
            Self::Call(_) => Class::Retry,
            Self::Store(error) => error.class(),
            Self::NotNow(_) => Class::Wait(NOT_NOW),
            Self::DriftRefused(_) => Class::Wait(REFUSED_DRIFT),
            Self::Rejected { .. } => Class::Terminal,
        }
    }
}
