//! The pace of compare-and-swap: how often a read-decide-write is repeated, and how long it waits in between.
//!
//! [`Collection::update`](crate::Collection::update) uses it for one document; a role that decides over several documents
//! and writes them in one batch uses it directly, so that all writers back off in the same way.

use std::time::Duration;

use aro_net::Backoff;

/// Full jitter: writers that collided once must not stay in step.
const PACE: Backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(100)).with_jitter(100);

/// Counts the attempts of one write.
#[derive(Debug, Default)]
pub struct Attempts {
    failed: u32,
}

impl Attempts {
    /// How many attempts a write has.
    pub const LIMIT: u32 = 12;

    /// How many attempts have failed so far.
    pub fn failed(&self) -> u32 {
        self.failed
    }

    /// Records a conflict and waits until the next attempt may start; `false` when none is left.
    ///
    /// The second attempt starts at once: most conflicts come from one other writer, which is done by now.
    pub async fn wait_for_next(&mut self) -> bool {
        self.failed += 1;
        if self.failed >= Self::LIMIT {
            return false;
        }
        if self.failed > 1 {
            tokio::time::sleep(PACE.delay(self.failed)).await;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_second_attempt_starts_at_once_and_the_number_of_attempts_is_bounded() {
        let (mut attempts, start) = (Attempts::default(), Instant::now());
        assert!(attempts.wait_for_next().await);
        assert_eq!(start.elapsed(), Duration::ZERO);
        let mut granted = 1;
        while attempts.wait_for_next().await {
            granted += 1;
        }
        assert_eq!(granted + 1, Attempts::LIMIT);
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    }
}
