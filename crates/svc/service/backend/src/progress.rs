//! How far an operation is, judged by what is observed. Pure.

use aro_arm::error::Code;
use aro_arm::operation::{OperationError, ProvisioningState};

/// One source's judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The state it asks for.
    pub state: ProvisioningState,
    /// Why it failed.
    pub error: Option<OperationError>,
    /// What is still missing.
    pub message: String,
}

impl Progress {
    /// Nothing is missing.
    pub fn done() -> Self {
        Self { state: ProvisioningState::Succeeded, error: None, message: String::new() }
    }

    /// Something is missing.
    pub fn waits(state: ProvisioningState, message: impl Into<String>) -> Self {
        Self { state, error: None, message: message.into() }
    }

    /// It failed.
    pub fn failed(error: OperationError) -> Self {
        Self { state: ProvisioningState::Failed, message: error.message.clone(), error: Some(error) }
    }

    /// The worst of several judgements: the lowest state by priority, with everything that is missing.
    pub fn worst(judgements: impl IntoIterator<Item = Self>) -> Self {
        let mut worst = Self::done();
        let mut messages = Vec::new();
        for judged in judgements {
            if !judged.message.is_empty() {
                messages.push(judged.message.clone());
            }
            if priority(judged.state) < priority(worst.state) {
                worst = judged;
            }
        }
        worst.message = messages.join("; ");
        worst
    }
}

/// Lower is worse.
fn priority(state: ProvisioningState) -> u8 {
    match state {
        ProvisioningState::Failed => 0,
        ProvisioningState::Canceled => 10,
        ProvisioningState::Deleting => 20,
        ProvisioningState::Provisioning => 30,
        ProvisioningState::AwaitingSecret => 35,
        ProvisioningState::Updating => 40,
        ProvisioningState::Accepted => 50,
        ProvisioningState::Succeeded => 100,
    }
}

/// An error for the caller of an operation.
pub fn error(code: Code, message: impl Into<String>) -> OperationError {
    named_error(code.as_str(), message)
}

/// The same with a code of Clusters Service.
pub fn named_error(code: &str, message: impl Into<String>) -> OperationError {
    OperationError { code: code.to_owned(), message: message.into(), target: None, details: Vec::new() }
}

#[cfg(test)]
mod tests {
    use ProvisioningState as State;

    use super::*;

    #[test]
    fn the_worst_state_decides_and_every_message_is_kept() {
        let worst = Progress::worst([
            Progress::done(),
            Progress::waits(State::Updating, "a"),
            Progress::waits(State::Provisioning, "b"),
            Progress::waits(State::Accepted, ""),
        ]);
        assert_eq!((worst.state, worst.message.as_str()), (State::Provisioning, "a; b"));
        let failed = Progress::worst([
            Progress::waits(State::Provisioning, "x"),
            Progress::failed(error(Code::Conflict, "y")),
        ]);
        assert_eq!((failed.state, failed.message.as_str()), (State::Failed, "x; y"));
        assert_eq!(failed.error.unwrap().code, "Conflict");
        assert_eq!(Progress::worst([]), Progress::done());
    }
}
