//! Errors of the store, by what a caller can do about them.

use aro_base::{Class, Classify, ETag};

use crate::{BatchError, DocKey};

/// Why a store call failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A precondition did not hold; nothing of the batch was written.
    #[error("operation {index} of the batch conflicts on `{key}`")]
    Conflict {
        /// Which operation of the batch, from 0.
        index: usize,
        /// Which document.
        key: DocKey,
        /// Its etag now; `None` if there is no live document.
        now: Option<ETag>,
    },
    /// The batch breaks the contract; a bug of the caller.
    #[error("the batch is not allowed")]
    Batch(#[source] BatchError),
    /// A continuation token that this store did not hand out for this query.
    #[error("the continuation token is not valid")]
    BadToken,
    /// The feed can no longer prove that nothing is missing: list everything, then follow from `latest_cursor`.
    #[error("the change-feed cursor is too old or not one of ours; list again")]
    CursorExpired,
    /// The backend did not answer or is overloaded. A write may or may not have happened.
    #[error("the store is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What is stored cannot be read.
    #[error("the store holds something that cannot be read")]
    Corrupt(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Classify for StoreError {
    fn class(&self) -> Class {
        match self {
            Self::Conflict { .. } | Self::Unavailable(_) => Class::Retry,
            Self::Batch(_) | Self::BadToken | Self::CursorExpired | Self::Corrupt(_) => Class::Terminal,
        }
    }
}
