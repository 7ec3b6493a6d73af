//! Errors of the directory's own operations. What the protocols answer is in their modules.

use aro_base::{Class, Classify};
use aro_pki::PkiError;
use aro_store::{CollectionError, StoreError};
use uuid::Uuid;

/// Why an operation on the directory failed.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The store failed.
    #[error("access the directory's documents")]
    Documents(#[source] CollectionError),
    /// A key or certificate could not be made or read.
    #[error("make or read a key of the directory")]
    Key(#[source] PkiError),
    /// There is no such tenant.
    #[error("tenant `{0}` does not exist")]
    UnknownTenant(Uuid),
    /// There is no such application.
    #[error("application `{0}` does not exist")]
    UnknownApplication(Uuid),
    /// An application has as many of something as it may have.
    #[error("the application has too many {0}")]
    TooMany(&'static str),
    /// An argument cannot be used.
    #[error("{0}")]
    Invalid(&'static str),
}

impl From<CollectionError> for DirectoryError {
    fn from(error: CollectionError) -> Self {
        Self::Documents(error)
    }
}

impl From<StoreError> for DirectoryError {
    fn from(error: StoreError) -> Self {
        Self::Documents(error.into())
    }
}

impl From<PkiError> for DirectoryError {
    fn from(error: PkiError) -> Self {
        Self::Key(error)
    }
}

impl Classify for DirectoryError {
    fn class(&self) -> Class {
        match self {
            Self::Documents(error) => error.class(),
            _ => Class::Terminal,
        }
    }
}
