//! Tokens are fetched once for all callers, and again before they expire.

use std::sync::Arc;

use aro_base::{SharedClock, SignedDuration, Timestamp};
use async_trait::async_trait;
use hashlink::LruCache;
use parking_lot::Mutex;

use super::{Credential, CredentialError, Fetch, Scope, Token};

/// A token is renewed this long before it expires, or in the last fifth of a shorter life.
const EARLY: SignedDuration = SignedDuration::from_mins(5);
/// After a failed renewal, while the old token is still valid.
const RENEWAL_PAUSE: SignedDuration = SignedDuration::from_secs(30);
/// Services and tenants remembered.
const MAX_SCOPES: usize = 1024;

/// Remembers the tokens of a credential. Invariants: at most one fetch for each scope is under way; callers wait for it only
/// when they have no valid token; a rejected token is not given out again.
#[derive(Debug)]
pub struct CachedCredential<F> {
    fetch: F,
    clock: SharedClockDebug,
    entries: Mutex<LruCache<Scope, Arc<Entry>>>,
}

/// A clock has no `Debug` of its own.
struct SharedClockDebug(SharedClock);

impl std::fmt::Debug for SharedClockDebug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

#[derive(Debug, Default)]
struct Entry {
    held: Mutex<Option<Held>>,
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct Held {
    token: Token,
    renew_at: Timestamp,
}

impl Held {
    fn new(token: Token, now: Timestamp) -> Self {
        let life = token.expires_at.duration_since(now);
        let early = EARLY.min(life / 5);
        let renew_at = token.expires_at.saturating_sub(early).unwrap_or(now);
        Self { token, renew_at }
    }
}

impl Entry {
    /// The token, if it is valid; and whether it should be renewed.
    fn valid(&self, now: Timestamp) -> Option<(Token, bool)> {
        let held = self.held.lock();
        let held = held.as_ref().filter(|held| held.token.expires_at > now)?;
        Some((held.token.clone(), held.renew_at <= now))
    }
}

impl<F: Fetch> CachedCredential<F> {
    /// Remembers what this credential fetches.
    pub fn new(fetch: F, clock: SharedClock) -> Self {
        Self { fetch, clock: SharedClockDebug(clock), entries: Mutex::new(LruCache::new(MAX_SCOPES)) }
    }

    fn now(&self) -> Timestamp {
        self.clock.0.now()
    }

    fn entry(&self, scope: &Scope) -> Arc<Entry> {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get(scope) {
            return entry.clone();
        }
        let entry = Arc::new(Entry::default());
        entries.insert(scope.clone(), entry.clone());
        entry
    }

    async fn renew(&self, entry: &Entry, scope: &Scope) -> Result<Token, CredentialError> {
        let fetched = self.fetch.fetch(scope).await;
        let now = self.now();
        let mut held = entry.held.lock();
        match fetched {
            Ok(token) => {
                *held = Some(Held::new(token.clone(), now));
                Ok(token)
            }
            Err(error) => match held.as_mut().filter(|held| held.token.expires_at > now) {
                Some(held) => {
                    held.renew_at = now.saturating_add(RENEWAL_PAUSE).unwrap_or(now);
                    tracing::warn!(audience = %scope.audience, error = %error, "token renewal failed; using the old token");
                    Ok(held.token.clone())
                }
                None => Err(error),
            },
        }
    }
}

#[async_trait]
impl<F: Fetch> Credential for CachedCredential<F> {
    async fn token(&self, scope: &Scope) -> Result<Token, CredentialError> {
        let entry = self.entry(scope);
        let _fetching = match entry.valid(self.now()) {
            Some((token, false)) => return Ok(token),
            Some((token, true)) => match entry.fetching.try_lock() {
                Ok(guard) => guard,
                Err(_) => return Ok(token),
            },
            None => entry.fetching.lock().await,
        };
        // Another caller may have fetched while this one waited.
        match entry.valid(self.now()) {
            Some((token, false)) => Ok(token),
            _ => self.renew(&entry, scope).await,
        }
    }

    fn reject(&self, scope: &Scope, token: &Token) {
        let entry = self.entry(scope);
        let mut held = entry.held.lock();
        if held.as_ref().is_some_and(|held| held.token == *token) {
            *held = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::time::Duration;

    use aro_base::{ManualClock, Secret};

    use super::*;

    /// Issues numbered tokens, slowly.
    #[derive(Debug)]
    struct Issuer {
        clock: Arc<ManualClock>,
        life: SignedDuration,
        issued: Arc<AtomicU32>,
        down: Arc<AtomicBool>,
    }

    #[async_trait]
    impl Fetch for Issuer {
        async fn fetch(&self, _: &Scope) -> Result<Token, CredentialError> {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if self.down.load(Ordering::SeqCst) {
                return Err(CredentialError::Unavailable("down".to_owned()));
            }
            let number = self.issued.fetch_add(1, Ordering::SeqCst);
            let expires_at = aro_base::Clock::now(&*self.clock) + self.life;
            Ok(Token { secret: Secret::new(number.to_string()), expires_at })
        }
    }

    struct Setup {
        clock: Arc<ManualClock>,
        issued: Arc<AtomicU32>,
        down: Arc<AtomicBool>,
        cached: CachedCredential<Issuer>,
    }

    fn setup(life: SignedDuration) -> Setup {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let (issued, down) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let issuer = Issuer { clock: clock.clone(), life, issued: issued.clone(), down: down.clone() };
        Setup { cached: CachedCredential::new(issuer, clock.clone()), clock, issued, down }
    }

    async fn text(cached: &CachedCredential<Issuer>) -> String {
        cached.token(&Scope::new("a")).await.unwrap().secret.expose().clone()
    }

    #[tokio::test(start_paused = true)]
    async fn callers_at_once_share_one_fetch() {
        let setup = setup(SignedDuration::from_hours(1));
        let (a, b, c) = tokio::join!(text(&setup.cached), text(&setup.cached), text(&setup.cached));
        assert_eq!((a.as_str(), b.as_str(), c.as_str()), ("0", "0", "0"));
        assert_eq!(setup.issued.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_renewed_five_minutes_before_it_expires_and_by_one_caller() {
        let setup = setup(SignedDuration::from_hours(1));
        text(&setup.cached).await;
        setup.clock.advance(SignedDuration::from_mins(54));
        assert_eq!(text(&setup.cached).await, "0");
        setup.clock.advance(SignedDuration::from_mins(2));
        let (first, second) = tokio::join!(text(&setup.cached), text(&setup.cached));
        assert_eq!((first.as_str(), second.as_str()), ("1", "0"), "the second does not wait");
        assert_eq!(text(&setup.cached).await, "1");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_renewal_keeps_the_valid_token_and_pauses() {
        let setup = setup(SignedDuration::from_hours(1));
        text(&setup.cached).await;
        setup.clock.advance(SignedDuration::from_mins(56));
        setup.down.store(true, Ordering::SeqCst);
        assert_eq!(text(&setup.cached).await, "0");
        setup.down.store(false, Ordering::SeqCst);
        assert_eq!(text(&setup.cached).await, "0", "not asked again at once");
        setup.clock.advance(SignedDuration::from_secs(31));
        assert_eq!(text(&setup.cached).await, "1");
        setup.clock.advance(SignedDuration::from_hours(2));
        setup.down.store(true, Ordering::SeqCst);
        assert!(setup.cached.token(&Scope::new("a")).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_token_is_replaced_and_a_newer_one_stays() {
        let setup = setup(SignedDuration::from_hours(1));
        let scope = Scope::new("a");
        let old = setup.cached.token(&scope).await.unwrap();
        setup.cached.reject(&scope, &old);
        assert_eq!(text(&setup.cached).await, "1");
        setup.cached.reject(&scope, &old);
        assert_eq!(text(&setup.cached).await, "1");
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_lived_token_is_not_fetched_for_every_call() {
        let setup = setup(SignedDuration::from_mins(4));
        text(&setup.cached).await;
        setup.clock.advance(SignedDuration::from_mins(3));
        assert_eq!(text(&setup.cached).await, "0");
    }

    #[tokio::test(start_paused = true)]
    async fn services_and_tenants_have_tokens_of_their_own() {
        let setup = setup(SignedDuration::from_hours(1));
        for scope in [Scope::new("a"), Scope::new("b"), Scope::new("a").in_tenant("t")] {
            setup.cached.token(&scope).await.unwrap();
        }
        assert_eq!(setup.issued.load(Ordering::SeqCst), 3);
    }
}
