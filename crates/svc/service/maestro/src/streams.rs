//! Subscriptions of sources: statuses, as the store's change feed brings them.
//!
//! Every replica follows the feed and delivers to its own subscribers, so it does not matter which replica stored a status. A
//! slow subscriber gets the newest status of each bundle. One that is far behind, by number or by bytes, is disconnected and
//! gets what it missed when it subscribes again: the feed position up to which a source was served is stored
//! ([`positions`]), and a new subscription starts there, reading at its own pace ([`replay`]).
//!
//! The same reader of the feed maintains the [`crate::backlog::Backlog`].

mod pending;
mod positions;
mod replay;
mod resync_request;
mod stream;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_bundle::Event;
use aro_runtime::{Fault, Scope, TaskKind};
use aro_store::{Change, Follower, StoreError};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::backlog::{Backlog, Unconfirmed};
use crate::encoder;
use crate::metrics::ServerMetrics;
use crate::rows::{BUNDLE, Bundle, CONSUMER, CONTAINER, FeedRow, OrphanDeletion, Rows, Tombstone};

use pending::Limits;
use positions::{Head, Positions};
pub use stream::{Subscriber, Subscription};

/// Bundles whose last delivered sequence id is kept.
const MAX_SEQUENCES: usize = 200_000;
/// Subscriptions of one source per replica, since each may use memory.
const MAX_PER_SOURCE: usize = 64;
/// What waits for one subscriber. One that is further behind is disconnected, and replays what it missed when it subscribes
/// again.
const LIMITS: Limits = Limits { bundles: 20_000, bytes: 32 * 1024 * 1024 };
/// Changes per page of the feed.
const PAGE: usize = 500;
/// The pause after a failed read of the feed.
const PAUSE: Duration = Duration::from_millis(200);

/// The subscriptions of this replica.
pub struct Streams {
    rows: Rows,
    backlog: Arc<Backlog>,
    metrics: ServerMetrics,
    pub(crate) replica: String,
    subscribers: Mutex<HashMap<String, Vec<Arc<Subscriber>>>>,
    /// The last delivered sequence id by bundle: a change that is not one of the status is not delivered.
    delivered: Mutex<hashlink::LruCache<String, String>>,
    /// The position in the feed; `None` until the initial read is complete.
    head: watch::Sender<Option<Head>>,
    positions: Positions,
    /// Consumers for which orphan deletion is blocked.
    blocked: Mutex<HashSet<String>>,
    /// What waits for one subscriber.
    limits: Limits,
}

/// Why a source cannot subscribe.
#[derive(Debug, thiserror::Error)]
pub enum NotSubscribed {
    /// The source has too many subscriptions.
    #[error("the source has {MAX_PER_SOURCE} subscriptions here already")]
    TooMany,
    /// The missed statuses cannot be determined.
    #[error(transparent)]
    Failed(#[from] crate::Fault),
}

impl Streams {
    /// Starts following the feed.
    pub fn start(
        rows: Rows,
        backlog: Arc<Backlog>,
        metrics: ServerMetrics,
        replica: String,
        scope: &Scope,
    ) -> Arc<Self> {
        Self::with_limits(rows, backlog, metrics, replica, LIMITS, scope)
    }

    fn with_limits(
        rows: Rows,
        backlog: Arc<Backlog>,
        metrics: ServerMetrics,
        replica: String,
        limits: Limits,
        scope: &Scope,
    ) -> Arc<Self> {
        let streams = Arc::new(Self {
            rows,
            backlog,
            metrics,
            replica,
            subscribers: Mutex::default(),
            delivered: Mutex::new(hashlink::LruCache::new(MAX_SEQUENCES)),
            head: watch::Sender::new(None),
            positions: Positions::default(),
            blocked: Mutex::default(),
            limits,
        });
        let (own, inside) = (streams.clone(), scope.clone());
        scope.spawn(TaskKind::Worker, "feed", async move {
            tokio::select! {
                () = inside.cancelled() => {}
                () = own.follow() => {}
            }
            Ok::<_, Fault>(())
        });
        let own = streams.clone();
        scope.spawn(TaskKind::Helper, "positions", async move {
            own.maintain_positions().await;
            Ok::<_, Fault>(())
        });
        streams
    }

    /// Returns when the initial read of the feed is complete.
    pub async fn loaded(&self) {
        let _ = self.head.subscribe().wait_for(Option::is_some).await;
    }

    async fn follow(&self) {
        let store = self.rows.store();
        let mut follower = Follower::new(store.clone(), CONTAINER, None).with_limit(PAGE);
        let mut healthy = true;
        loop {
            // The initial read ends with a page that has no successor; for an empty container that is the first.
            let loaded = self.head.borrow().is_some();
            let page = match loaded {
                true => follower.next().await,
                false => store.changes(CONTAINER, follower.cursor(), PAGE).await,
            };
            match page {
                Ok(page) => {
                    for change in &page.changes {
                        self.apply_change(change);
                    }
                    if !loaded {
                        follower =
                            Follower::new(store.clone(), CONTAINER, Some(page.next.clone())).with_limit(PAGE);
                        if page.more {
                            continue;
                        }
                    }
                    let reached = self.rows.clock().now();
                    self.head.send_replace(Some(Head { cursor: page.next, reached }));
                    healthy = true;
                }
                Err(StoreError::CursorExpired) => {
                    tracing::warn!("feed cursor expired; reading all rows again");
                    // Deletions in the missed part of the feed are not delivered any more.
                    self.backlog.clear();
                    self.blocked.lock().clear();
                    follower = Follower::new(store.clone(), CONTAINER, None).with_limit(PAGE);
                }
                Err(error) => {
                    if std::mem::take(&mut healthy) {
                        tracing::warn!(error = %chain(&error), "feed not read; retrying");
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn apply_change(&self, change: &Change) {
        match change {
            Change::Upsert(document) => match FeedRow::read(document) {
                Ok(Some(FeedRow::Bundle(row))) => {
                    self.backlog.update(&row.value.id, Unconfirmed::of(&row.value));
                    self.deliver_status(&row.value);
                }
                Ok(Some(FeedRow::Tombstone(tombstone))) => self.deliver_final_status(&tombstone),
                Ok(Some(FeedRow::Consumer(row))) => {
                    self.count_blocked(&row.value.name, row.value.orphan_deletion);
                }
                Ok(None) => self.start_resync(document),
                Err(error) => {
                    tracing::error!(document = %document.key, error = %chain(&error), "row cannot be decoded");
                }
            },
            Change::Delete { key, resource_type, .. } if resource_type == BUNDLE => {
                self.backlog.update(key.id.as_str(), None);
            }
            Change::Delete { key, resource_type, .. } if resource_type == CONSUMER => {
                self.count_blocked(key.id.as_str(), OrphanDeletion::Allowed);
            }
            Change::Delete { .. } => {}
        }
    }

    /// Counts the consumers for which orphan deletion is blocked.
    fn count_blocked(&self, consumer: &str, orphan_deletion: OrphanDeletion) {
        let mut blocked = self.blocked.lock();
        if orphan_deletion == OrphanDeletion::Blocked {
            blocked.insert(consumer.to_owned());
        } else {
            blocked.remove(consumer);
        }
        self.metrics.disputed.set(blocked.len() as i64);
    }

    /// Whether a sequence id differs from the last delivered one; records it.
    fn record_new(&self, id: &str, sequence: Option<&str>) -> bool {
        let mut delivered = self.delivered.lock();
        let sequence = sequence.unwrap_or_default();
        if delivered.get(id).is_some_and(|last| last == sequence) {
            return false;
        }
        delivered.insert(id.to_owned(), sequence.to_owned());
        true
    }

    fn deliver_status(&self, row: &Bundle) {
        if row.status.is_none() || !self.record_new(&row.id, row.delivery.sequence.as_deref()) {
            return;
        }
        self.deliver(&row.source, &row.id, || encoder::status_event(row).ok().flatten());
    }

    fn deliver_final_status(&self, tombstone: &Tombstone) {
        if self.record_new(&tombstone.id, tombstone.sequence.as_deref()) {
            let event = || encoder::final_status_event(tombstone).ok();
            self.deliver(&tombstone.source, &tombstone.id, event);
        }
    }

    /// Delivers an event to all subscribers of a source. It is encoded once, and only if there are any.
    fn deliver(&self, source: &str, id: &str, event: impl FnOnce() -> Option<Event>) {
        let subscribers = self.subscribers_of(source);
        if subscribers.is_empty() {
            return;
        }
        let Some(event) = event().map(Arc::new) else { return };
        for subscriber in subscribers {
            subscriber.enqueue(id, event.clone());
        }
    }

    /// The subscribers of a source; none during the initial read.
    fn subscribers_of(&self, source: &str) -> Vec<Arc<Subscriber>> {
        if self.head.borrow().is_none() {
            return Vec::new();
        }
        self.subscribers.lock().get(source).cloned().unwrap_or_default()
    }

    /// Subscribes. What the source missed since its last delivery is replayed first.
    pub async fn subscribe(self: &Arc<Self>, source: &str) -> Result<Subscription, NotSubscribed> {
        self.loaded().await;
        // Read before the subscriber is registered: replaying a little too much is harmless.
        let began = self.head.borrow().clone();
        let subscription = Subscription(self.register(source).ok_or(NotSubscribed::TooMany)?);
        // From here on every new status is delivered. What was missed before follows, some of it twice.
        if let Some(missed) = self.missed(source, began).await? {
            subscription.0.replay_first(missed);
        }
        Ok(subscription)
    }

    fn register(self: &Arc<Self>, source: &str) -> Option<Arc<Subscriber>> {
        let mut subscribers = self.subscribers.lock();
        let all = subscribers.entry(source.to_owned()).or_default();
        if all.len() >= MAX_PER_SOURCE {
            return None;
        }
        let subscriber = Subscriber::new(self.clone(), source.to_owned());
        all.push(subscriber.clone());
        self.metrics.subscribers.inc();
        Some(subscriber)
    }

    fn unregister(&self, subscriber: &Subscriber) {
        let mut subscribers = self.subscribers.lock();
        if let Some(all) = subscribers.get_mut(&subscriber.source) {
            all.retain(|registered| !std::ptr::eq(Arc::as_ptr(registered), subscriber));
            if all.is_empty() {
                subscribers.remove(&subscriber.source);
            }
        }
        self.metrics.subscribers.dec();
    }
}

#[cfg(test)]
mod tests;
