//! Up to which place in the feed each source was told, so that a new subscription begins there.
//!
//! The first place is written down when a source first subscribes, so that even one that leaves at once misses nothing.
//! While a source listens, its place is written down from time to time, always one that everything before was sent: after
//! a crash it is a little too early, never too late. One that does not read keeps the place it has, however long it sleeps.
//! Places are kept per replica, for as long as a farewell is; whoever subscribes begins at the oldest of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{SignedDuration, Timestamp, chain};
use aro_store::{
    Batch, Container, Cursor, DocId, DocKey, Document, NewDocument, Op, Page, PartitionKey, Query, Raw,
    StoreError,
};
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
    cursor: Cursor,
    at: Timestamp,
}

/// A place of a stream that ended, by what lets go of it.
#[derive(Debug)]
pub struct Place(Batch);

/// What is known of a source's place here.
struct Known {
    /// Seen drained at the last look: safe to write now.
    drained: Option<Cursor>,
    written: Option<(Cursor, Timestamp)>,
}

impl Streams {
    pub(super) async fn keep_positions(&self) {
        let mut known: HashMap<String, Known> = HashMap::new();
        loop {
            tokio::time::sleep(TICK).await;
            let Some(now_at) = self.at.borrow().clone() else { continue };
            let sources: Vec<(String, bool)> = {
                let listeners = self.listeners.lock();
                let drained = |all: &Vec<Arc<Subscriber>>| all.iter().all(|one| one.is_drained());
                listeners.iter().map(|(source, all)| (source.clone(), drained(all))).collect()
            };
            known.retain(|source, _| sources.iter().any(|(one, _)| one == source));
            for (source, drained) in sources {
                if !known.contains_key(&source) {
                    // Its first place was written down when it subscribed.
                    match self.own_position(&source).await {
                        Ok(written) => known.insert(source.clone(), Known { drained: None, written }),
                        Err(error) => {
                            tracing::debug!(source, error = %chain(&error), "a place in the feed cannot be read");
                            continue;
                        }
                    };
                }
                let Some(entry) = known.get_mut(&source) else { continue };
                // A moment lies between the last word being taken and its being sent: what was drained one look ago is.
                if let Some(cursor) = entry.drained.take() {
                    let now = self.dispatcher.clock.now();
                    let fresh = |(written, at): &(Cursor, Timestamp)| {
                        *written == cursor && now.duration_since(*at) < REFRESH
                    };
                    if !entry.written.as_ref().is_some_and(fresh) {
                        match self.write_position(&source, &cursor, now).await {
                            Ok(()) => entry.written = Some((cursor, now)),
                            Err(error) => {
                                tracing::debug!(source, error = %chain(&error), "a place in the feed was not written down");
                            }
                        }
                    }
                }
                entry.drained = match &entry.written {
                    _ if drained => Some(now_at.clone()),
                    // One that does not read keeps the place where it is, not the others from having one.
                    Some((written, _)) => Some(written.clone()),
                    None => None,
                };
            }
        }
    }

    async fn write_position(&self, source: &str, cursor: &Cursor, at: Timestamp) -> Result<(), StoreError> {
        let store = self.dispatcher.rows.store();
        let key = position_key(source, &self.replica);
        let position = Position { source: source.to_owned(), cursor: cursor.clone(), at };
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
        store.write(Batch::new(POSITIONS, key.partition.clone()).with(op)).await.map(|_| ())
    }

    /// The place of a source that this replica has written down, and when.
    pub(super) async fn own_position(&self, source: &str) -> Result<Option<(Cursor, Timestamp)>, StoreError> {
        let own = self.dispatcher.rows.store().get(&position_key(source, &self.replica)).await?;
        let position = own.and_then(|document| document.body.to::<Position>().ok());
        Ok(position.map(|position| (position.cursor, position.at)))
    }

    /// What a source was not told, for one that began to listen at this place.
    pub(super) async fn missed(&self, source: &str, began: Option<&Cursor>) -> Result<Option<Sweep>, Fault> {
        let unread = |error| Fault::caused("the feed cannot be read", error);
        let places = self.positions(source).await.map_err(unread)?;
        let now = self.dispatcher.clock.now();
        let Some(oldest) = places.iter().min_by_key(|(_, place)| place.at) else {
            // However soon it leaves, from here on nothing is missed.
            if let Some(cursor) = began {
                match self.write_position(source, cursor, now).await {
                    // Another subscription of the source wrote one in this moment: as good as ours.
                    Ok(()) | Err(StoreError::Conflict { .. }) => {}
                    Err(error) => return Err(unread(error)),
                }
            }
            // What was being told in this very moment is told again, from where it began.
            return Ok(began.map(|from| Sweep::Missed { from: from.clone(), ended: Vec::new() }));
        };
        let from = oldest.1.cursor.clone();
        let own = position_key(source, &self.replica).id;
        if places.iter().all(|(document, _)| document.key.id != own) {
            // The others' places end; this one is kept for as long as somebody listens here.
            match self.write_position(source, &from, now).await {
                Ok(()) | Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(unread(error)),
            }
        }
        let is_over = |(document, place): &(Document, Position)| {
            document.key.id != own && now.duration_since(place.at) > ENDED
        };
        let ended = places.into_iter().filter(is_over).map(|(document, _)| {
            let gone = Op::Delete(document.key.id, document.etag);
            Place(Batch::new(POSITIONS, document.key.partition).with(gone))
        });
        Ok(Some(Sweep::Missed { from, ended: ended.collect() }))
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
