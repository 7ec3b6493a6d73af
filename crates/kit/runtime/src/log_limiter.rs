//! A limit for log lines that a client can cause, so that no client can flood the log.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Permits one log line per period.
#[derive(Debug)]
pub struct LogLimiter {
    every: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    suppressed: u64,
}

impl LogLimiter {
    /// One line per period at most; the first at once.
    pub fn every(every: Duration) -> Self {
        Self { every, state: Mutex::default() }
    }

    /// Whether a line may be written now; with the number of lines suppressed since the last one.
    pub fn permit(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if state.last.is_some_and(|last| now.saturating_duration_since(last) < self.every) {
            state.suppressed += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_one_line_per_period_and_a_number() {
        let limiter = LogLimiter::every(Duration::from_secs(1));
        assert_eq!(limiter.permit(), Some(0));
        for _ in 0..1000 {
            assert_eq!(limiter.permit(), None);
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((limiter.permit(), limiter.permit()), (Some(1000), None));
    }
}
