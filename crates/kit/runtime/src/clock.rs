//! The one place that reads the wall clock.

use std::sync::Arc;

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
