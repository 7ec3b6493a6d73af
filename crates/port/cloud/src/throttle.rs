//! Requests per second of each subscription.
//!
//! Resource Manager counts requests by subscription and answers 429 when too many come. A bucket per subscription spreads
//! them, slows down when the cloud reports little quota or refuses, and recovers with every reply that is not a refusal.

use std::time::Duration;

use hashlink::LruCache;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Subscriptions whose rate is remembered.
const MAX_SUBSCRIPTIONS: usize = 4096;
/// Below this much reported quota the rate follows it.
const LOW_QUOTA: u32 = 100;
/// The slowest rate, as a share of the configured one.
const SLOWEST: f64 = 1.0 / 32.0;
/// What a reply adds to a reduced rate, as a share of the configured one.
const RECOVERY: f64 = 0.05;
/// How long a refusal without a delay holds requests back.
const DEFAULT_PAUSE: Duration = Duration::from_secs(1);

/// The buckets of all subscriptions.
#[derive(Debug)]
pub(crate) struct Throttle {
    rate: f64,
    buckets: Mutex<LruCache<String, Bucket>>,
}

impl Throttle {
    pub(crate) fn new(requests_per_second: u32) -> Self {
        let rate = f64::from(requests_per_second.max(1));
        Self { rate, buckets: Mutex::new(LruCache::new(MAX_SUBSCRIPTIONS)) }
    }

    /// Reserves a request and returns how long it has to wait; `Err` with the delay, and no reservation, if that is longer
    /// than `patience`.
    pub(crate) fn reserve(&self, subscription: &str, patience: Duration) -> Result<Duration, Duration> {
        self.with(subscription, |bucket, now| bucket.reserve(now, patience))
    }

    /// Learns from a reply.
    pub(crate) fn observe(
        &self,
        subscription: &str,
        status: StatusCode,
        headers: &HeaderMap,
        retry_after: Option<Duration>,
    ) {
        let quota = remaining_quota(headers);
        self.with(subscription, |bucket, now| match status {
            StatusCode::TOO_MANY_REQUESTS => bucket.refused(now, retry_after.unwrap_or(DEFAULT_PAUSE)),
            _ => bucket.accepted(quota),
        });
    }

    fn with<T>(&self, subscription: &str, act: impl FnOnce(&mut Bucket, Instant) -> T) -> T {
        let now = Instant::now();
        let mut buckets = self.buckets.lock();
        let key = subscription.to_ascii_lowercase();
        if !buckets.contains_key(&key) {
            buckets.insert(key.clone(), Bucket::new(self.rate, now));
        }
        match buckets.get_mut(&key) {
            Some(bucket) => act(bucket, now),
            None => act(&mut Bucket::new(self.rate, now), now),
        }
    }
}

/// The least quota that the reply's headers report.
fn remaining_quota(headers: &HeaderMap) -> Option<u32> {
    let quotas = headers.iter().filter(|(name, _)| name.as_str().starts_with("x-ms-ratelimit-remaining-"));
    quotas.filter_map(|(_, value)| value.to_str().ok()?.trim().parse().ok()).min()
}

/// The bucket of one subscription: one second's worth of requests at most; a negative level is a queue.
#[derive(Debug)]
struct Bucket {
    max_rate: f64,
    rate: f64,
    level: f64,
    at: Instant,
    paused_until: Instant,
}

impl Bucket {
    fn new(rate: f64, now: Instant) -> Self {
        Self { max_rate: rate, rate, level: rate.max(1.0), at: now, paused_until: now }
    }

    fn reserve(&mut self, now: Instant, patience: Duration) -> Result<Duration, Duration> {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.level = (self.level + elapsed * self.rate).min(self.rate.max(1.0));
        self.at = now;
        let queued = Duration::from_secs_f64(((1.0 - self.level) / self.rate).max(0.0));
        let delay = queued.max(self.paused_until.saturating_duration_since(now));
        if delay > patience {
            return Err(delay);
        }
        self.level -= 1.0;
        Ok(delay)
    }

    fn refused(&mut self, now: Instant, pause: Duration) {
        // Requests sent together are refused together: that is one reason to slow down, not many.
        if self.paused_until <= now {
            self.rate = (self.rate / 2.0).max(self.max_rate * SLOWEST);
        }
        self.level = self.level.min(0.0);
        self.paused_until = self.paused_until.max(now + pause);
    }

    fn accepted(&mut self, quota: Option<u32>) {
        let ceiling = match quota {
            Some(quota) if quota < LOW_QUOTA => self.max_rate * f64::from(quota) / f64::from(LOW_QUOTA),
            _ => self.max_rate,
        };
        let ceiling = ceiling.max(self.max_rate * SLOWEST);
        self.rate = (self.rate + self.max_rate * RECOVERY).min(ceiling);
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    const PATIENT: Duration = Duration::from_hours(1);

    fn quota(value: &'static str) -> HeaderMap {
        let name = HeaderName::from_static("x-ms-ratelimit-remaining-subscription-writes");
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[tokio::test(start_paused = true)]
    async fn requests_beyond_the_rate_wait_their_turn() {
        let throttle = Throttle::new(10);
        for _ in 0..10 {
            assert_eq!(throttle.reserve("s", PATIENT), Ok(Duration::ZERO));
        }
        let delays: Vec<_> = (0..10).map(|_| throttle.reserve("S", PATIENT).unwrap()).collect();
        assert!(delays.is_sorted() && delays[9] >= Duration::from_millis(900), "{delays:?}");
        assert_eq!(throttle.reserve("other", PATIENT), Ok(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_pauses_and_halves_once_and_replies_recover() {
        let throttle = Throttle::new(10);
        for _ in 0..5 {
            let after = Some(Duration::from_secs(20));
            throttle.observe("s", StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), after);
        }
        assert_eq!(throttle.reserve("s", Duration::from_secs(5)), Err(Duration::from_secs(20)));
        let rate = |throttle: &Throttle| throttle.with("s", |bucket, _| bucket.rate);
        assert!((rate(&throttle) - 5.0).abs() < 1e-9);
        tokio::time::advance(Duration::from_secs(21)).await;
        assert_eq!(throttle.reserve("s", PATIENT), Ok(Duration::ZERO));
        for _ in 0..20 {
            throttle.observe("s", StatusCode::OK, &HeaderMap::new(), None);
        }
        assert!((rate(&throttle) - 10.0).abs() < 1e-9);
    }

    #[tokio::test(start_paused = true)]
    async fn little_quota_slows_down_before_the_cloud_refuses() {
        let throttle = Throttle::new(10);
        throttle.observe("s", StatusCode::OK, &quota("5"), None);
        assert!(throttle.with("s", |bucket, _| bucket.rate) < 0.6);
        throttle.observe("s", StatusCode::OK, &quota("0"), None);
        assert!(throttle.with("s", |bucket, _| bucket.rate) > 0.0);
    }

    #[tokio::test(start_paused = true)]
    async fn subscriptions_are_forgotten_before_they_fill_the_memory() {
        let throttle = Throttle::new(10);
        for n in 0..MAX_SUBSCRIPTIONS + 10 {
            let _ = throttle.reserve(&n.to_string(), PATIENT);
        }
        assert_eq!(throttle.buckets.lock().len(), MAX_SUBSCRIPTIONS);
    }
}
