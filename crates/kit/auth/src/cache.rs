//! Tokens that were verified already.

use std::sync::Arc;
use std::time::Duration;

use aro_base::{SignedDuration, Timestamp};
use hashlink::LruCache;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::claims::Claims;

/// The bounds of a [`VerifiedCache`].
#[derive(Debug, Clone, Copy)]
pub struct CacheLimits {
    /// Tokens at once.
    pub entries: usize,
    /// Bytes of claims at once.
    pub bytes: usize,
    /// The longest time that a token is trusted without being verified again: so the withdrawal of a key takes effect.
    pub max_age: Duration,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { entries: 4096, bytes: 8 * 1024 * 1024, max_age: Duration::from_mins(5) }
    }
}

/// Claims of verified tokens by the SHA-256 of the token, so that a caller's next request costs a digest. Tokens themselves
/// are not kept. Use one cache per verifier: an entry means "fulfils the rules of that verifier".
#[derive(Debug)]
pub struct VerifiedCache {
    limits: CacheLimits,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    entries: LruCache<[u8; 32], Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    claims: Arc<Claims>,
    until: Timestamp,
    bytes: usize,
}

impl VerifiedCache {
    /// An empty cache.
    pub fn new(limits: CacheLimits) -> Self {
        Self { limits, state: Mutex::new(State { entries: LruCache::new_unbounded(), bytes: 0 }) }
    }

    /// The claims of a token that was verified and is still valid.
    pub fn get(&self, token: &str, now: Timestamp) -> Option<Arc<Claims>> {
        let key = digest(token);
        let mut state = self.state.lock();
        let entry = state.entries.get(&key)?;
        if now < entry.until {
            return Some(entry.claims.clone());
        }
        state.remove(&key);
        None
    }

    /// Remembers a token that was verified now. Entries that were used longest ago make room.
    pub fn insert(&self, token: &str, claims: Arc<Claims>, now: Timestamp) {
        let max_age = SignedDuration::try_from(self.limits.max_age).unwrap_or(SignedDuration::MAX);
        let until = now.saturating_add(max_age).unwrap_or(Timestamp::MAX).min(claims.expires);
        let bytes = claims.size() + size_of::<Entry>();
        if now >= until || bytes > self.limits.bytes || self.limits.entries == 0 {
            return;
        }
        let key = digest(token);
        let mut state = self.state.lock();
        state.remove(&key);
        while state.entries.len() >= self.limits.entries || state.bytes + bytes > self.limits.bytes {
            let Some((_, evicted)) = state.entries.remove_lru() else { break };
            state.bytes -= evicted.bytes;
        }
        state.bytes += bytes;
        state.entries.insert(key, Entry { claims, until, bytes });
    }

    /// Tokens that are remembered.
    pub fn len(&self) -> usize {
        self.state.lock().entries.len()
    }

    /// Whether no token is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl State {
    fn remove(&mut self, key: &[u8; 32]) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::claims::Payload;
    use crate::testing::{now, payload};

    fn claims(lifetime: i64, name: &str) -> Arc<Claims> {
        let payload = payload(json!({"exp": now().as_second() + lifetime, "name": name}));
        let payload = Payload::parse(payload.to_string().as_bytes()).unwrap();
        Arc::new(payload.into_claims("a".to_owned()).unwrap())
    }

    fn later(seconds: i64) -> Timestamp {
        now().saturating_add(SignedDuration::from_secs(seconds)).unwrap()
    }

    #[test]
    fn an_entry_ends_with_its_token_or_with_the_age_limit() {
        let cache =
            VerifiedCache::new(CacheLimits { max_age: Duration::from_secs(100), ..CacheLimits::default() });
        cache.insert("short", claims(10, ""), now());
        cache.insert("long", claims(1000, ""), now());
        cache.insert("over", claims(0, ""), now());
        assert!(cache.get("short", later(9)).is_some());
        assert!(cache.get("short", later(10)).is_none());
        assert!(cache.get("long", later(99)).is_some());
        assert!(cache.get("long", later(100)).is_none());
        assert!(cache.get("over", now()).is_none());
        assert!(cache.is_empty(), "what is over is not kept");
    }

    #[test]
    fn the_entry_that_was_used_longest_ago_makes_room() {
        let cache = VerifiedCache::new(CacheLimits { entries: 2, ..CacheLimits::default() });
        cache.insert("a", claims(100, ""), now());
        cache.insert("b", claims(100, ""), now());
        assert!(cache.get("a", now()).is_some());
        cache.insert("c", claims(100, ""), now());
        assert!(cache.get("a", now()).is_some() && cache.get("c", now()).is_some());
        assert!(cache.get("b", now()).is_none());
    }

    #[test]
    fn the_byte_budget_holds_and_is_given_back() {
        let one = claims(100, &"x".repeat(1000));
        let room = (one.size() + size_of::<Entry>()) * 3;
        let cache = VerifiedCache::new(CacheLimits { bytes: room, ..CacheLimits::default() });
        for n in 0..100 {
            cache.insert(&n.to_string(), one.clone(), now());
            cache.insert(&n.to_string(), one.clone(), now());
        }
        assert_eq!(cache.len(), 3);
        assert_eq!(cache.state.lock().bytes, room);
        cache.insert("huge", claims(100, &"x".repeat(room)), now());
        assert_eq!(cache.len(), 3, "what exceeds the budget alone is not kept");
    }
}
