//! Up to which place in the feed each source was told, so that a new subscription begins there.
//!
//! The first place is written down when a source first subscribes, so that even one that leaves at once misses nothing.
//! While a source listens, its place is written down from time to time, always one that everything before was sent: after
//! a crash it is a little too early, never too late. One that does not read keeps the place it has, however long it sleeps
//! (farewells of bundles that went are there for an hour all the same). Places are kept per replica, for as long as a farewell
//! is; whoever subscribes begins at the oldest of them. They are a source's, not a client's: what one of its clients was told,
//! the source was told.

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

use super::sweep::Sweep;
use super::{Streams, Subscriber};
use crate::fault::Fault;

/// Places are no rows: whoever follows the rows must not be woken by them.
const POSITIONS: Container = Container::new("maestro-streams");
const KIND: &str = "position";
/// How long a place is kept.
const KEPT: Duration = Duration::from_hours(1);
/// How often places are looked at.
const TICK: Duration = Duration::from_secs(1);
/// How often a place is written again though nothing happened, so that it does not expire.
const REFRESH: SignedDuration = SignedDuration::from_secs(30);
/// Places of others that were not written for so long are of streams that ended; one replay is enough for them.
const ENDED: SignedDuration = SignedDuration::from_secs(90);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Position {
    source: String,
    #[serde(flatten)]
    head: Head,
    /// When it was written, for the last time.
    at: Timestamp,
}

/// A place in the feed, and when it was the newest there was: cursors do not say which of them is older.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) cursor: Cursor,
    pub(super) reached: Timestamp,
}

/// A place that this replica has written down.
#[derive(Debug, Clone)]
pub(super) struct Written {
    head: Head,
    pub(super) at: Timestamp,
}

/// The places this replica has written down, by source.
#[derive(Debug, Default)]
pub(super) struct Places {
    written: Mutex<HashMap<String, Written>>,
    /// Held by whoever looks at places and writes one: a newcomer's must not be overwritten by what was seen before it came.
    turn: tokio::sync::Mutex<()>,
}

/// A place of a stream that ended, by what lets go of it.
#[derive(Debug)]
pub struct Place(Batch);

/// A place that everything before was sent to everybody who listened then.
struct Drained {
    head: Head,
    listeners: Vec<Arc<Subscriber>>,
}

impl Streams {
    pub(super) async fn keep_positions(&self) {
        let mut drained: HashMap<String, Drained> = HashMap::new();
        loop {
            tokio::time::sleep(TICK).await;
            let Some(head) = self.at.borrow().clone() else { continue };
            let sources: Vec<(String, Vec<Arc<Subscriber>>)> = {
                let listeners = self.listeners.lock();
                // Nobody can have joined and be forgotten: its place is written after it joined.
                self.places.written.lock().retain(|source, _| listeners.contains_key(source));
                listeners.iter().map(|(source, all)| (source.clone(), all.clone())).collect()
            };
            drained.retain(|source, _| sources.iter().any(|(one, _)| one == source));
            for (source, listeners) in sources {
                // A moment lies between the last word being taken and its being sent: what was drained one look ago is.
                if let Err(error) = self.keep_position(&source, drained.remove(&source)).await {
                    tracing::debug!(source, error = %chain(&error), "a place in the feed was not written down");
                }
                if listeners.iter().all(|one| one.is_drained()) {
                    drained.insert(source, Drained { head: head.clone(), listeners });
                }
            }
        }
    }

    /// Moves the place of a source on, or keeps it from expiring.
    async fn keep_position(&self, source: &str, drained: Option<Drained>) -> Result<(), StoreError> {
        let _turn = self.places.turn.lock().await;
        let written = self.places.written.lock().get(source).cloned();
        let is_known = |one: &Arc<Subscriber>, then: &Drained| {
            then.listeners.iter().any(|known| Arc::ptr_eq(known, one))
        };
        // Who came since may have to be told from further back.
        let listening = self.listeners.lock().get(source).cloned().unwrap_or_default();
        let drained = drained.filter(|then| listening.iter().all(|one| is_known(one, then)));
        // One that does not read keeps the place where it is, not the others from having one.
        let Some(head) = drained.map(|then| then.head).or_else(|| Some(written.as_ref()?.head.clone()))
        else {
            return Ok(());
        };
        let now = self.dispatcher.clock.now();
        let is_fresh =
            |written: Written| written.head.cursor == head.cursor && now.duration_since(written.at) < REFRESH;
        if written.is_some_and(is_fresh) {
            return Ok(());
        }
        self.write_position(source, head, now).await
    }

    async fn write_position(&self, source: &str, head: Head, at: Timestamp) -> Result<(), StoreError> {
        let store = self.dispatcher.rows.store();
        let key = position_key(source, &self.replica);
        let position = Position { source: source.to_owned(), head: head.clone(), at };
        let body = Raw::of(&position).map_err(|error| StoreError::Corrupt(error.into()))?;
        let new = NewDocument {
            id: key.id.clone(),
            resource_type: KIND.to_owned(),
            resource_id: format!("/streams/{}", key.id),
            ttl: Some(KEPT),
            body,
        };
        let op = match store.get(&key).await? {
            Some(old) => Op::Replace(new, old.etag),
            None => Op::Create(new),
        };
        store.write(Batch::new(POSITIONS, key.partition.clone()).with(op)).await?;
        self.places.written.lock().insert(source.to_owned(), Written { head, at });
        Ok(())
    }

    /// What a source was not told, for one that has begun to listen at this place.
    pub(super) async fn missed(&self, source: &str, began: Option<Head>) -> Result<Option<Sweep>, Fault> {
        let unread = |error| Fault::caused("the feed cannot be read", error);
        let _turn = self.places.turn.lock().await;
        let places = self.positions(source).await.map_err(unread)?;
        let now = self.dispatcher.clock.now();
        let Some(oldest) = places.iter().min_by_key(|(_, place)| place.head.reached) else {
            // However soon it leaves, from here on nothing is missed.
            if let Some(head) = began.clone() {
                self.write_position(source, head, now).await.map_err(unread)?;
            }
            // What was being told in this very moment is told again, from where it began.
            return Ok(began.map(|from| Sweep::Missed { from: from.cursor, ended: Vec::new() }));
        };
        let from = oldest.1.head.clone();
        let own = position_key(source, &self.replica).id;
        match places.iter().find(|(document, _)| document.key.id == own) {
            Some((_, place)) if place.head.reached <= from.reached => {
                let written = Written { head: place.head.clone(), at: place.at };
                self.places.written.lock().insert(source.to_owned(), written);
            }
            // The others' places end; this one is kept for as long as somebody listens here.
            _ => self.write_position(source, from.clone(), now).await.map_err(unread)?,
        }
        let is_over = |(document, place): &(Document, Position)| {
            document.key.id != own && now.duration_since(place.at) > ENDED
        };
        let ended = places.into_iter().filter(is_over).map(|(document, _)| {
            let gone = Op::Delete(document.key.id, document.etag);
            Place(Batch::new(POSITIONS, document.key.partition).with(gone))
        });
        Ok(Some(Sweep::Missed { from: from.cursor, ended: ended.collect() }))
    }

    /// Forgets places of streams that ended.
    pub(super) async fn let_go(&self, ended: Vec<Place>) {
        for Place(gone) in ended {
            let _ = self.dispatcher.rows.store().write(gone).await;
        }
    }

    async fn positions(&self, source: &str) -> Result<Vec<(Document, Position)>, StoreError> {
        let query = Query::partition(POSITIONS, PartitionKey::new(source)).of_type(KIND);
        let found = self.dispatcher.rows.store().query(&query, Page::first(100)).await?;
        let read = |document: Document| {
            let position: Position = document.body.to().ok()?;
            // Partitions do not tell upper from lower case; sources do.
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
    /// When the place of a source was written down here.
    pub(super) fn written(&self, source: &str) -> Option<Timestamp> {
        self.places.written.lock().get(source).map(|written| written.at)
    }

    /// The places that all replicas have written down for a source.
    pub(super) async fn all_written(&self, source: &str) -> Vec<Head> {
        self.positions(source).await.unwrap().into_iter().map(|(_, place)| place.head).collect()
    }
}
