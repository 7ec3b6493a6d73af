//! Long-running operations as clients follow them: the headers of an accepted write, the status, the result.
//!
//! Where operations are stored, what they do and which callers may see them is the provider's business.

use aro_arm::operation::{OperationError, StatusView};
use aro_arm::{Code, ResourceId};
use aro_base::Timestamp;
use http::StatusCode;

use crate::answer::Answer;
use crate::caller::Caller;
use crate::failure::Failure;

/// The operation behind an answer.
#[derive(Debug)]
pub struct Followed<'a> {
    /// The id under which its status is read.
    pub status_id: &'a ResourceId,
    /// The id under which its result is read.
    pub result_id: &'a ResourceId,
    pub started: Timestamp,
    /// Whether the provider will notify ARM of its end.
    pub notifies: bool,
}

/// Adds the headers by which a client follows an accepted write. `Location` is not part of a PUT's answer.
pub fn follow(
    answer: Answer,
    caller: &Caller,
    api_version: &str,
    operation: &Followed<'_>,
    with_location: bool,
) -> Answer {
    let url = caller.url();
    let answer = answer
        .header("azure-asyncoperation", &url.to(operation.status_id, api_version))
        .retry_after(Some(poll_after(operation.started, operation.started)));
    let answer = match with_location {
        true => answer.header("location", &url.to(operation.result_id, api_version)),
        false => answer,
    };
    match operation.notifies {
        true => answer.header("azure-asyncnotification", "Enabled"),
        false => answer,
    }
}

/// The answer to a client that polls the status. Always 200; the state is in the body.
pub fn status(view: &StatusView<'_>, now: Timestamp) -> Answer {
    let answer = Answer::json(StatusCode::OK, view);
    match view.is_terminal() {
        true => answer,
        false => answer.retry_after(Some(poll_after(view.started(), now))),
    }
}

/// The answer to a client that asks for the result of an operation under way.
pub fn result_pending(
    caller: &Caller,
    api_version: &str,
    operation: &Followed<'_>,
    now: Timestamp,
) -> Answer {
    Answer::empty(StatusCode::ACCEPTED)
        .header("location", &caller.url().to(operation.result_id, api_version))
        .retry_after(Some(poll_after(operation.started, now)))
}

/// The result of an operation that failed or was cancelled.
pub fn result_failed(error: Option<OperationError>) -> Failure {
    Failure::OperationFailed(error.unwrap_or_else(|| OperationError {
        code: Code::InternalServerError.as_str().to_owned(),
        message: "The operation failed without saying why.".to_owned(),
        target: None,
        details: Vec::new(),
    }))
}

/// How long a client should wait before it polls again, in seconds: briefly at first, since most operations take a
/// moment; less often when one takes long.
pub fn poll_after(started: Timestamp, now: Timestamp) -> u32 {
    match now.duration_since(started).as_secs() {
        ..30 => 1,
        30..300 => 5,
        _ => 15,
    }
}

#[cfg(test)]
mod tests {
    use aro_base::SignedDuration;

    use super::*;

    #[test]
    fn a_client_polls_less_often_the_longer_an_operation_takes() {
        let started = Timestamp::UNIX_EPOCH;
        for (seconds, pause) in [(0, 1), (29, 1), (30, 5), (299, 5), (300, 15), (7200, 15)] {
            let now = started.checked_add(SignedDuration::from_secs(seconds)).unwrap();
            assert_eq!(poll_after(started, now), pause, "{seconds}");
        }
    }
}
