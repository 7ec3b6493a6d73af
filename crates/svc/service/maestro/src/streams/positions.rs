//! The feed position up to which each source was served, so that a new subscription starts there.
//!
//! The first position is stored when a source first subscribes, so that even a source that disconnects at once misses
//! nothing. While a source is subscribed, its position is stored from time to time, always one before which everything was
//! sent: after a crash it is a little too early, never too late. A subscriber that does not read keeps its position for as
//! long as it is connected (tombstones of removed bundles last an hour all the same). Positions are stored per replica and
//! expire with the tombstones. A new subscription starts at the oldest of them. They belong to a source, not to a client:
//! what one client got, the source got.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{SignedDuration, Timestamp, chain};
use aro_store::{
    Batch, Container, Cursor, DocId, DocKey, Document, NewDocument, Op, Page, PartitionKey, Query, Raw,
    StoreError,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::replay::Replay;
use super::{Streams, Subscriber};
use crate::fault::Fault;

/// Not in the rows' container: a stored position must not wake the followers of the rows.
const POSITIONS: Container = Container::new("maestro-streams");
const KIND: &str = "position";
/// How long a position is kept.
const TTL: Duration = Duration::from_hours(1);
/// How often positions are checked.
const TICK: Duration = Duration::from_secs(1);
/// Attempts to write a position.
const WRITE_ATTEMPTS: u32 = 3;
/// How often an unchanged position is stored again, so that it does not expire.
const REFRESH: SignedDuration = SignedDuration::from_secs(30);
/// A position not stored for this long belongs to a stream that has ended; it is replayed once.
const ENDED: SignedDuration = SignedDuration::from_secs(90);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Position {
    source: String,
    #[serde(flatten)]
    head: Head,
    /// When it was last stored.
    at: Timestamp,
}

/// A position in the feed, and when it was the newest: cursors have no order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) cursor: Cursor,
    pub(super) reached: Timestamp,
}

/// A position that this replica has stored.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    head: Head,
    pub(super) at: Timestamp,
}

/// The positions that this replica has stored, by source.
#[derive(Debug, Default)]
pub(super) struct Positions {
    stored: Mutex<HashMap<String, Stored>>,
    /// Held while positions are read and stored: a new subscriber's must not be overwritten with one read before it came.
    exclusive: tokio::sync::Mutex<()>,
}

/// The stored position of a stream that has ended, as the batch that deletes it.
#[derive(Debug)]
pub struct EndedPosition(Batch);

/// A position before which everything was sent to all subscribers of that time.
struct Drained {
    head: Head,
    subscribers: Vec<Arc<Subscriber>>,
}

impl Streams {
    pub(super) async fn maintain_positions(&self) {
        let mut drained: HashMap<String, Drained> = HashMap::new();
        loop {
            tokio::time::sleep(TICK).await;
            let Some(head) = self.head.borrow().clone() else { continue };
            let sources: Vec<(String, Vec<Arc<Subscriber>>)> = {
                let subscribers = self.subscribers.lock();
                // A new subscriber is not lost here: its position is stored after it was registered.
                self.positions.stored.lock().retain(|source, _| subscribers.contains_key(source));
                subscribers.iter().map(|(source, all)| (source.clone(), all.clone())).collect()
            };
            drained.retain(|source, _| sources.iter().any(|(subscribed, _)| subscribed == source));
            for (source, subscribers) in sources {
                // An event may be taken and not sent yet, so a drained position counts one tick later.
                if let Err(error) = self.store_or_refresh(&source, drained.remove(&source)).await {
                    tracing::debug!(source, error = %chain(&error), "feed position not stored");
                }
                if subscribers.iter().all(|subscriber| subscriber.is_drained()) {
                    drained.insert(source, Drained { head: head.clone(), subscribers });
                }
            }
        }
    }

    /// Advances the position of a source, or refreshes it.
    async fn store_or_refresh(&self, source: &str, drained: Option<Drained>) -> Result<(), StoreError> {
        let _exclusive = self.positions.exclusive.lock().await;
        let stored = self.positions.stored.lock().get(source).cloned();
        let is_known = |subscriber: &Arc<Subscriber>, then: &Drained| {
            then.subscribers.iter().any(|known| Arc::ptr_eq(known, subscriber))
        };
        // A subscriber registered since may start further back.
        let subscribers = self.subscribers.lock().get(source).cloned().unwrap_or_default();
        let drained = drained.filter(|then| subscribers.iter().all(|subscriber| is_known(subscriber, then)));
        // Without a drained position the stored one is refreshed.
        let Some(head) = drained.map(|then| then.head).or_else(|| Some(stored.as_ref()?.head.clone())) else {
            return Ok(());
        };
        let now = self.rows.clock().now();
        let is_fresh =
            |stored: Stored| stored.head.cursor == head.cursor && now.duration_since(stored.at) < REFRESH;
        if stored.is_some_and(is_fresh) {
            return Ok(());
        }
        self.write_position(source, head, now).await
    }

    async fn write_position(&self, source: &str, head: Head, at: Timestamp) -> Result<(), StoreError> {
        let store = self.rows.store();
        let key = position_key(source, &self.replica);
        let position = Position { source: source.to_owned(), head: head.clone(), at };
        let body = Raw::of(&position).map_err(|error| StoreError::Corrupt(error.into()))?;
        let new = NewDocument {
            id: key.id.clone(),
            resource_type: KIND.to_owned(),
            resource_id: format!("/streams/{}", key.id),
            ttl: Some(TTL),
            body,
        };
        let mut attempts_left = WRITE_ATTEMPTS;
        loop {
            let op = match store.get(&key).await? {
                Some(old) => Op::Replace(new.clone(), old.etag),
                None => Op::Create(new.clone()),
            };
            attempts_left -= 1;
            match store.write(Batch::new(POSITIONS, key.partition.clone()).with(op)).await {
                // The write of a subscriber that has disconnected may still be in flight.
                Err(StoreError::Conflict { .. }) if attempts_left > 0 => {}
                written => {
                    written?;
                    break;
                }
            }
        }
        self.positions.stored.lock().insert(source.to_owned(), Stored { head, at });
        Ok(())
    }

    /// The replay for a subscriber of a source that was registered at position `began`.
    pub(super) async fn missed(&self, source: &str, began: Option<Head>) -> Result<Option<Replay>, Fault> {
        let failed = |error| Fault::caused("read the feed", error);
        let _exclusive = self.positions.exclusive.lock().await;
        let positions = self.stored_positions(source).await.map_err(failed)?;
        let now = self.rows.clock().now();
        let Some(oldest) = positions.iter().min_by_key(|(_, position)| position.head.reached) else {
            // However soon it disconnects, nothing after this position is missed.
            if let Some(head) = began.clone() {
                self.write_position(source, head, now).await.map_err(failed)?;
            }
            // Statuses delivered at this moment are replayed from there.
            return Ok(began.map(|from| Replay::Missed { from: from.cursor, ended: Vec::new() }));
        };
        let from = oldest.1.head.clone();
        let own = position_key(source, &self.replica).id;
        match positions.iter().find(|(document, _)| document.key.id == own) {
            Some((_, position)) if position.head.reached <= from.reached => {
                let stored = Stored { head: position.head.clone(), at: position.at };
                self.positions.stored.lock().insert(source.to_owned(), stored);
            }
            // The other positions expire; this one is refreshed while the source is subscribed here.
            _ => self.write_position(source, from.clone(), now).await.map_err(failed)?,
        }
        let is_over = |(document, position): &(Document, Position)| {
            document.key.id != own && now.duration_since(position.at) > ENDED
        };
        let ended = positions.into_iter().filter(is_over).map(|(document, _)| {
            let deletion = Op::Delete(document.key.id, document.etag);
            EndedPosition(Batch::new(POSITIONS, document.key.partition).with(deletion))
        });
        Ok(Some(Replay::Missed { from: from.cursor, ended: ended.collect() }))
    }

    /// Deletes positions of streams that have ended.
    pub(super) async fn delete_positions(&self, ended: Vec<EndedPosition>) {
        for EndedPosition(deletion) in ended {
            let _ = self.rows.store().write(deletion).await;
        }
    }

    async fn stored_positions(&self, source: &str) -> Result<Vec<(Document, Position)>, StoreError> {
        let query = Query::partition(POSITIONS, PartitionKey::new(source)).of_type(KIND);
        let found = self.rows.store().query(&query, Page::first(100)).await?;
        let read = |document: Document| {
            let position: Position = document.body.to().ok()?;
            // Partition keys are case-insensitive; sources are not.
            (position.source == source).then_some((document, position))
        };
        Ok(found.items.into_iter().filter_map(read).collect())
    }
}

fn position_key(source: &str, replica: &str) -> DocKey {
    DocKey {
        container: POSITIONS,
        partition: PartitionKey::new(source),
        id: DocId::new(&format!("{source}|{replica}")),
    }
}

#[cfg(test)]
impl Streams {
    /// When this replica stored the position of a source.
    pub(super) fn stored_at(&self, source: &str) -> Option<Timestamp> {
        self.positions.stored.lock().get(source).map(|stored| stored.at)
    }

    /// The positions that all replicas have stored for a source.
    pub(super) async fn all_stored(&self, source: &str) -> Vec<Head> {
        self.stored_positions(source).await.unwrap().into_iter().map(|(_, position)| position.head).collect()
    }
}
