//! The one place that reads the wall clock.

use std::sync::Arc;
use std::time::Duration;

use aro_base::{Clock, SharedClock, Timestamp};

/// The machine's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    /// The clock as it is passed around.
    pub fn shared() -> SharedClock {
        Arc::new(Self)
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the place the rule points to")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// How often a task that waits for a wall-clock time checks it: it may be set, or stand still while the machine
/// sleeps, and the monotonic clock does neither.
const LOOK: Duration = Duration::from_mins(1);

/// Returns when the wall clock has reached a moment; if it is set ahead, within a minute.
pub async fn reached(clock: &SharedClock, moment: Timestamp) {
    loop {
        let left = Duration::try_from(moment.duration_since(clock.now())).unwrap_or_default();
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK)).await;
    }
}

#[cfg(test)]
mod tests {
    use aro_base::{ManualClock, SignedDuration};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_moment_is_reached_by_the_wall_clock_and_not_by_waiting() {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let shared: SharedClock = clock.clone();
        let moment = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
        let waited = tokio::time::timeout(Duration::from_hours(2), reached(&shared, moment)).await;
        assert!(waited.is_err(), "the wall clock stood still");
        clock.advance(SignedDuration::from_hours(1));
        reached(&shared, moment).await;
        reached(&shared, Timestamp::MIN).await;
    }
}
