//! Why a step fails.

use std::fmt;
use std::time::Duration;

use aro_base::{Class, Classify, chain};

/// Why a step fails, and what the driver does about it. The text is kept in the journal and shown to operators: it names the
/// resource and the cause, and holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StepError {
    message: String,
    class: Class,
    follows: bool,
}

impl StepError {
    /// Something that may pass.
    pub fn retry(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), class: Class::Retry, follows: false }
    }

    /// Something that is not there yet; look again after this long.
    pub fn wait(message: impl fmt::Display, after: Duration) -> Self {
        Self { message: message.to_string(), class: Class::Wait(after), follows: false }
    }

    /// Something that no further attempt can repair.
    pub fn terminal(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), class: Class::Terminal, follows: false }
    }

    /// Another error, with all its causes and its class.
    pub fn of<E: Classify + std::error::Error + 'static>(error: &E) -> Self {
        Self { message: chain(error).to_string(), class: error.class(), follows: false }
    }

    /// The same error of another class, where the step knows better.
    #[must_use]
    pub fn with_class(self, class: Class) -> Self {
        Self { class, ..self }
    }

    /// An error that only follows from an earlier one of the same step, e.g. a call that was not made because the service refused
    /// an earlier one for a while: the earlier one stays the cause that is shown.
    #[must_use]
    pub fn that_follows(self) -> Self {
        Self { follows: true, ..self }
    }

    /// Whether it only follows from an earlier one.
    pub fn follows(&self) -> bool {
        self.follows
    }

    /// The text.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl Classify for StepError {
    fn class(&self) -> Class {
        self.class
    }
}
