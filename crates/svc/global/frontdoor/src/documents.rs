//! Documents by cache and origin, one request to the origin per document at a time.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use aro_base::chain;
use aro_runtime::LogLimiter;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::cache::{Ages, Cache, Cached, Found};
use crate::metrics::{FrontdoorMetrics, Outcome};
use crate::origin::{Origin, OriginError};

/// What a path leads to.
#[derive(Debug)]
pub(crate) enum Document {
    /// A document, its age, and for how long it may be cached further.
    Found { body: Bytes, age: Duration, max_age: Duration, hit: bool },
    /// The origin has none.
    Absent,
    /// The origin failed.
    BadGateway,
    /// The origin was too slow.
    Timeout,
}

/// All documents.
pub(crate) struct Documents {
    origin: Origin,
    ages: Ages,
    cache: Mutex<Cache>,
    /// Fetches under way. The lock of a path is held by the request that fetches it.
    flights: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
    /// Requests to the origin at once.
    permits: Semaphore,
    metrics: FrontdoorMetrics,
    limiter: LogLimiter,
}

impl Documents {
    pub(crate) fn new(
        origin: Origin,
        budget: usize,
        ages: Ages,
        max_origin_requests: usize,
        metrics: FrontdoorMetrics,
    ) -> Self {
        Self {
            origin,
            ages,
            cache: Mutex::new(Cache::new(budget, ages)),
            flights: Mutex::default(),
            permits: Semaphore::new(max_origin_requests.clamp(1, Semaphore::MAX_PERMITS)),
            metrics,
            limiter: LogLimiter::every(Duration::from_secs(1)),
        }
    }

    /// The document at a path that the rule lets pass.
    pub(crate) async fn get(&self, path: &str) -> Document {
        if let Found::Fresh(cached) = self.find(path) {
            return self.serve(cached, Outcome::Hit);
        }
        let flight = self.flight(path);
        // The wait is bounded as well: behind several failed fetches it would add up.
        let Ok(held) = tokio::time::timeout(self.origin.deadline, flight.lock()).await else {
            let stale = match self.find(path) {
                Found::Fresh(cached) | Found::Stale(cached) => Some(cached),
                Found::Nothing => None,
            };
            return self.fail(&OriginError::Deadline(self.origin.deadline), stale);
        };
        // The request before this one may have brought it.
        let stale = match self.find(path) {
            Found::Fresh(cached) => return self.serve(cached, Outcome::Hit),
            Found::Stale(cached) => Some(cached),
            Found::Nothing => None,
        };
        let document = match self.fetch(path).await {
            Ok(Some(body)) => {
                let cached = Cached { body, fetched: Instant::now() };
                self.change(|cache| cache.insert(path, cached.clone()));
                self.serve(cached, Outcome::Miss)
            }
            Ok(None) => {
                self.change(|cache| cache.remove(path));
                self.metrics.count(Outcome::Absent);
                Document::Absent
            }
            Err(error) => self.fail(&error, stale),
        };
        drop(held);
        drop(flight);
        self.flights.lock().retain(|_, flight| flight.strong_count() > 0);
        document
    }

    async fn fetch(&self, path: &str) -> Result<Option<Bytes>, OriginError> {
        let deadline = self.origin.deadline;
        let permit = tokio::time::timeout(deadline, self.permits.acquire()).await;
        // The semaphore is never closed.
        let Ok(Ok(_permit)) = permit else { return Err(OriginError::Deadline(deadline)) };
        self.metrics.origin_requests.inc();
        self.origin.fetch(path).await
    }

    fn fail(&self, error: &OriginError, stale: Option<Cached>) -> Document {
        if let Some(suppressed) = self.limiter.permit() {
            tracing::warn!(suppressed, stale = stale.is_some(), error = %chain(error), "document not fetched from the origin");
        }
        if let Some(cached) = stale {
            return self.serve(cached, Outcome::Stale);
        }
        self.metrics.count(Outcome::Failed);
        if error.is_timeout() { Document::Timeout } else { Document::BadGateway }
    }

    fn serve(&self, cached: Cached, outcome: Outcome) -> Document {
        self.metrics.count(outcome);
        let age = cached.fetched.elapsed();
        let max_age = self.ages.fresh.saturating_sub(age);
        Document::Found { body: cached.body, age, max_age, hit: outcome != Outcome::Miss }
    }

    fn find(&self, path: &str) -> Found {
        self.cache.lock().find(path, Instant::now())
    }

    fn change(&self, change: impl FnOnce(&mut Cache)) {
        let mut cache = self.cache.lock();
        change(&mut cache);
        self.metrics.cache_bytes.set(i64::try_from(cache.bytes()).unwrap_or(i64::MAX));
    }

    /// The lock of a path, shared by all requests for it.
    fn flight(&self, path: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut flights = self.flights.lock();
        if let Some(flight) = flights.get(path).and_then(Weak::upgrade) {
            return flight;
        }
        let flight = Arc::default();
        flights.insert(path.to_owned(), Arc::downgrade(&flight));
        flight
    }
}
