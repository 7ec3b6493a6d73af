//! What one subscriber is to be brought beside the news: what it missed, or what it asked for.
//!
//! Its own stream reads it, page by page, each when everything before it was sent. So however much there is, no more of it
//! waits in memory than one page, and a slow subscriber slows nobody but itself.
//!
//! News come in between. A page may therefore hold a status that is older than one that was told meanwhile: it is left
//! out, by what the feed has shown of that bundle last.

use std::collections::HashMap;
use std::sync::Arc;

use aro_bundle::{Event, KnownStatus};
use aro_store::{Change, Cursor, Page, PageToken, StoreError};

use super::positions::Place;
use super::{Streams, Subscriber};
use crate::fault::Fault;
use crate::rows::{Bundle, CONTAINER, Kept};
use crate::speech;

/// Rows or changes read at once. All of them wait at once, and statuses may be large.
const PAGE: usize = 20;

/// A walk that is not at its end yet.
#[derive(Debug)]
pub enum Sweep {
    /// Through the feed, from the place up to which a source was told. What ended places are left is let go of at the end.
    Missed { from: Cursor, ended: Vec<Place> },
    /// Through the rows: those whose status is another than the one that is known. Nothing known: all.
    Different { known: Arc<HashMap<String, String>>, after: Option<PageToken> },
}

impl Sweep {
    /// What differs from this; everything, if it is nothing.
    pub fn different(known: Vec<KnownStatus>) -> Self {
        let known = known.into_iter().map(|one| (one.id, one.hash)).collect();
        Self::Different { known: Arc::new(known), after: None }
    }

    /// Once more from the beginning, for another subscriber.
    pub fn again(&self) -> Option<Self> {
        match self {
            Self::Different { known, .. } => Some(Self::Different { known: known.clone(), after: None }),
            Self::Missed { .. } => None,
        }
    }
}

impl Streams {
    /// Tells one page of it. Returns the rest, if there is any.
    pub(super) async fn sweep(&self, subscriber: &Subscriber, sweep: Sweep) -> Result<Option<Sweep>, Fault> {
        match sweep {
            Sweep::Missed { from, ended } => self.sweep_missed(subscriber, &from, ended).await,
            Sweep::Different { known, after } => {
                let page = Page { size: PAGE, after };
                let (rows, next) = self.dispatcher.rows.of_source(&subscriber.source, page).await?;
                for row in rows.iter().filter(|row| differs(&row.value, &known)) {
                    self.retell_row(subscriber, &row.value);
                }
                Ok(next.map(|next| Sweep::Different { known, after: Some(next) }))
            }
        }
    }

    async fn sweep_missed(
        &self,
        subscriber: &Subscriber,
        from: &Cursor,
        ended: Vec<Place>,
    ) -> Result<Option<Sweep>, Fault> {
        let page = match self.dispatcher.rows.store().changes(CONTAINER, Some(from), PAGE).await {
            Ok(page) => page,
            // Longer ago than the feed goes back: then what is there now is told.
            Err(StoreError::CursorExpired) => return Ok(Some(Sweep::different(Vec::new()))),
            Err(error) => return Err(Fault::caused("the feed cannot be read", error)),
        };
        for change in &page.changes {
            let Change::Upsert(document) = change else { continue };
            match Kept::read(document) {
                Ok(Some(Kept::Bundle(row))) if row.value.source == subscriber.source => {
                    self.retell_row(subscriber, &row.value);
                }
                Ok(Some(Kept::Farewell(gone))) if gone.source == subscriber.source => {
                    let event = speech::farewell(&gone).ok();
                    self.retell(subscriber, &gone.id, gone.sequence.as_deref(), event);
                }
                _ => {}
            }
        }
        if page.more {
            return Ok(Some(Sweep::Missed { from: page.next, ended }));
        }
        self.let_go(ended).await;
        Ok(None)
    }

    fn retell_row(&self, subscriber: &Subscriber, row: &Bundle) {
        let event = speech::to_source(row).ok().flatten();
        self.retell(subscriber, &row.id, row.delivery.sequence.as_deref(), event);
    }

    /// Tells what was read, unless the feed has shown something else of it since: that was told, or will be.
    pub(super) fn retell(
        &self,
        subscriber: &Subscriber,
        id: &str,
        sequence: Option<&str>,
        event: Option<Event>,
    ) {
        let Some(event) = event else { return };
        // Held until it is told, so that nothing newer can come between.
        let told = self.told.lock();
        if told.peek(id).is_none_or(|last| last == sequence.unwrap_or_default()) {
            subscriber.tell(id, Arc::new(event));
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
