//! Delays between attempts: exponential, bounded, with jitter.
//!
//! [`Backoff`] is the rule and holds no state: a work queue that counts failures per key asks it for one delay.
//! [`Attempts`] counts for a loop that has one thing to retry.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Jitter unless configured otherwise, in percent of the delay.
const JITTER_PERCENT: u8 = 25;

/// How delays grow: `first` after the first failure, doubled with each further one, never above `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    jitter_percent: u8,
}

impl Backoff {
    /// Delays from `first` to `max`, each shortened by up to a quarter at random.
    pub const fn new(first: Duration, max: Duration) -> Self {
        Self { first, max, jitter_percent: JITTER_PERCENT }
    }

    /// Shortens each delay by up to `percent` of it. More jitter spreads many clients of one lost server further apart;
    /// 0 makes delays exact.
    pub const fn with_jitter(self, percent: u8) -> Self {
        Self { jitter_percent: if percent > 100 { 100 } else { percent }, ..self }
    }

    /// The longest delay.
    pub const fn max(&self) -> Duration {
        self.max
    }

    /// The delay after this many failures in a row, before jitter. Zero failures need none.
    pub fn base_delay(&self, failures: u32) -> Duration {
        let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.max)
    }

    /// The delay after this many failures in a row, with jitter.
    pub fn delay(&self, failures: u32) -> Duration {
        self.jittered(failures, random())
    }

    /// Counts the attempts of one loop.
    pub const fn attempts(self) -> Attempts {
        Attempts { backoff: self, failures: 0 }
    }

    /// `chance` is in 0..=1.
    fn jittered(&self, failures: u32, chance: f64) -> Duration {
        self.base_delay(failures).mul_f64(1.0 - chance * f64::from(self.jitter_percent) / 100.0)
    }
}

/// The failures in a row of one loop. As an iterator it yields the delays without end.
#[derive(Debug, Clone)]
pub struct Attempts {
    backoff: Backoff,
    failures: u32,
}

impl Attempts {
    /// Counts a failure and returns the delay before the next attempt.
    pub fn next_delay(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.backoff.delay(self.failures)
    }

    /// Counts a failure and waits. A dropped future leaves the failure counted.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.next_delay()).await;
    }

    /// The last attempt succeeded: the next delay is the first again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Failures in a row so far.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

impl Iterator for Attempts {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.next_delay())
    }
}

/// In 0..=1. Every `RandomState` has keys of its own, which is randomness enough to spread delays.
fn random() -> f64 {
    let hash = RandomState::new().hash_one(());
    f64::from((hash >> 32) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    const MS: Duration = Duration::from_millis(1);
    const RULE: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(30));

    #[test]
    fn delays_double_up_to_the_maximum() {
        assert_eq!(RULE.base_delay(0), Duration::ZERO);
        assert_eq!(RULE.base_delay(1), 20 * MS);
        assert_eq!(RULE.base_delay(3), 80 * MS);
        assert_eq!(RULE.base_delay(40), RULE.max());
        assert_eq!(RULE.base_delay(u32::MAX), RULE.max());
    }

    #[test]
    fn jitter_shortens_a_delay_by_its_share_at_most() {
        assert_eq!(RULE.jittered(u32::MAX, 0.0), RULE.max());
        assert_eq!(RULE.jittered(u32::MAX, 1.0), Duration::from_millis(22_500));
        assert_eq!(RULE.with_jitter(50).jittered(1, 1.0), 10 * MS);
        assert_eq!(RULE.with_jitter(0).delay(2), 40 * MS);
        assert_eq!(RULE.with_jitter(200).jittered(1, 1.0), Duration::ZERO);
        for failures in 1..20 {
            let (delay, base) = (RULE.delay(failures), RULE.base_delay(failures));
            assert!(delay <= base && delay >= base.mul_f64(0.75), "{delay:?} of {base:?}");
        }
    }

    #[test]
    fn two_clients_that_failed_together_do_not_return_together() {
        let delays: std::collections::BTreeSet<Duration> = (0..100).map(|_| RULE.delay(20)).collect();
        assert!(delays.len() > 90, "{}", delays.len());
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_wait_longer_each_time_until_reset() {
        let mut attempts = RULE.with_jitter(0).attempts();
        let began = Instant::now();
        attempts.wait().await;
        attempts.wait().await;
        assert_eq!((began.elapsed(), attempts.failures()), (60 * MS, 2));
        attempts.reset();
        assert_eq!(attempts.next(), Some(20 * MS));
    }
}
