//! Documents in memory: bounded by bytes, the one used longest ago makes room. Time is passed in.

use std::time::Duration;

use bytes::Bytes;
use hashlink::LruCache;
use tokio::time::Instant;

/// Bytes of an entry beside path and document.
const OVERHEAD: usize = 256;

/// A document and when it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cached {
    pub(crate) body: Bytes,
    pub(crate) fetched: Instant,
}

/// What the cache has for a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Young enough to be served.
    Fresh(Cached),
    /// To be served only if the origin fails.
    Stale(Cached),
    /// Nothing, or too old for anything.
    Nothing,
}

/// Ages of documents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ages {
    /// Served without asking the origin.
    pub(crate) fresh: Duration,
    /// Served after that if the origin fails.
    pub(crate) stale: Duration,
}

#[derive(Debug)]
pub(crate) struct Cache {
    budget: usize,
    ages: Ages,
    bytes: usize,
    entries: LruCache<String, Cached>,
}

impl Cache {
    pub(crate) fn new(budget: usize, ages: Ages) -> Self {
        Self { budget, ages, bytes: 0, entries: LruCache::new_unbounded() }
    }

    pub(crate) fn find(&mut self, path: &str, now: Instant) -> Found {
        let Some(cached) = self.entries.get(path) else { return Found::Nothing };
        let age = now.saturating_duration_since(cached.fetched);
        if age < self.ages.fresh {
            return Found::Fresh(cached.clone());
        }
        if age < self.ages.fresh.saturating_add(self.ages.stale) {
            return Found::Stale(cached.clone());
        }
        self.remove(path);
        Found::Nothing
    }

    pub(crate) fn insert(&mut self, path: &str, cached: Cached) {
        self.remove(path);
        let size = size(path, &cached);
        if size > self.budget {
            return;
        }
        while self.bytes + size > self.budget {
            let Some((path, evicted)) = self.entries.remove_lru() else { break };
            self.bytes -= self::size(&path, &evicted);
        }
        self.bytes += size;
        self.entries.insert(path.to_owned(), cached);
    }

    pub(crate) fn remove(&mut self, path: &str) {
        if let Some(cached) = self.entries.remove(path) {
            self.bytes -= size(path, &cached);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn size(path: &str, cached: &Cached) -> usize {
    path.len() + cached.body.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGES: Ages = Ages { fresh: Duration::from_secs(10), stale: Duration::from_secs(100) };

    fn document(length: usize, fetched: Instant) -> Cached {
        Cached { body: Bytes::from(vec![b'x'; length]), fetched }
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_is_fresh_then_stale_then_gone() {
        let (mut cache, start) = (Cache::new(10_000, AGES), Instant::now());
        cache.insert("/a", document(10, start));
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(matches!(cache.find("/a", at(9)), Found::Fresh(_)));
        assert!(matches!(cache.find("/a", at(10)), Found::Stale(_)));
        assert!(matches!(cache.find("/a", at(109)), Found::Stale(_)));
        assert_eq!(cache.find("/a", at(110)), Found::Nothing);
        assert_eq!(cache.bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_budget_holds_and_the_document_used_longest_ago_makes_room() {
        let now = Instant::now();
        let room = 2 * (2 + 1000 + OVERHEAD);
        let mut cache = Cache::new(room, AGES);
        cache.insert("/a", document(1000, now));
        cache.insert("/b", document(1000, now));
        cache.insert("/b", document(1000, now));
        assert_eq!(cache.bytes(), room);
        assert!(matches!(cache.find("/a", now), Found::Fresh(_)));
        cache.insert("/c", document(1000, now));
        assert_eq!(cache.find("/b", now), Found::Nothing);
        assert!(matches!(cache.find("/a", now), Found::Fresh(_)));
        cache.insert("/a", document(room, now));
        assert_eq!(
            cache.find("/a", now),
            Found::Nothing,
            "a document beyond the budget replaces the old one by nothing"
        );
    }
}
