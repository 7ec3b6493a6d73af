//! Limits failed attempts per client.

use std::collections::HashMap;

use aro_base::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use uuid::Uuid;

const WINDOW: SignedDuration = SignedDuration::from_mins(1);

/// More clients than a local cloud has; beyond it counting starts over.
const MOST_CLIENTS: usize = 10_000;

/// Counts failures in windows of a minute.
pub(crate) struct FailureLimiter {
    limit: u32,
    clients: Mutex<HashMap<Uuid, (Timestamp, u32)>>,
}

impl FailureLimiter {
    pub(crate) fn new(limit: u32) -> Self {
        Self { limit, clients: Mutex::new(HashMap::new()) }
    }

    /// Whether a client may try.
    pub(crate) fn allows(&self, client: Uuid, now: Timestamp) -> bool {
        self.clients
            .lock()
            .get(&client)
            .is_none_or(|(since, failed)| now.duration_since(*since) >= WINDOW || *failed < self.limit)
    }

    /// Counts a failure.
    pub(crate) fn record_failure(&self, client: Uuid, now: Timestamp) {
        let mut clients = self.clients.lock();
        if clients.len() >= MOST_CLIENTS {
            clients.clear();
        }
        let entry = clients.entry(client).or_insert((now, 0));
        if now.duration_since(entry.0) >= WINDOW {
            *entry = (now, 0);
        }
        entry.1 += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_with_too_many_failures_waits_for_the_next_minute_and_others_do_not() {
        let limiter = FailureLimiter::new(2);
        let (client, other, now) = (Uuid::from_u128(1), Uuid::from_u128(2), Timestamp::UNIX_EPOCH);
        limiter.record_failure(client, now);
        assert!(limiter.allows(client, now));
        limiter.record_failure(client, now);
        assert!(!limiter.allows(client, now));
        assert!(limiter.allows(other, now));
        assert!(limiter.allows(client, now + WINDOW));
    }
}
