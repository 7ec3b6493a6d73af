//! One call: a token, the subscription's turn, attempts, retries, one deadline. Every service's client is built on it.

use std::sync::Arc;
use std::time::Duration;

use aro_base::{Class, Classify, SharedClock};
use aro_net::Backoff;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use tokio::time::Instant;
use url::Url;
use uuid::Uuid;

use crate::credential::{CredentialError, Scope, SharedCredential, Token};
use crate::error::{CloudError, Failure, ServiceError};
use crate::retry::{Outcome, Repeat, RetryBudget, Verdict, judge, retry_after};
use crate::throttle::Throttle;
use crate::transport::{Transport, TransportError};

const CORRELATION_ID: HeaderName = HeaderName::from_static("x-ms-correlation-request-id");
const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("aro/", env!("CARGO_PKG_VERSION")));
/// One attempt ends after this long, so that a call has time for a second.
const MAX_ATTEMPT: Duration = Duration::from_secs(30);

/// What all clients of a process share.
#[derive(Clone)]
pub(crate) struct Core {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) clock: SharedClock,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) budget: Arc<RetryBudget>,
    pub(crate) backoff: Backoff,
    /// Between attempts while a role is missing.
    pub(crate) role_backoff: Backoff,
    pub(crate) deadline: Duration,
}

/// The calls of one credential.
#[derive(Clone)]
pub(crate) struct Pipeline {
    pub(crate) core: Core,
    pub(crate) credential: SharedCredential,
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pipeline({:?})", self.credential)
    }
}

/// A request, as it is sent in each attempt.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// What errors and logs name instead of the URL.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// None: it is sent without a token.
    pub(crate) scope: Option<Scope>,
    /// The subscription whose quota it uses.
    pub(crate) subscription: Option<String>,
    pub(crate) repeat: Repeat,
}

impl Outgoing {
    pub(crate) fn new(method: Method, url: Url, target: impl Into<String>) -> Self {
        let repeat = if method == Method::POST { Repeat::IfUnapplied } else { Repeat::Always };
        let (headers, body) = (HeaderMap::new(), Bytes::new());
        Self { method, url, target: target.into(), headers, body, scope: None, subscription: None, repeat }
    }

    pub(crate) fn with_json(mut self, body: &impl serde::Serialize) -> Result<Self, serde_json::Error> {
        self.body = serde_json::to_vec(body)?.into();
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(self)
    }

    pub(crate) fn with_scope(self, scope: Scope) -> Self {
        Self { scope: Some(scope), ..self }
    }
}

/// How far a call is. One call may send several requests (a look before a repetition) under one deadline.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) correlation_id: String,
    /// An attempt may have had an effect whose reply was lost.
    pub(crate) uncertain: bool,
    total: Duration,
    deadline: Instant,
    waits_for_role: bool,
    failures: u32,
    role_failures: u32,
    refreshed: bool,
    counted: bool,
}

impl Progress {
    pub(crate) fn new(total: Duration, role_wait: Option<Duration>, correlation_id: Option<String>) -> Self {
        let total = total + role_wait.unwrap_or_default();
        Self {
            correlation_id: correlation_id.unwrap_or_else(|| Uuid::new_v4().to_string()),
            uncertain: false,
            total,
            deadline: Instant::now() + total,
            waits_for_role: role_wait.is_some(),
            failures: 0,
            role_failures: 0,
            refreshed: false,
            counted: false,
        }
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    pub(crate) fn error(&self, outgoing: &Outgoing, failure: Failure) -> CloudError {
        CloudError::new(&outgoing.method, outgoing.target.clone(), self.correlation_id.clone(), failure)
    }
}

/// How sending ended.
#[derive(Debug)]
pub(crate) enum Sent {
    /// With a reply, good or bad.
    Reply(Response<Bytes>),
    /// It may have had an effect: look before sending it again ([`Repeat::AfterLook`] only).
    Uncertain,
}

/// What became of one attempt.
enum Attempt {
    Reply(Response<Bytes>, Option<Token>),
    NoReply(TransportError),
    NoToken(CredentialError),
}

impl Pipeline {
    /// Sends a request until there is a reply to keep, or no sense in going on.
    pub(crate) async fn send(&self, out: &Outgoing, progress: &mut Progress) -> Result<Sent, CloudError> {
        if !std::mem::replace(&mut progress.counted, true) {
            self.core.budget.deposit();
        }
        loop {
            let attempt = self.attempt(out, progress).await?;
            let verdict = self.judge(out, &attempt);
            let (after, unapplied) = match verdict {
                Verdict::Again { after, unapplied } => (after, unapplied),
                Verdict::Refresh if self.reject(out, progress, &attempt) => continue,
                Verdict::MissingRole if progress.waits_for_role => {
                    self.wait_for_role(out, progress, attempt).await?;
                    continue;
                }
                Verdict::Stop => return Err(progress.error(out, failure(attempt, self.now()))),
                Verdict::Accept | Verdict::Refresh | Verdict::MissingRole => match attempt {
                    Attempt::Reply(reply, _) => return Ok(Sent::Reply(reply)),
                    other => return Err(progress.error(out, failure(other, self.now()))),
                },
            };
            progress.uncertain |= !unapplied;
            self.pause(out, progress, after, attempt).await?;
            if !unapplied && out.repeat == Repeat::AfterLook {
                return Ok(Sent::Uncertain);
            }
        }
    }

    /// [`Pipeline::send`] for requests that need no look.
    pub(crate) async fn exchange(
        &self,
        out: &Outgoing,
        progress: &mut Progress,
    ) -> Result<Response<Bytes>, CloudError> {
        loop {
            if let Sent::Reply(reply) = self.send(out, progress).await? {
                return Ok(reply);
            }
        }
    }

    fn now(&self) -> aro_base::Timestamp {
        self.core.clock.now()
    }

    fn judge(&self, out: &Outgoing, attempt: &Attempt) -> Verdict {
        let outcome = match attempt {
            Attempt::Reply(reply, _) => {
                Outcome::Reply { status: reply.status(), headers: reply.headers(), body: reply.body() }
            }
            Attempt::NoReply(error) => Outcome::NoReply(error),
            Attempt::NoToken(error) if error.class() == Class::Retry => {
                return Verdict::Again { after: None, unapplied: true };
            }
            Attempt::NoToken(_) => return Verdict::Stop,
        };
        judge(out.repeat, &outcome, self.now())
    }

    async fn attempt(&self, out: &Outgoing, progress: &Progress) -> Result<Attempt, CloudError> {
        self.take_turn(out, progress).await?;
        let token = match &out.scope {
            None => None,
            Some(scope) => match tokio::time::timeout(progress.left(), self.credential.token(scope)).await {
                Ok(Ok(token)) => Some(token),
                Ok(Err(error)) => return Ok(Attempt::NoToken(error)),
                Err(_) => return Err(progress.error(out, Failure::Deadline(progress.total))),
            },
        };
        let request = request(out, progress, token.as_ref())
            .map_err(|_| progress.error(out, Failure::Transport(TransportError::Invalid("a header"))))?;
        let within = progress.left().min(MAX_ATTEMPT);
        if within.is_zero() {
            return Err(progress.error(out, Failure::Deadline(progress.total)));
        }
        match self.core.transport.send(request, within).await {
            Ok(reply) => {
                if let Some(subscription) = &out.subscription {
                    let after = retry_after(reply.headers(), self.now());
                    self.core.throttle.observe(subscription, reply.status(), reply.headers(), after);
                }
                Ok(Attempt::Reply(reply, token))
            }
            Err(error) => Ok(Attempt::NoReply(error)),
        }
    }

    async fn take_turn(&self, out: &Outgoing, progress: &Progress) -> Result<(), CloudError> {
        let Some(subscription) = &out.subscription else { return Ok(()) };
        match self.core.throttle.reserve(subscription, progress.left()) {
            Ok(delay) => {
                if !delay.is_zero() {
                    tokio::time::sleep(delay).await;
                }
                Ok(())
            }
            Err(delay) => Err(progress.error(out, Failure::Throttled(delay))),
        }
    }

    /// Drops a token that the service refused; false if that was done before in this call.
    fn reject(&self, out: &Outgoing, progress: &mut Progress, attempt: &Attempt) -> bool {
        let (Attempt::Reply(_, Some(token)), Some(scope)) = (attempt, &out.scope) else { return false };
        self.credential.reject(scope, token);
        !std::mem::replace(&mut progress.refreshed, true)
    }

    /// Waits before the next attempt; fails with the attempt's error if there is no time or no budget for it.
    async fn pause(
        &self,
        out: &Outgoing,
        progress: &mut Progress,
        after: Option<Duration>,
        attempt: Attempt,
    ) -> Result<(), CloudError> {
        progress.failures += 1;
        let delay = after.unwrap_or_default().max(self.core.backoff.delay(progress.failures));
        let error = progress.error(out, failure(attempt, self.now()));
        if delay >= progress.left() || !self.core.budget.withdraw() {
            return Err(error);
        }
        tracing::debug!(method = %out.method, target = %out.target, correlation_id = %progress.correlation_id,
            failures = progress.failures, ?delay, error = %aro_base::chain(&error), "cloud request failed; retrying");
        tokio::time::sleep(delay).await;
        Ok(())
    }

    async fn wait_for_role(
        &self,
        out: &Outgoing,
        progress: &mut Progress,
        attempt: Attempt,
    ) -> Result<(), CloudError> {
        progress.role_failures += 1;
        let delay = self.core.role_backoff.delay(progress.role_failures);
        if delay >= progress.left() {
            return Err(progress.error(out, failure(attempt, self.now())).waits_for_role());
        }
        tokio::time::sleep(delay).await;
        Ok(())
    }
}

fn failure(attempt: Attempt, now: aro_base::Timestamp) -> Failure {
    match attempt {
        Attempt::Reply(reply, _) => Failure::Refused(service_error(&reply, now)),
        Attempt::NoReply(error) => Failure::Transport(error),
        Attempt::NoToken(error) => Failure::Credential(error),
    }
}

/// The error of a reply. Storage names its code in a header only, for some requests.
pub(crate) fn service_error(reply: &Response<Bytes>, now: aro_base::Timestamp) -> ServiceError {
    let code = reply.headers().get("x-ms-error-code").and_then(|code| code.to_str().ok());
    let mut error = match code {
        Some(code) => ServiceError::of_code(reply.status(), Some(code)),
        None => ServiceError::parse(reply.status(), reply.body()),
    };
    error.retry_after = retry_after(reply.headers(), now);
    error
}

fn request(
    out: &Outgoing,
    progress: &Progress,
    token: Option<&Token>,
) -> Result<Request<Bytes>, http::Error> {
    let mut request =
        Request::builder().method(out.method.clone()).uri(out.url.as_str()).body(out.body.clone())?;
    let headers = request.headers_mut();
    headers.clone_from(&out.headers);
    headers.insert(USER_AGENT, AGENT);
    headers.insert(CORRELATION_ID, HeaderValue::try_from(&progress.correlation_id)?);
    headers.insert(CLIENT_REQUEST_ID, HeaderValue::try_from(Uuid::new_v4().to_string())?);
    aro_runtime::trace_context::inject(headers);
    if let Some(token) = token {
        let mut bearer = HeaderValue::try_from(format!("Bearer {}", token.secret.expose()))?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    Ok(request)
}
