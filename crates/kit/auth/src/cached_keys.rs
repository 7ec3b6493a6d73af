//! Keys that are fetched, kept, and fetched again when the issuer rotates them.
//!
//! A fetch happens when there is no set yet, when a token names a key that the set does not have, and when the set is older
//! than [`KeyRefresh::max_age`]. One fetch is under way at a time. A failed fetch leaves the last good set in use.

use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_pki::jws::KeySet;
use async_trait::async_trait;
use futures::future::BoxFuture;
use parking_lot::RwLock;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::keys::{KeySource, KeysUnavailable, PublishedKeys};

/// Why a fetch failed, for the log.
pub type FetchError = Box<dyn std::error::Error + Send + Sync>;

type Fetch = dyn Fn() -> BoxFuture<'static, Result<PublishedKeys, FetchError>> + Send + Sync;

/// When keys are fetched.
#[derive(Debug, Clone, Copy)]
pub struct KeyRefresh {
    /// The least time between two fetches, failed ones included.
    pub min_interval: Duration,
    /// The age at which a set is fetched again although no token asks for it: so a withdrawn key stops being accepted.
    pub max_age: Duration,
    /// The deadline of one fetch.
    pub deadline: Duration,
}

impl Default for KeyRefresh {
    fn default() -> Self {
        Self {
            min_interval: Duration::from_secs(30),
            max_age: Duration::from_hours(1),
            deadline: Duration::from_secs(10),
        }
    }
}

/// Keys by a fetch function.
pub struct CachedKeys {
    fetch: Box<Fetch>,
    refresh: KeyRefresh,
    current: RwLock<Option<Fetched>>,
    /// The end of the last fetch. Held while one is under way.
    last_attempt: Mutex<Option<Instant>>,
}

#[derive(Clone)]
struct Fetched {
    published: Arc<PublishedKeys>,
    at: Instant,
}

impl CachedKeys {
    /// Keys that `fetch` gets from the issuer. Nothing is fetched before the first token.
    pub fn new<F>(refresh: KeyRefresh, fetch: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<PublishedKeys, FetchError>> + Send + 'static,
    {
        Self {
            fetch: Box::new(move || Box::pin(fetch())),
            refresh,
            current: RwLock::new(None),
            last_attempt: Mutex::new(None),
        }
    }

    /// The current set, if it can answer for this key and is young enough.
    fn fresh(&self, kid: Option<&str>) -> Option<Arc<KeySet>> {
        let current = self.current.read();
        let fetched = current.as_ref()?;
        let young = fetched.at.elapsed() < self.refresh.max_age;
        (young && fetched.published.knows(kid)).then(|| fetched.published.keys.clone())
    }

    /// The current set, whatever its age; with whether it has this key.
    fn last_good(&self, kid: Option<&str>) -> Option<(Arc<KeySet>, bool)> {
        let current = self.current.read();
        let fetched = current.as_ref()?;
        Some((fetched.published.keys.clone(), fetched.published.knows(kid)))
    }

    async fn fetch_once(&self) {
        let fetched = tokio::time::timeout(self.refresh.deadline, (self.fetch)()).await;
        match fetched {
            Ok(Ok(published)) => {
                *self.current.write() = Some(Fetched { published: Arc::new(published), at: Instant::now() });
            }
            Ok(Err(error)) => {
                tracing::warn!(error = %chain(&*error), "signing keys not fetched; keeping the last set");
            }
            Err(_) => tracing::warn!("fetching signing keys exceeded its deadline; keeping the last set"),
        }
    }
}

#[async_trait]
impl KeySource for CachedKeys {
    async fn keys(&self, kid: Option<&str>) -> Result<Arc<KeySet>, KeysUnavailable> {
        if let Some(keys) = self.fresh(kid) {
            return Ok(keys);
        }
        let mut last_attempt = match (self.last_attempt.try_lock(), self.last_good(kid)) {
            (Ok(held), _) => held,
            // Another caller is already refreshing an old set that has the key: no reason to wait for it.
            (Err(_), Some((keys, true))) => return Ok(keys),
            (Err(_), _) => self.last_attempt.lock().await,
        };
        let due = last_attempt.is_none_or(|last| last.elapsed() >= self.refresh.min_interval);
        if due && self.fresh(kid).is_none() {
            self.fetch_once().await;
            // Recorded afterwards: a caller that is dropped during its fetch does not keep the next one from fetching.
            *last_attempt = Some(Instant::now());
        }
        drop(last_attempt);
        self.last_good(kid).map(|(keys, _)| keys).ok_or(KeysUnavailable)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::testing::key;

    const REFRESH: KeyRefresh = KeyRefresh {
        min_interval: Duration::from_secs(30),
        max_age: Duration::from_mins(10),
        deadline: Duration::from_secs(5),
    };

    /// What the issuer publishes at the moment; `None` fails.
    type Issuer = Arc<parking_lot::Mutex<Option<PublishedKeys>>>;

    fn cached(issuer: &Issuer) -> (CachedKeys, Arc<AtomicUsize>) {
        let (issuer, fetches) = (issuer.clone(), Arc::new(AtomicUsize::new(0)));
        let count = fetches.clone();
        let keys = CachedKeys::new(REFRESH, move || {
            count.fetch_add(1, Ordering::SeqCst);
            let published = issuer.lock().clone();
            async move {
                tokio::time::sleep(Duration::from_millis(10)).await;
                published.ok_or_else(|| FetchError::from("issuer down"))
            }
        });
        (keys, fetches)
    }

    fn publishing(names: &[&aro_pki::jws::SigningKey]) -> PublishedKeys {
        PublishedKeys::from_keys(&names.iter().map(|key| key.jwk().clone()).collect::<Vec<_>>())
    }

    #[tokio::test(start_paused = true)]
    async fn many_callers_at_once_cause_one_fetch() {
        let own = key();
        let issuer = Issuer::new(parking_lot::Mutex::new(Some(publishing(&[&own]))));
        let (keys, fetches) = cached(&issuer);
        let callers = (0..50).map(|_| keys.keys(Some(own.key_id())));
        let results = futures::future::join_all(callers).await;
        assert!(results.iter().all(Result::is_ok));
        assert_eq!(fetches.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_key_is_fetched_once_per_interval() {
        let (old, new) = (key(), key());
        let issuer = Issuer::new(parking_lot::Mutex::new(Some(publishing(&[&old]))));
        let (keys, fetches) = cached(&issuer);
        keys.keys(Some(old.key_id())).await.unwrap();
        for n in 0..100 {
            keys.keys(Some(&format!("unknown-{n}"))).await.unwrap();
        }
        assert_eq!(fetches.load(Ordering::SeqCst), 1, "the first fetch is too recent");
        tokio::time::advance(REFRESH.min_interval).await;
        *issuer.lock() = Some(publishing(&[&old, &new]));
        let set = keys.keys(Some(new.key_id())).await.unwrap();
        assert!(set.verify(&new.sign(&serde_json::json!({})).unwrap()).is_ok());
        assert_eq!(fetches.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_good_set_outlives_an_issuer_that_is_down() {
        let own = key();
        let issuer = Issuer::new(parking_lot::Mutex::new(Some(publishing(&[&own]))));
        let (keys, fetches) = cached(&issuer);
        keys.keys(Some(own.key_id())).await.unwrap();
        *issuer.lock() = None;
        tokio::time::advance(REFRESH.max_age).await;
        assert!(keys.keys(Some(own.key_id())).await.is_ok());
        assert_eq!(fetches.load(Ordering::SeqCst), 2, "the age of the set was a reason to try");
    }

    #[tokio::test(start_paused = true)]
    async fn a_withdrawn_key_is_gone_after_the_age_limit() {
        let (old, new) = (key(), key());
        let issuer = Issuer::new(parking_lot::Mutex::new(Some(publishing(&[&old]))));
        let (keys, _) = cached(&issuer);
        keys.keys(Some(old.key_id())).await.unwrap();
        *issuer.lock() = Some(publishing(&[&new]));
        tokio::time::advance(REFRESH.max_age).await;
        let set = keys.keys(Some(old.key_id())).await.unwrap();
        assert!(set.verify(&old.sign(&serde_json::json!({})).unwrap()).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn without_any_set_the_error_is_that_keys_are_unavailable() {
        let issuer = Issuer::default();
        let (keys, fetches) = cached(&issuer);
        for _ in 0..3 {
            assert_eq!(keys.keys(None).await.err(), Some(KeysUnavailable));
        }
        assert_eq!(fetches.load(Ordering::SeqCst), 1, "failures are limited as well");
        *issuer.lock() = Some(publishing(&[&key()]));
        tokio::time::advance(REFRESH.min_interval).await;
        assert!(keys.keys(None).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_that_hangs_ends_at_its_deadline() {
        let keys = CachedKeys::new(REFRESH, std::future::pending);
        assert_eq!(keys.keys(None).await.err(), Some(KeysUnavailable));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_gives_up_does_not_block_the_next_fetch() {
        let own = key();
        let issuer = Issuer::new(parking_lot::Mutex::new(Some(publishing(&[&own]))));
        let (keys, fetches) = cached(&issuer);
        let gave_up = tokio::time::timeout(Duration::from_millis(1), keys.keys(None)).await;
        assert!(gave_up.is_err());
        assert!(keys.keys(None).await.is_ok());
        assert_eq!(fetches.load(Ordering::SeqCst), 2);
    }
}
