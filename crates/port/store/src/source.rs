//! Documents as a source of keys for a controller.

use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_control::{Key, Queue, Source, Synced};
use aro_net::Backoff;
use aro_runtime::{Fault, Scope, TaskKind};
use futures::FutureExt as _;
use tokio::sync::watch;

use crate::{Change, Container, Document, Follower, Page, Query, SharedStore, StoreError};

/// Documents in one page of the list.
const PAGE: usize = 200;

/// Delays while the store is not available.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));

type Map<K> = dyn Fn(&Document) -> Option<K> + Send + Sync;

/// Enqueues the keys of documents of one type: every live one once, then every one that is created or replaced.
///
/// The flow: cursor, then list, then feed, so that no change falls between the two; an expired cursor starts over. A
/// deletion enqueues nothing: a controller's documents are deleted by the controller itself.
pub struct DocumentSource<K> {
    store: SharedStore,
    container: Container,
    resource_type: String,
    key_of: Arc<Map<K>>,
    delay: Duration,
}

impl<K> Clone for DocumentSource<K> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            container: self.container,
            resource_type: self.resource_type.clone(),
            key_of: self.key_of.clone(),
            delay: self.delay,
        }
    }
}

impl<K: Key> DocumentSource<K> {
    /// A source of the documents of a type. `key_of` returns `None` for documents that are no concern of the controller.
    pub fn new(
        store: SharedStore,
        container: Container,
        resource_type: impl Into<String>,
        key_of: impl Fn(&Document) -> Option<K> + Send + Sync + 'static,
    ) -> Self {
        Self {
            store,
            container,
            resource_type: resource_type.into(),
            key_of: Arc::new(key_of),
            delay: Duration::ZERO,
        }
    }

    /// Enqueues changes only after this long: for documents whose writer does the work itself, and that are left over only
    /// if it dies. Documents that exist at the start are enqueued at once. The feed is then read in larger steps: a busy
    /// container wakes the source a few times in that period, not with every write.
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    async fn run(&self, queue: &Queue<K>, synced: &watch::Sender<bool>) {
        let mut attempts = BACKOFF.attempts();
        loop {
            let error = match self.list(queue).await {
                Ok(mut follower) => {
                    attempts.reset();
                    synced.send_replace(true);
                    self.follow(&mut follower, queue).await
                }
                Err(error) => error,
            };
            if !matches!(error, StoreError::CursorExpired) {
                tracing::warn!(container = %self.container, error = %chain(&error), "documents not listed");
                attempts.wait().await;
            }
        }
    }

    /// Enqueues every live document. Returns a follower of all changes since.
    async fn list(&self, queue: &Queue<K>) -> Result<Follower, StoreError> {
        let cursor = self.store.latest_cursor(self.container).await?;
        let follower = Follower::new(self.store.clone(), self.container, Some(cursor));
        let query = Query::all(self.container).of_type(&self.resource_type);
        let mut page = Page::first(PAGE);
        loop {
            let paged = self.store.query(&query, page).await?;
            for document in &paged.items {
                self.enqueue(document, queue, Duration::ZERO);
            }
            match paged.next {
                Some(next) => page = Page { size: PAGE, after: Some(next) },
                None => return Ok(follower),
            }
        }
    }

    /// Enqueues changes until the cursor expires.
    async fn follow(&self, follower: &mut Follower, queue: &Queue<K>) -> StoreError {
        let mut attempts = BACKOFF.attempts();
        loop {
            match follower.next().await {
                Ok(page) => {
                    attempts.reset();
                    for change in &page.changes {
                        if let Change::Upsert(document) = change
                            && document.resource_type.eq_ignore_ascii_case(&self.resource_type)
                        {
                            self.enqueue(document, queue, self.delay);
                        }
                    }
                    if !page.more {
                        tokio::time::sleep(self.delay / 6).await;
                    }
                }
                Err(error @ StoreError::CursorExpired) => return error,
                Err(error) => {
                    tracing::debug!(container = %self.container, error = %chain(&error), "change feed not read");
                    attempts.wait().await;
                }
            }
        }
    }

    fn enqueue(&self, document: &Document, queue: &Queue<K>, delay: Duration) {
        if let Some(key) = (self.key_of)(document) {
            queue.add_after(key, delay);
        }
    }
}

impl<K: Key> Source<K> for DocumentSource<K> {
    fn start(&self, queue: &Queue<K>, scope: &Scope) -> Synced {
        let (source, queue) = (self.clone(), queue.clone());
        let (sender, mut synced) = watch::channel(false);
        scope.spawn(TaskKind::Helper, format!("follow-{}", self.container), async move {
            source.run(&queue, &sender).await;
            Ok::<_, Fault>(())
        });
        async move {
            if synced.wait_for(|synced| *synced).await.is_err() {
                // The scope is cancelled before the first list: never synced.
                std::future::pending::<()>().await;
            }
        }
        .boxed()
    }
}
