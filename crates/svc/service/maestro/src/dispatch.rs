//! Specs on their way to agents.
//!
//! A row that is stored is a promise: it is published until its agent has confirmed it. The replica that stored it
//! publishes at once; should it die before, or the message be lost, the others find the row in their [`Backlog`] when its
//! next attempt is due, and the one that claims the attempt in the store publishes again. There is no second place that
//! could disagree with the row.
//!
//! Deletions and creations wait in one queue, each bundle once, in the order of their first mention: a storm of the one
//! cannot starve the other.

use std::collections::HashMap;
use std::sync::Arc;

use aro_base::{SharedClock, Timestamp, chain};
use aro_bundle::{Event, Topics, mqtt};
use aro_control::{Outcome, Queue, Reconcile};
use aro_mqtt::{Link, PublishError};
use aro_runtime::Fault;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::backlog::Backlog;
use crate::observe::Observer;
use crate::rows::{Bundle, Rows};
use crate::speech;

/// What is published, and how.
pub struct Dispatcher {
    pub rows: Rows,
    pub link: OnceCell<Link>,
    pub topics: Topics,
    pub server: String,
    pub max_event: usize,
    pub clock: SharedClock,
    pub observer: Observer,
    pub backlog: Backlog,
    pub queue: Queue<Arc<str>>,
    fresh: Mutex<HashMap<Arc<str>, Bundle>>,
    published: Mutex<HashMap<Arc<str>, (i32, Timestamp)>>,
}

/// Rows kept for publishing without reading them again; more are read.
const FRESH: usize = 4096;
/// Times of publishing that wait for a status at most.
const PUBLISHED: usize = 100_000;

impl Dispatcher {
    /// Publishes to agents; the link comes later, since what it hears comes here.
    pub fn new(
        rows: Rows,
        topics: Topics,
        server: String,
        max_event: usize,
        clock: SharedClock,
        observer: Observer,
    ) -> Self {
        Self {
            rows,
            link: OnceCell::new(),
            topics,
            server,
            max_event,
            clock,
            observer,
            backlog: Backlog::default(),
            queue: Queue::new(),
            fresh: Mutex::default(),
            published: Mutex::default(),
        }
    }

    /// A row was stored here: publish it.
    pub fn stored(&self, row: Bundle) {
        let id: Arc<str> = row.id.as_str().into();
        let mut fresh = self.fresh.lock();
        if fresh.len() < FRESH || fresh.contains_key(&id) {
            fresh.insert(id.clone(), row);
        }
        drop(fresh);
        self.queue.add(id);
    }

    /// Everything that no agent has confirmed is published, now that somebody may hear it.
    pub fn again(&self) {
        for id in self.backlog.all() {
            self.queue.add(id);
        }
    }

    /// Attempts that are due are claimed, and what was claimed is published.
    pub async fn retry_due(&self) {
        let now = self.clock.now();
        for id in self.backlog.due(now) {
            // Somebody may have been faster, or it was confirmed meanwhile.
            match self.claim(&id).await {
                Ok(Some(row)) => {
                    self.observer.republished.inc();
                    self.stored(row);
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(bundle = %id, error = %chain(&error), "an attempt to publish could not be claimed");
                    return;
                }
            }
        }
    }

    async fn claim(&self, id: &str) -> Result<Option<Bundle>, crate::Fault> {
        let Some(row) = self.rows.find_bundle(id).await? else {
            // The feed may have forgotten to say so, after a long time without it.
            self.backlog.see(id, None);
            return Ok(None);
        };
        let now = self.clock.now();
        // What the backlog knows may be a moment old.
        if !row.value.delivery.is_due(now) {
            return Ok(None);
        }
        Ok(self.rows.claim_attempt(&row).await?.map(|row| row.value))
    }

    /// When a version was published by this replica, if it was.
    pub fn published_at(&self, id: &str, version: i32) -> Option<Timestamp> {
        self.published.lock().get(id).filter(|(of, _)| *of == version).map(|(_, at)| *at)
    }

    /// Nobody will ask any more. Gives the time that was known.
    pub fn forget(&self, id: &str) -> Option<Timestamp> {
        self.published.lock().remove(id).map(|(_, at)| at)
    }

    /// Publishes one event to a consumer.
    pub async fn say(&self, consumer: &str, event: &Event) -> Result<(), PublishError> {
        let link = self.link.get().ok_or(PublishError::Down)?;
        let said = link.publish(&self.topics.to_agent(consumer), mqtt::write(event)).await;
        self.observer.sent(event.kind, said.is_ok());
        said
    }
}

impl Reconcile for Dispatcher {
    type Key = Arc<str>;
    const NAME: &'static str = "maestro-publish";

    async fn reconcile(&self, id: &Arc<str>) -> Result<Outcome, Fault> {
        let fresh = self.fresh.lock().remove(id);
        if !self.link.get().is_some_and(Link::is_connected) {
            // The next connect publishes everything unconfirmed.
            return Ok(Outcome::Settled);
        }
        // A deletion is looked at once more: it may have waited here while another replica saw its end and a new bundle
        // of the same id, which it must not take away.
        let fresh = fresh.filter(|row| !row.is_deleting());
        let row = if fresh.is_some() {
            fresh
        } else {
            let row = self.rows.find_bundle(id).await;
            row.map_err(|error| Fault::caused("read a bundle", error))?.map(|row| row.value)
        };
        let Some(row) = row.filter(Bundle::is_undelivered) else { return Ok(Outcome::Settled) };
        let now = self.clock.now();
        let event = speech::to_agent(&row, &self.server, false, now, &Uuid::new_v4().to_string());
        let event = event.map_err(|error| Fault::caused("read a stored bundle", error))?;
        match self.say(&row.consumer_name, &event).await {
            Ok(()) => {
                let mut published = self.published.lock();
                // Of statuses that other replicas store nothing is heard here: what gathers is thrown away in the end.
                if published.len() >= PUBLISHED {
                    published.clear();
                }
                let known = published.entry(id.clone()).or_insert((row.version, now));
                if known.0 != row.version {
                    *known = (row.version, now);
                }
                Ok(Outcome::Settled)
            }
            // The backlog keeps it, the alarm shows it; trying at once would change nothing.
            Err(error @ (PublishError::TooLarge(_) | PublishError::Refused(_))) => {
                tracing::error!(bundle = %id, consumer = row.consumer_name, %error, "a bundle cannot be published");
                Ok(Outcome::Settled)
            }
            Err(PublishError::Down) => Ok(Outcome::Settled),
            Err(error) => Err(Fault::caused("publish a bundle", error)),
        }
    }
}

#[cfg(test)]
impl Dispatcher {
    /// One on a store of its own, with nobody to publish to.
    pub(crate) fn alone(directory: &std::path::Path) -> (Arc<Self>, Arc<aro_base::ManualClock>) {
        use aro_store_sqlite::{SqliteOptions, SqliteStore};
        let clock = aro_base::ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap());
        let store = SqliteStore::open(SqliteOptions::new(directory), clock.clone()).unwrap();
        let dispatcher = Self::new(
            Rows::new(store, clock.clone(), "maestro"),
            Topics::of_source("maestro"),
            "maestro".to_owned(),
            512 * 1024,
            clock.clone(),
            Observer::new(&aro_runtime::Metrics::default()),
        );
        (Arc::new(dispatcher), clock)
    }
}
