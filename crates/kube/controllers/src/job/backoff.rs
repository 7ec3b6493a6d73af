//! Pauses between failures. Pure.

use std::sync::Arc;
use std::time::Duration;

use aro_base::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

use super::member::ended_at;

const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(10);

const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(10);

/// Failures since the last success, for pauses that grow. Known to this process only, as upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backoff {
    pub failures: u32,
    pub last: Option<Timestamp>,
}

/// Failures since the last success.
pub fn grown(before: Backoff, succeeded: &[Arc<Pod>], failed: &[Arc<Pod>]) -> Backoff {
    let since = succeeded.iter().map(|pod| ended_at(pod)).max();
    let before = if since.is_some() { Backoff::default() } else { before };
    let new: Vec<Timestamp> =
        failed.iter().map(|pod| ended_at(pod)).filter(|at| since.is_none_or(|since| *at > since)).collect();
    Backoff {
        failures: before.failures.saturating_add(u32::try_from(new.len()).unwrap_or(u32::MAX)),
        last: new.into_iter().max().or(before.last),
    }
}

/// How long to wait after so many failures.
pub fn pause(failures: u32, last: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let last = last.filter(|_| failures > 0)?;
    let factor = 1_i32.checked_shl(failures - 1).filter(|factor| *factor > 0).unwrap_or(i32::MAX);
    let pause = FIRST_PAUSE.checked_mul(factor).unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE);
    let left = pause.saturating_sub(now.duration_since(last));
    Duration::try_from(left).ok().filter(|left| !left.is_zero())
}
