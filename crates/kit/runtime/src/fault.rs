//! An error that says what was being done and keeps its cause.

use std::error::Error;

use aro_base::{Class, Classify};

/// What a role or a task reports when it cannot go on: one sentence, and the cause behind it.
///
/// Roles differ too much for one enum of their failures, and no code matches on them: the process prints the
/// chain and stops. Errors one can act on stay enums inside the role.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Fault {
    what: String,
    #[source]
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Fault {
    /// A fault without a cause.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None }
    }

    /// A fault with its cause. `what` says what was being done and does not repeat the cause.
    pub fn caused(what: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { what: what.into(), source: Some(source.into()) }
    }
}

impl Classify for Fault {
    /// A fault has no variants to decide by, so the work is retried. Errors that can be terminal are enums.
    fn class(&self) -> Class {
        Class::Retry
    }
}
