//! Whether a request is sent again, and when.
//!
//! [`judge`] decides by what the failure proves. A request with an effect is repeated blindly only if it is idempotent;
//! otherwise only when nothing can have happened. [`RetryBudget`] bounds the load that retries add.

use std::time::Duration;

use aro_base::Timestamp;
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::error::ServiceError;
use crate::transport::TransportError;

/// What a repetition of the request would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Nothing more than the first.
    Always,
    /// Perhaps more: the caller looks at the resource first.
    AfterLook,
    /// More: it is repeated only if the first had no effect.
    IfUnapplied,
}

/// What became of an attempt.
#[derive(Debug)]
pub(crate) enum Outcome<'a> {
    Reply { status: StatusCode, headers: &'a HeaderMap, body: &'a [u8] },
    NoReply(&'a TransportError),
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The reply, good or bad, is the caller's.
    Accept,
    /// The token was refused.
    Refresh,
    /// A role is missing.
    MissingRole,
    /// Send it again. `unapplied`: the attempt certainly had no effect.
    Again { after: Option<Duration>, unapplied: bool },
    /// Give up: sending it again might repeat the effect, or cannot help.
    Stop,
}

/// Decides by the outcome alone.
pub(crate) fn judge(repeat: Repeat, outcome: &Outcome<'_>, now: Timestamp) -> Verdict {
    match outcome {
        Outcome::NoReply(error) if !error.is_transient() => Verdict::Stop,
        Outcome::NoReply(error) => again(repeat, None, error.proves_no_effect(), Verdict::Stop),
        Outcome::Reply { status, headers, body } => judge_reply(repeat, *status, headers, body, now),
    }
}

fn judge_reply(
    repeat: Repeat,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Verdict {
    let after = retry_after(headers, now);
    match status {
        StatusCode::UNAUTHORIZED => Verdict::Refresh,
        StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST
            if ServiceError::parse(status, body).is_missing_role() =>
        {
            Verdict::MissingRole
        }
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            again(repeat, after, true, Verdict::Accept)
        }
        // A conflict is an answer, unless the service names a time or a reason that passes.
        StatusCode::CONFLICT if after.is_some() || ServiceError::parse(status, body).is_busy() => {
            again(repeat, after, true, Verdict::Accept)
        }
        // With a time to come back, the service shed the request before it processed it.
        StatusCode::SERVICE_UNAVAILABLE => again(repeat, after, after.is_some(), Verdict::Accept),
        StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED => Verdict::Accept,
        status if status.is_server_error() => again(repeat, after, false, Verdict::Accept),
        _ => Verdict::Accept,
    }
}

fn again(repeat: Repeat, after: Option<Duration>, unapplied: bool, otherwise: Verdict) -> Verdict {
    match repeat {
        Repeat::IfUnapplied if !unapplied => otherwise,
        _ => Verdict::Again { after, unapplied },
    }
}

/// The delay that a reply asks for: milliseconds, seconds or a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let millis =
        ["retry-after-ms", "x-ms-retry-after-ms"].into_iter().find_map(|name| text(name)?.parse().ok());
    if let Some(millis) = millis {
        return Some(Duration::from_millis(millis));
    }
    let value = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

/// Retries allowed without traffic.
const RESERVE: f64 = 10.0;
/// Retries saved up at most.
const MAX_BALANCE: f64 = 100.0;
/// How fast the reserve refills, a second.
const REFILL: f64 = 1.0;

/// A token bucket: every call deposits a share of a retry, every retry takes one. Shared by all calls of a process, so that
/// an outage of the cloud adds a bounded share of requests, not a multiple.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    share: f64,
    state: Mutex<Balance>,
}

#[derive(Debug)]
struct Balance {
    tokens: f64,
    at: Instant,
}

impl RetryBudget {
    /// Allows this many retries for each 100 calls.
    pub(crate) fn new(percent: u32) -> Self {
        let state = Balance { tokens: RESERVE, at: Instant::now() };
        Self { share: f64::from(percent) / 100.0, state: Mutex::new(state) }
    }

    /// Counts a call.
    pub(crate) fn deposit(&self) {
        let mut state = self.state.lock();
        state.tokens = (state.tokens + self.share).min(MAX_BALANCE);
    }

    /// Takes a retry, if there is one.
    pub(crate) fn withdraw(&self) -> bool {
        let mut state = self.state.lock();
        let now = Instant::now();
        let refill = now.saturating_duration_since(state.at).as_secs_f64() * REFILL;
        state.at = now;
        // Time fills the reserve only; what traffic saved above it stays.
        if state.tokens < RESERVE {
            state.tokens = (state.tokens + refill).min(RESERVE);
        }
        let allowed = state.tokens >= 1.0;
        if allowed {
            state.tokens -= 1.0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests;
