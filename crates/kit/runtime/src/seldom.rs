//! Lines in the log that others can cause, and therefore must not be able to cause without end.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Lets one line through per period.
#[derive(Debug)]
pub struct Seldom {
    every: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    untold: u64,
}

impl Seldom {
    /// One line per period at most; the first at once.
    pub fn every(every: Duration) -> Self {
        Self { every, state: Mutex::default() }
    }

    /// Whether a line is due now, with how many were kept back since the last one.
    pub fn now(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if state.last.is_some_and(|last| now.saturating_duration_since(last) < self.every) {
            state.untold += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_one_line_per_period_and_a_number() {
        let seldom = Seldom::every(Duration::from_secs(1));
        assert_eq!(seldom.now(), Some(0));
        for _ in 0..1000 {
            assert_eq!(seldom.now(), None);
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((seldom.now(), seldom.now()), (Some(1000), None));
    }
}
