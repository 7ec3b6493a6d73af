//! What one subscriber gets besides new statuses: what it missed, or what its source requested.
//!
//! Its own stream reads it page by page, each after the one before was sent. So at most one page of it is in memory, and a
//! slow subscriber delays only itself.
//!
//! New statuses are delivered in between. A page may hold a status that is older than one delivered meanwhile; it is skipped
//! by comparing with the last sequence id the feed has shown.

use std::collections::HashMap;
use std::sync::Arc;

use aro_bundle::{Event, KnownStatus};
use aro_store::{Change, Cursor, Page, PageToken, StoreError};

use super::positions::EndedPosition;
use super::{Streams, Subscriber};
use crate::encoder;
use crate::fault::Fault;
use crate::rows::{Bundle, CONTAINER, FeedRow};

/// Rows or changes read at once. All of them wait at once, and statuses may be large.
const PAGE: usize = 20;

/// A replay that is not finished.
#[derive(Debug)]
pub enum Replay {
    /// Of the feed, from the position up to which the source was served. Positions of ended streams are deleted at the end.
    Missed { from: Cursor, ended: Vec<EndedPosition> },
    /// Of the rows whose status differs from the listed one; of all rows if nothing is listed.
    Different { known: Arc<HashMap<String, String>>, after: Option<PageToken> },
}

impl Replay {
    /// A replay of what differs from `known`; of everything if that is empty.
    pub fn different(known: Vec<KnownStatus>) -> Self {
        let known = known.into_iter().map(|known| (known.id, known.hash)).collect();
        Self::Different { known: Arc::new(known), after: None }
    }

    /// The same replay from its start, for another subscriber.
    pub fn restart(&self) -> Option<Self> {
        match self {
            Self::Different { known, .. } => Some(Self::Different { known: known.clone(), after: None }),
            Self::Missed { .. } => None,
        }
    }
}

impl Streams {
    /// Delivers one page. Returns the rest, if there is any.
    pub(super) async fn replay(
        &self,
        subscriber: &Subscriber,
        replay: Replay,
    ) -> Result<Option<Replay>, Fault> {
        match replay {
            Replay::Missed { from, ended } => self.replay_missed(subscriber, &from, ended).await,
            Replay::Different { known, after } => {
                let page = Page { size: PAGE, after };
                let (rows, next) = self.rows.of_source(&subscriber.source, page).await?;
                for row in rows.iter().filter(|row| differs(&row.value, &known)) {
                    self.replay_row(subscriber, &row.value);
                }
                Ok(next.map(|next| Replay::Different { known, after: Some(next) }))
            }
        }
    }

    async fn replay_missed(
        &self,
        subscriber: &Subscriber,
        from: &Cursor,
        ended: Vec<EndedPosition>,
    ) -> Result<Option<Replay>, Fault> {
        let page = match self.rows.store().changes(CONTAINER, Some(from), PAGE).await {
            Ok(page) => page,
            // The position is older than the feed: the current state is replayed.
            Err(StoreError::CursorExpired) => return Ok(Some(Replay::different(Vec::new()))),
            Err(error) => return Err(Fault::caused("read the feed", error)),
        };
        for change in &page.changes {
            let Change::Upsert(document) = change else { continue };
            match FeedRow::read(document) {
                Ok(Some(FeedRow::Bundle(row))) if row.value.source == subscriber.source => {
                    self.replay_row(subscriber, &row.value);
                }
                Ok(Some(FeedRow::Tombstone(tombstone))) if tombstone.source == subscriber.source => {
                    let event = encoder::final_status_event(&tombstone).ok();
                    self.replay_event(subscriber, &tombstone.id, tombstone.sequence.as_deref(), event);
                }
                _ => {}
            }
        }
        if page.more {
            return Ok(Some(Replay::Missed { from: page.next, ended }));
        }
        self.delete_positions(ended).await;
        Ok(None)
    }

    fn replay_row(&self, subscriber: &Subscriber, row: &Bundle) {
        let event = encoder::status_event(row).ok().flatten();
        self.replay_event(subscriber, &row.id, row.delivery.sequence.as_deref(), event);
    }

    /// Delivers a replayed event, unless the feed has shown another one since: that one was or will be delivered.
    pub(super) fn replay_event(
        &self,
        subscriber: &Subscriber,
        id: &str,
        sequence: Option<&str>,
        event: Option<Event>,
    ) {
        let Some(event) = event else { return };
        // Held until it is delivered, so that nothing newer comes in between.
        let delivered = self.delivered.lock();
        if delivered.peek(id).is_none_or(|last| last == sequence.unwrap_or_default()) {
            subscriber.enqueue(id, Arc::new(event));
        }
    }
}

fn differs(row: &Bundle, known: &HashMap<String, String>) -> bool {
    if row.status.is_none() {
        return false;
    }
    let hash = row.status_event().ok().flatten().and_then(|status| status.status_hash).unwrap_or_default();
    known.is_empty() || known.get(&row.id).is_some_and(|known| *known != hash)
}
