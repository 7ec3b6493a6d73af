//! Long-running operations, by the rules of the Resource Manager RPC: a pure state machine.
//!
//! A reply starts an operation ([`start`]); each poll's reply moves it on ([`step`]). The driver in `arm/operation.rs` sends
//! the requests and waits.

use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;
use url::Url;

use crate::compare::provisioning_state;
use crate::error::ServiceError;

/// What is asked for the state of the operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Poll {
    /// The URL of `Azure-AsyncOperation`.
    Status(Url),
    /// The URL of `Location`.
    Location(Url),
    /// The resource itself.
    Resource,
}

/// Where the result is when the operation has succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finish {
    /// There is none.
    Nothing,
    /// The resource is read.
    Resource,
    /// The URL of `Location` is read.
    Location(Url),
    /// The last reply is the result.
    Reply,
}

/// How an operation begins or goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// It has ended well.
    Done(Finish),
    /// Ask again.
    Running { poll: Poll, finish: Finish },
    /// It has ended badly.
    Failed { state: String, error: ServiceError },
    /// The reply breaks the protocol.
    Broken(&'static str),
}

/// A reply, parsed.
#[derive(Debug)]
pub(crate) struct Reply<'a> {
    pub(crate) status: StatusCode,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a Value,
}

/// The first step: the reply to the request itself, which succeeded. `base` is the URL of the request.
pub(crate) fn start(method: &Method, reply: &Reply<'_>, base: &Url) -> Step {
    let link = |name: &str| -> Result<Option<Url>, &'static str> {
        let Some(value) = reply.headers.get(name) else { return Ok(None) };
        let link = value.to_str().ok().and_then(|text| base.join(text).ok());
        link.map(Some).ok_or("a link of the operation is not a URL")
    };
    let (status_url, location) = match (link("azure-asyncoperation"), link("location")) {
        (Ok(status_url), Ok(location)) => (status_url, location),
        (Err(broken), _) | (_, Err(broken)) => return Step::Broken(broken),
    };
    let accepted = reply.status == StatusCode::ACCEPTED;
    if let Some(url) = status_url.filter(|_| reply.status != StatusCode::NO_CONTENT) {
        return Step::Running { poll: Poll::Status(url), finish: finish(method, accepted, location) };
    }
    match location.filter(|_| accepted) {
        Some(url) => Step::Running {
            finish: if writes(method) { Finish::Resource } else { Finish::Reply },
            poll: Poll::Location(url),
        },
        None if accepted && *method == Method::POST => Step::Broken("accepted, without a link to follow"),
        None if accepted => Step::Running { poll: Poll::Resource, finish: Finish::Reply },
        None => by_resource(method, reply),
    }
}

fn writes(method: &Method) -> bool {
    *method == Method::PUT || *method == Method::PATCH
}

fn finish(method: &Method, accepted: bool, location: Option<Url>) -> Finish {
    match location {
        _ if writes(method) => Finish::Resource,
        Some(url) if accepted && *method == Method::POST => Finish::Location(url),
        _ => Finish::Nothing,
    }
}

/// Without links the resource's own state counts, if the reply shows the resource.
fn by_resource(method: &Method, reply: &Reply<'_>) -> Step {
    if !writes(method) {
        return Step::Done(Finish::Reply);
    }
    match provisioning_state(reply.body) {
        None => Step::Done(Finish::Reply),
        Some(state) => {
            by_state(state, reply, || Step::Running { poll: Poll::Resource, finish: Finish::Reply })
        }
    }
}

fn by_state(state: &str, reply: &Reply<'_>, running: impl FnOnce() -> Step) -> Step {
    match state.to_ascii_lowercase().as_str() {
        "succeeded" => Step::Done(Finish::Reply),
        "failed" | "canceled" => {
            let mut error = ServiceError::of_value(reply.status, reply.body);
            if reply.body.get("error").is_none() {
                error.code = format!("Provisioning{state}");
            }
            Step::Failed { state: state.to_owned(), error }
        }
        _ => running(),
    }
}

/// A further step: the reply to a poll. Transient failures are not passed in.
pub(crate) fn step(method: &Method, poll: &Poll, finish: &Finish, reply: &Reply<'_>, base: &Url) -> Step {
    match poll {
        Poll::Status(url) => step_status(method, url, finish, reply),
        Poll::Location(url) => step_location(method, url, finish, reply, base),
        Poll::Resource => step_resource(method, finish, reply),
    }
}

fn step_status(method: &Method, url: &Url, finish: &Finish, reply: &Reply<'_>) -> Step {
    // The record of an old operation is gone; the resource itself still tells.
    if reply.status == StatusCode::NOT_FOUND && *method != Method::POST {
        return Step::Running { poll: Poll::Resource, finish: Finish::Reply };
    }
    if !reply.status.is_success() {
        return refused(reply);
    }
    let running = || Step::Running { poll: Poll::Status(url.clone()), finish: finish.clone() };
    let state = reply.body.get("status").and_then(Value::as_str);
    match state.or_else(|| provisioning_state(reply.body)) {
        Some(state) => match by_state(state, reply, running) {
            Step::Done(_) => Step::Done(finish.clone()),
            other => other,
        },
        None if reply.status == StatusCode::ACCEPTED => running(),
        None => Step::Broken("the status of the operation has no state"),
    }
}

fn step_location(method: &Method, url: &Url, finish: &Finish, reply: &Reply<'_>, base: &Url) -> Step {
    match reply.status {
        StatusCode::ACCEPTED => {
            // The link may move.
            let moved = reply.headers.get("location").and_then(|value| value.to_str().ok());
            let poll = moved.and_then(|text| base.join(text).ok()).unwrap_or_else(|| url.clone());
            Step::Running { poll: Poll::Location(poll), finish: finish.clone() }
        }
        StatusCode::NOT_FOUND if *method == Method::DELETE => Step::Done(Finish::Nothing),
        StatusCode::NOT_FOUND if writes(method) => {
            Step::Running { poll: Poll::Resource, finish: Finish::Reply }
        }
        status if status.is_success() => Step::Done(finish.clone()),
        _ => refused(reply),
    }
}

fn step_resource(method: &Method, finish: &Finish, reply: &Reply<'_>) -> Step {
    let running = || Step::Running { poll: Poll::Resource, finish: finish.clone() };
    match (reply.status, provisioning_state(reply.body)) {
        (StatusCode::NOT_FOUND, _) if *method == Method::DELETE => Step::Done(Finish::Nothing),
        (StatusCode::NOT_FOUND, _) if *method == Method::GET => Step::Done(Finish::Nothing),
        // A new resource may not be visible everywhere yet.
        (StatusCode::NOT_FOUND, _) => running(),
        (status, _) if !status.is_success() => refused(reply),
        // The deletion has failed only if the cloud reports it; the resource is still there.
        (_, state) if *method == Method::DELETE => match state {
            Some(state) if state.eq_ignore_ascii_case("failed") => by_state(state, reply, running),
            _ => running(),
        },
        (_, None) => Step::Done(Finish::Reply),
        (_, Some(state)) => by_state(state, reply, running),
    }
}

fn refused(reply: &Reply<'_>) -> Step {
    let error = ServiceError::of_value(reply.status, reply.body);
    Step::Failed { state: "Failed".to_owned(), error }
}

#[cfg(test)]
mod tests;
