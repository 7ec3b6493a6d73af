//! A bounded, write-through cache of documents by key.
//!
//! It must never answer with something older than what a query or the feed already showed. Two rules see to it:
//! * Before the writer commits it marks the keys as *pending*; point reads of a pending key go to the database.
//!   After the commit it puts the new documents in. So there is no moment at which the commit is visible and the
//!   cache is behind it.
//! * A reader that fetched a document from the database may put it in only if nothing was written to that shard
//!   since before it began to read ([`Ticket`]).

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aro_base::Timestamp;
use aro_store::{DocKey, Document};
use hashlink::LruCache;

const SHARDS: usize = 64;

/// What map, keys and allocations cost per entry beside the text.
const ENTRY_OVERHEAD: usize = 300;

#[derive(Debug)]
enum Entry {
    /// What is stored; `None` is known to be absent.
    Known(Option<Document>, usize),
    /// About to be committed: ask the database.
    Pending,
}

#[derive(Debug)]
struct Shard {
    entries: LruCache<DocKey, Entry>,
    bytes: usize,
    /// Counts the writes to this shard.
    writes: u64,
}

/// The right to put into the cache what was read after it was issued.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket(u64);

/// The cache's answer for a key.
pub(crate) enum Lookup {
    Hit(Option<Document>),
    Miss(Ticket),
}

#[derive(Debug)]
pub(crate) struct Cache {
    hasher: RandomState,
    shards: Vec<Mutex<Shard>>,
    shard_bytes: usize,
}

impl Cache {
    pub(crate) fn new(bytes: usize) -> Self {
        let shard = || Mutex::new(Shard { entries: LruCache::new_unbounded(), bytes: 0, writes: 0 });
        Self {
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| shard()).collect(),
            shard_bytes: bytes / SHARDS,
        }
    }

    pub(crate) fn get(&self, key: &DocKey, now: Timestamp) -> Lookup {
        let mut shard = self.shard(key);
        let ticket = Ticket(shard.writes);
        match shard.entries.get(key) {
            Some(Entry::Known(document, _)) => {
                let alive = |document: &&Document| document.expires.is_none_or(|expires| expires > now);
                Lookup::Hit(document.as_ref().filter(alive).cloned())
            }
            Some(Entry::Pending) | None => Lookup::Miss(ticket),
        }
    }

    /// Offers what a reader found in the database.
    pub(crate) fn offer(&self, key: &DocKey, document: Option<&Document>, ticket: Ticket) {
        let mut shard = self.shard(key);
        if shard.writes == ticket.0 && !matches!(shard.entries.peek(key), Some(Entry::Pending)) {
            shard.put(key.clone(), document.cloned(), self.shard_bytes);
        }
    }

    /// Called before the commit.
    pub(crate) fn begin<'a>(&self, keys: impl Iterator<Item = &'a DocKey>) {
        for key in keys {
            let mut shard = self.shard(key);
            shard.writes += 1;
            shard.take(key);
            shard.entries.insert(key.clone(), Entry::Pending);
        }
    }

    /// Called after the commit, before it is announced.
    pub(crate) fn commit(&self, documents: Vec<(DocKey, Option<Document>)>) {
        for (key, document) in documents {
            let mut shard = self.shard(&key);
            shard.writes += 1;
            shard.put(key, document, self.shard_bytes);
        }
    }

    /// Called when the commit failed: nothing is known about these keys.
    pub(crate) fn abort<'a>(&self, keys: impl Iterator<Item = &'a DocKey>) {
        for key in keys {
            let mut shard = self.shard(key);
            shard.writes += 1;
            shard.take(key);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).bytes).sum()
    }

    fn shard(&self, key: &DocKey) -> MutexGuard<'_, Shard> {
        let at = self.hasher.hash_one(key) as usize % SHARDS;
        lock(&self.shards[at])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    fn take(&mut self, key: &DocKey) {
        if let Some(Entry::Known(_, size)) = self.entries.remove(key) {
            self.bytes -= size;
        }
    }

    fn put(&mut self, key: DocKey, document: Option<Document>, limit: usize) {
        self.take(&key);
        let text = key.partition.as_str().len() + key.id.as_str().len();
        let held = document.as_ref().map_or(0, |document| {
            document.resource_type.len() + document.resource_id.len() + document.body.get().len()
        });
        let size = ENTRY_OVERHEAD + text + held;
        if size > limit {
            return;
        }
        self.bytes += size;
        self.entries.insert(key, Entry::Known(document, size));
        while self.bytes > limit {
            match self.entries.remove_lru() {
                Some((_, Entry::Known(_, size))) => self.bytes -= size,
                // A key in the middle of a commit must stay marked; it is taken out when the commit ends.
                Some((key, Entry::Pending)) => {
                    self.entries.insert(key, Entry::Pending);
                }
                None => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aro_store::{Container, DocId, PartitionKey, Raw, adapter::etag_of};

    fn key(id: &str) -> DocKey {
        DocKey { container: Container::new("c"), partition: PartitionKey::new("p"), id: DocId::new(id) }
    }

    fn document(id: &str, version: u64, body: usize) -> Document {
        Document {
            key: key(id),
            resource_type: String::new(),
            resource_id: String::new(),
            etag: etag_of(version, Timestamp::UNIX_EPOCH),
            version,
            modified: Timestamp::UNIX_EPOCH,
            expires: None,
            body: Raw::stored("x".repeat(body)),
        }
    }

    /// The version the cache answers with, 0 for "known to be absent", `None` for "ask the database".
    fn version(cache: &Cache, id: &str) -> Option<u64> {
        match cache.get(&key(id), Timestamp::UNIX_EPOCH) {
            Lookup::Hit(found) => Some(found.map_or(0, |document| document.version)),
            Lookup::Miss(_) => None,
        }
    }

    fn ticket(cache: &Cache, id: &str) -> Ticket {
        match cache.get(&key(id), Timestamp::UNIX_EPOCH) {
            Lookup::Miss(ticket) => ticket,
            Lookup::Hit(_) => panic!("not a miss"),
        }
    }

    #[test]
    fn a_slow_reader_cannot_bring_back_an_old_version() {
        let cache = Cache::new(1 << 20);
        let slow = ticket(&cache, "a");
        cache.begin([key("a")].iter());
        assert_eq!(version(&cache, "a"), None, "pending keys are asked of the database");
        cache.offer(&key("a"), Some(&document("a", 1, 10)), ticket(&cache, "a"));
        assert_eq!(version(&cache, "a"), None, "a pending key is not filled");
        cache.commit(vec![(key("a"), Some(document("a", 2, 10)))]);
        cache.offer(&key("a"), Some(&document("a", 1, 10)), slow);
        assert_eq!(version(&cache, "a"), Some(2));
    }

    #[test]
    fn a_failed_commit_leaves_nothing_behind() {
        let cache = Cache::new(1 << 20);
        cache.commit(vec![(key("a"), Some(document("a", 1, 10)))]);
        cache.begin([key("a")].iter());
        cache.abort([key("a")].iter());
        assert_eq!(version(&cache, "a"), None);
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn absence_is_remembered_and_memory_is_bounded() {
        let cache = Cache::new(SHARDS * 2000);
        cache.offer(&key("none"), None, ticket(&cache, "none"));
        assert_eq!(version(&cache, "none"), Some(0));
        for n in 0..10_000 {
            let id = format!("d{n}");
            cache.commit(vec![(key(&id), Some(document(&id, 1, 500)))]);
        }
        assert!(cache.bytes() <= SHARDS * 2000);
        cache.commit(vec![(key("big"), Some(document("big", 1, 5000)))]);
        assert_eq!(version(&cache, "big"), None, "what would push everything else out is not kept");
    }
}
