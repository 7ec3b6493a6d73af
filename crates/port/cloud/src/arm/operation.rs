//! Follows an operation to its end.

use std::time::Duration;

use aro_base::{Class, Classify as _};
use bytes::Bytes;
use http::{Method, Response};
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use super::{ArmClient, body_value};
use crate::error::{CloudError, Failure};
use crate::lro::{Finish, Poll, Reply, Step, start, step};
use crate::pipeline::{Outgoing, Progress};
use crate::retry::retry_after;

/// A service that answers at once with "come back at once" is not asked in a loop.
const SHORTEST_POLL: Duration = Duration::from_millis(10);
/// A longer `Retry-After` is not waited for in full.
const LONGEST_POLL: Duration = Duration::from_mins(2);

/// An operation under way.
struct Operation<'a> {
    /// The request that started it.
    out: &'a Outgoing,
    deadline: Instant,
    polls: u32,
}

impl ArmClient {
    /// Follows the operation that a reply started, and returns its result; `null` if it has none.
    pub(super) async fn follow(
        &self,
        out: &Outgoing,
        progress: &Progress,
        reply: Response<Bytes>,
    ) -> Result<Value, CloudError> {
        let body = body_value(&reply);
        let first = Reply { status: reply.status(), headers: reply.headers(), body: &body };
        let begun = start(&out.method, &first, &out.url);
        self.run(out, progress, begun, body, self.asked_delay(&reply)).await
    }

    /// Waits until a resource is in a final state. `body` is the resource as it was read.
    pub(super) async fn settle(
        &self,
        out: &Outgoing,
        progress: &Progress,
        body: Value,
    ) -> Result<Value, CloudError> {
        let poll = Step::Running { poll: Poll::Resource, finish: Finish::Reply };
        let begun = match crate::compare::provisioning_state(&body) {
            None => Step::Done(Finish::Reply),
            Some(state) if is_final(state) => Step::Done(Finish::Reply),
            Some(_) => poll,
        };
        self.run(out, progress, begun, body, None).await
    }

    async fn run(
        &self,
        out: &Outgoing,
        progress: &Progress,
        mut current: Step,
        mut body: Value,
        mut delay: Option<Duration>,
    ) -> Result<Value, CloudError> {
        let deadline = Instant::now() + self.operation_deadline;
        let mut operation = Operation { out, deadline, polls: 0 };
        loop {
            let (poll, finish) = match current {
                Step::Running { poll, finish } => (poll, finish),
                Step::Done(finish) => return self.result(out, progress, finish, body).await,
                Step::Failed { state, error } => {
                    return Err(progress.error(out, Failure::Operation { state, error }));
                }
                Step::Broken(why) => return Err(progress.error(out, Failure::Protocol(why))),
            };
            let reply = self.poll(&mut operation, progress, &poll, delay).await?;
            body = body_value(&reply);
            delay = self.asked_delay(&reply);
            let parsed = Reply { status: reply.status(), headers: reply.headers(), body: &body };
            current = step(&out.method, &poll, &finish, &parsed, &out.url);
        }
    }

    fn asked_delay(&self, reply: &Response<Bytes>) -> Option<Duration> {
        retry_after(reply.headers(), self.pipeline.core.clock.now())
    }

    /// Waits and asks. An outage does not end the wait: the operation goes on without us.
    async fn poll(
        &self,
        operation: &mut Operation<'_>,
        progress: &Progress,
        poll: &Poll,
        mut delay: Option<Duration>,
    ) -> Result<Response<Bytes>, CloudError> {
        let request = self.poll_request(operation.out, progress, poll)?;
        loop {
            operation.polls = operation.polls.saturating_add(1);
            let wait = delay.take().unwrap_or_else(|| self.polls.delay(operation.polls));
            let wait = wait.clamp(SHORTEST_POLL, LONGEST_POLL);
            if Instant::now() + wait >= operation.deadline {
                return Err(progress.error(operation.out, Failure::Deadline(self.operation_deadline)));
            }
            tokio::time::sleep(wait).await;
            let mut asking =
                Progress::new(self.deadline, self.role_wait, Some(progress.correlation_id.clone()));
            match self.pipeline.exchange(&request, &mut asking).await {
                Ok(reply) if reply.status().is_server_error() || reply.status().as_u16() == 429 => {}
                Ok(reply) => return Ok(reply),
                Err(error) => match error.class() {
                    Class::Retry => {}
                    Class::Wait(wait) => delay = Some(wait),
                    Class::Terminal => return Err(error),
                },
            }
        }
    }

    fn poll_request(&self, out: &Outgoing, progress: &Progress, poll: &Poll) -> Result<Outgoing, CloudError> {
        let url = match poll {
            Poll::Status(url) | Poll::Location(url) => self.check_link(out, progress, url.clone())?,
            Poll::Resource => out.url.clone(),
        };
        Ok(reading(out, url))
    }

    async fn result(
        &self,
        out: &Outgoing,
        progress: &Progress,
        finish: Finish,
        body: Value,
    ) -> Result<Value, CloudError> {
        let url = match finish {
            Finish::Nothing => return Ok(Value::Null),
            Finish::Reply => return Ok(body),
            Finish::Resource => out.url.clone(),
            Finish::Location(url) => self.check_link(out, progress, url)?,
        };
        let request = reading(out, url);
        let mut asking = Progress::new(self.deadline, self.role_wait, Some(progress.correlation_id.clone()));
        let reply = self.pipeline.exchange(&request, &mut asking).await?;
        Ok(body_value(&self.accept(&request, &asking, reply)?))
    }
}

/// A GET in the name of another request.
pub(super) fn reading(out: &Outgoing, url: Url) -> Outgoing {
    let mut request = Outgoing::new(Method::GET, url, out.target.clone());
    request.scope.clone_from(&out.scope);
    request.subscription.clone_from(&out.subscription);
    request
}

/// Whether a resource in this state has no operation under way.
pub(super) fn is_final(state: &str) -> bool {
    ["succeeded", "failed", "canceled"].iter().any(|word| state.eq_ignore_ascii_case(word))
}
