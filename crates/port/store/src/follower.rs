//! Following a container's feed.

use crate::{ChangePage, ChangeSignal, Container, Cursor, SharedStore, StoreError};

/// Follows the feed of one container from a cursor, waiting when nothing is new.
///
/// It delivers *at least once* and drops nothing: after a restart from a stored cursor, after an error, or under a
/// faulty store the same change comes again. Consumers compare [`crate::Change::version`] with what they have.
///
/// ```text
/// let cursor = store.latest_cursor(c).await?;     // first the cursor,
/// list everything;                                // then the list: nothing falls between them
/// let mut follower = Follower::new(store, c, Some(cursor));
/// loop { let page = follower.next().await?; handle(page.changes); store_cursor(page.next); }
/// ```
pub struct Follower {
    store: SharedStore,
    container: Container,
    cursor: Option<Cursor>,
    signal: Box<dyn ChangeSignal>,
    limit: usize,
}

impl Follower {
    /// Follows from a cursor; `None` is from the beginning, which delivers every live document first.
    pub fn new(store: SharedStore, container: Container, after: Option<Cursor>) -> Self {
        // Subscribed before the first read, so a change between a read and a wait is not missed.
        let signal = store.subscribe(container);
        Self { store, container, cursor: after, signal, limit: 200 }
    }

    /// At most this many changes per page.
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// The next page with at least one change. May be dropped while waiting; the next call goes on where it was.
    ///
    /// After [`StoreError::CursorExpired`] list everything and start a new follower; after any other error call again,
    /// after a pause.
    pub async fn next(&mut self) -> Result<ChangePage, StoreError> {
        loop {
            let page = self.store.changes(self.container, self.cursor.as_ref(), self.limit).await?;
            // An empty page may move the cursor too: from "the beginning" to a place.
            self.cursor = Some(page.next.clone());
            if !page.changes.is_empty() {
                return Ok(page);
            }
            if !page.more {
                self.signal.changed().await;
            }
        }
    }

    /// Where it is: everything before this was returned by [`Follower::next`].
    pub fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }
}
