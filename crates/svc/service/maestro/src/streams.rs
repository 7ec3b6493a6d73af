//! What sources are told: statuses, as the store's feed brings them.
//!
//! Every replica follows the feed and tells its own subscribers, so it does not matter which replica stored a status. A
//! subscriber that is slow is sent the newest status of each bundle; one that is far behind, by number or by bytes, is let
//! go, and finds what it missed when it subscribes again: for every source the place in the feed up to which it was told
//! is kept ([`positions`]), and a new subscription begins there, reading at its own pace ([`sweep`]).
//!
//! The same walk over the feed keeps the [`crate::backlog::Backlog`].

mod pending;
mod positions;
mod questions;
mod stream;
mod sweep;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_bundle::Event;
use aro_runtime::{Fault, Scope, TaskKind};
use aro_store::{Change, Follower, StoreError};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::backlog::Unconfirmed;
use crate::dispatch::Dispatcher;
use crate::rows::{BUNDLE, Bundle, CONSUMER, CONTAINER, Farewell, Kept, Standing};
use crate::speech;

use pending::Bounds;
use positions::{Head, Places};
pub use stream::{Subscriber, Subscription};

/// Bundles of which is remembered what was told last.
const REMEMBERED: usize = 200_000;
/// Subscriptions one source may have here: each of them may keep memory.
const MOST_OF_ONE: usize = 64;
/// What may wait for one subscriber. One that is further behind is let go, and is brought what it missed, at its own pace,
/// when it comes back.
const MOST: Bounds = Bounds { bundles: 20_000, bytes: 32 * 1024 * 1024 };
/// A page of the feed.
const PAGE: usize = 500;
/// How long to wait when the feed cannot be read.
const PAUSE: Duration = Duration::from_millis(200);

/// Everybody who listens on this replica.
pub struct Streams {
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) replica: String,
    listeners: Mutex<HashMap<String, Vec<Arc<Subscriber>>>>,
    /// The sequence id that was told last, by bundle: a change that is none of the status is not told.
    told: Mutex<hashlink::LruCache<String, String>>,
    /// The place in the feed; nothing until everything there is has been seen once.
    at: watch::Sender<Option<Head>>,
    places: Places,
    /// Consumers of which the store is not believed.
    disputed: Mutex<HashSet<String>>,
    /// What may wait for one subscriber.
    most: Bounds,
}

/// Why somebody cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum NotSubscribed {
    /// It would be one too many.
    #[error("the source has {MOST_OF_ONE} subscriptions here already")]
    TooMany,
    /// What was missed cannot be found.
    #[error(transparent)]
    Unread(#[from] crate::Fault),
}

impl Streams {
    /// Begins to follow the feed.
    pub fn start(dispatcher: Arc<Dispatcher>, replica: String, scope: &Scope) -> Arc<Self> {
        Self::bounded(dispatcher, replica, MOST, scope)
    }

    fn bounded(dispatcher: Arc<Dispatcher>, replica: String, most: Bounds, scope: &Scope) -> Arc<Self> {
        let streams = Arc::new(Self {
            dispatcher,
            replica,
            listeners: Mutex::default(),
            told: Mutex::new(hashlink::LruCache::new(REMEMBERED)),
            at: watch::Sender::new(None),
            places: Places::default(),
            disputed: Mutex::default(),
            most,
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
            own.keep_positions().await;
            Ok::<_, Fault>(())
        });
        streams
    }

    /// Returns when everything that was there at the start has been seen.
    pub async fn loaded(&self) {
        let _ = self.at.subscribe().wait_for(Option::is_some).await;
    }

    async fn follow(&self) {
        let store = self.dispatcher.rows.store();
        let mut follower = Follower::new(store.clone(), CONTAINER, None).with_limit(PAGE);
        let mut well = true;
        loop {
            // The first walk ends where a page says that nothing more is ready; an empty container ends it at once.
            let loaded = self.at.borrow().is_some();
            let page = match loaded {
                true => follower.next().await,
                false => store.changes(CONTAINER, follower.cursor(), PAGE).await,
            };
            match page {
                Ok(page) => {
                    for change in &page.changes {
                        self.see(change);
                    }
                    if !loaded {
                        follower =
                            Follower::new(store.clone(), CONTAINER, Some(page.next.clone())).with_limit(PAGE);
                        if page.more {
                            continue;
                        }
                    }
                    let reached = self.dispatcher.clock.now();
                    self.at.send_replace(Some(Head { cursor: page.next, reached }));
                    well = true;
                }
                Err(StoreError::CursorExpired) => {
                    tracing::warn!("the feed was not read for too long; reading everything again");
                    // What went meanwhile is told by nobody any more.
                    self.dispatcher.backlog.clear();
                    self.disputed.lock().clear();
                    follower = Follower::new(store.clone(), CONTAINER, None).with_limit(PAGE);
                }
                Err(error) => {
                    if std::mem::take(&mut well) {
                        tracing::warn!(error = %chain(&error), "the feed cannot be read; trying again");
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn see(&self, change: &Change) {
        match change {
            Change::Upsert(document) => match Kept::read(document) {
                Ok(Some(Kept::Bundle(row))) => {
                    self.dispatcher.backlog.see(&row.value.id, unconfirmed(&row.value));
                    self.tell_status(&row.value);
                }
                Ok(Some(Kept::Farewell(gone))) => self.tell_farewell(&gone),
                Ok(Some(Kept::Consumer(row))) => self.see_standing(&row.value.name, row.value.standing),
                Ok(None) => self.see_question(document),
                Err(error) => {
                    tracing::error!(document = %document.key, error = %chain(&error), "a row cannot be read");
                }
            },
            Change::Delete { key, resource_type, .. } if resource_type == BUNDLE => {
                self.dispatcher.backlog.see(key.id.as_str(), None);
            }
            Change::Delete { key, resource_type, .. } if resource_type == CONSUMER => {
                self.see_standing(key.id.as_str(), Standing::Believed);
            }
            Change::Delete { .. } => {}
        }
    }

    /// Counts consumers of which the store is not believed, for somebody to look.
    fn see_standing(&self, consumer: &str, standing: Standing) {
        let mut disputed = self.disputed.lock();
        if standing == Standing::Disputed {
            disputed.insert(consumer.to_owned());
        } else {
            disputed.remove(consumer);
        }
        self.dispatcher.observer.disputed.set(disputed.len() as i64);
    }

    /// Whether something is new to subscribers; remembers it.
    fn is_news(&self, id: &str, sequence: Option<&str>) -> bool {
        let mut told = self.told.lock();
        let sequence = sequence.unwrap_or_default();
        if told.get(id).is_some_and(|last| last == sequence) {
            return false;
        }
        told.insert(id.to_owned(), sequence.to_owned());
        true
    }

    fn tell_status(&self, row: &Bundle) {
        if row.status.is_none() || !self.is_news(&row.id, row.delivery.sequence.as_deref()) {
            return;
        }
        self.tell(&row.source, &row.id, || speech::to_source(row).ok().flatten());
    }

    fn tell_farewell(&self, gone: &Farewell) {
        if self.is_news(&gone.id, gone.sequence.as_deref()) {
            self.tell(&gone.source, &gone.id, || speech::farewell(gone).ok());
        }
    }

    /// Tells everybody who listens to a source. The event is made once, and only if somebody does.
    fn tell(&self, source: &str, id: &str, event: impl FnOnce() -> Option<Event>) {
        let listeners = self.listening(source);
        if listeners.is_empty() {
            return;
        }
        let Some(event) = event().map(Arc::new) else { return };
        for listener in listeners {
            listener.tell(id, event.clone());
        }
    }

    /// Nobody listens while everything is being read for the first time.
    fn listening(&self, source: &str) -> Vec<Arc<Subscriber>> {
        if self.at.borrow().is_none() {
            return Vec::new();
        }
        self.listeners.lock().get(source).cloned().unwrap_or_default()
    }

    /// Subscribes. What was missed since the source was last told something is brought first.
    pub async fn subscribe(self: &Arc<Self>, source: &str) -> Result<Subscription, NotSubscribed> {
        self.loaded().await;
        // Taken before anybody listens: rather a little too early than too late.
        let began = self.at.borrow().clone();
        let subscription = Subscription(self.join(source).ok_or(NotSubscribed::TooMany)?);
        // From here on nothing new is missed; what was missed before follows, maybe twice.
        if let Some(missed) = self.missed(source, began).await? {
            subscription.0.bring_first(missed);
        }
        Ok(subscription)
    }

    fn join(self: &Arc<Self>, source: &str) -> Option<Arc<Subscriber>> {
        let mut listeners = self.listeners.lock();
        let all = listeners.entry(source.to_owned()).or_default();
        if all.len() >= MOST_OF_ONE {
            return None;
        }
        let subscriber = Subscriber::new(self.clone(), source.to_owned());
        all.push(subscriber.clone());
        self.dispatcher.observer.subscribers.inc();
        Some(subscriber)
    }

    fn leave(&self, subscriber: &Subscriber) {
        let mut listeners = self.listeners.lock();
        if let Some(all) = listeners.get_mut(&subscriber.source) {
            all.retain(|one| !std::ptr::eq(Arc::as_ptr(one), subscriber));
            if all.is_empty() {
                listeners.remove(&subscriber.source);
            }
        }
        self.dispatcher.observer.subscribers.dec();
    }
}

/// What the backlog keeps of a row.
fn unconfirmed(row: &Bundle) -> Option<Unconfirmed> {
    row.is_undelivered().then(|| Unconfirmed {
        consumer: row.consumer_name.as_str().into(),
        since: row.deleted_at.unwrap_or(row.delivery.stored).0,
        next_attempt: row.delivery.next_attempt.map_or(aro_base::Timestamp::MAX, |next| next.0),
        deleting: row.is_deleting(),
    })
}

#[cfg(test)]
mod tests;
