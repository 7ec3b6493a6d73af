//! What all connections share: who is here, who subscribes, what is counted.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aro_runtime::Seldom;
use parking_lot::{Mutex, RwLock};

use crate::acl::Acl;
use crate::metrics::BrokerMetrics;
use crate::outbox::{Bounds, Entry, Outbox, Parcel, Put};
use crate::router::{Router, Subscriber};
use crate::topics::Filter;

/// Reasons to disconnect.
const TAKEN_OVER: u8 = 0x8e;

/// How often a refusal is logged; all are counted.
const COMPLAIN: Duration = Duration::from_secs(1);

/// How many connections one identity may have: a consumer's agent has one, the servers of a source share theirs. Without
/// it one consumer could take all places there are.
const MOST_OF_ONE: usize = 100;

/// How much of a topic is logged.
const SHOWN: usize = 200;

/// What the broker allows.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest packet taken.
    pub max_packet: usize,
    /// How many publishes a client may have unacknowledged; they are acknowledged at once.
    pub receive_maximum: u16,
    pub queue_messages: usize,
    pub queue_bytes: usize,
    /// How many filters one client may subscribe to.
    pub subscriptions: usize,
}

/// The broker's shared state.
#[derive(Debug)]
pub struct Hub {
    pub acl: Acl,
    pub limits: Limits,
    pub metrics: BrokerMetrics,
    router: RwLock<Router>,
    /// By identity and client id: one cannot throw another out by taking its client id.
    clients: Mutex<HashMap<String, HashMap<String, Arc<Outbox>>>>,
    last_id: AtomicU64,
    complaints: Seldom,
}

/// What became of a message.
#[derive(Debug)]
pub struct Reach {
    /// How many get it.
    pub count: usize,
    /// One of them that has a long queue by now.
    pub crowded: Option<Arc<Outbox>>,
}

impl Hub {
    pub fn new(acl: Acl, limits: Limits, metrics: BrokerMetrics) -> Self {
        Self {
            acl,
            limits,
            metrics,
            router: RwLock::default(),
            clients: Mutex::default(),
            last_id: AtomicU64::new(0),
            complaints: Seldom::every(COMPLAIN),
        }
    }

    /// A client came. Whoever had its name before goes. `None`: there are too many of this identity.
    pub fn enter(&self, identity: &str, client_id: &str, window: u16, largest: usize) -> Option<Arc<Outbox>> {
        let bounds = Bounds {
            messages: self.limits.queue_messages,
            bytes: self.limits.queue_bytes,
            // One below the number of ids, so that there is always a free one.
            window: window.min(u16::MAX - 1),
            largest,
        };
        let outbox = Arc::new(Outbox::new(self.last_id.fetch_add(1, Ordering::Relaxed) + 1, bounds));
        let mut clients = self.clients.lock();
        let own = clients.entry(identity.to_owned()).or_default();
        if own.len() >= MOST_OF_ONE && !own.contains_key(client_id) {
            return None;
        }
        if let Some(before) = own.insert(client_id.to_owned(), outbox.clone()) {
            before.end(TAKEN_OVER);
        }
        self.metrics.connections.inc();
        Some(outbox)
    }

    /// A client went. What it had by a share and did not acknowledge goes to another member.
    pub fn leave(&self, identity: &str, client_id: &str, outbox: &Outbox, filters: &[Filter]) {
        {
            let mut clients = self.clients.lock();
            if let Some(own) = clients.get_mut(identity)
                && own.get(client_id).is_some_and(|known| known.id == outbox.id)
            {
                own.remove(client_id);
                if own.is_empty() {
                    clients.remove(identity);
                }
            }
        }
        {
            let mut router = self.router.write();
            for filter in filters {
                router.unsubscribe(filter, outbox.id);
            }
        }
        let mut dropped = 0;
        for entry in outbox.empty() {
            if !entry.share.is_some_and(|share| self.again(share, &entry)) {
                dropped += 1;
            }
        }
        self.metrics.dropped.inc_by(dropped);
        self.metrics.connections.dec();
    }

    /// Gives a message of a share to another member.
    fn again(&self, share: u64, entry: &Entry) -> bool {
        let router = self.router.read();
        router.member_of(share).is_some_and(|member| member.outbox.put(entry.clone()) == Put::Queued)
    }

    /// Adds a subscription.
    pub fn subscribe(&self, filter: &Filter, subscriber: Subscriber) {
        self.router.write().subscribe(filter, subscriber);
    }

    /// Removes a subscription; tells whether there was one.
    pub fn unsubscribe(&self, filter: &Filter, outbox: &Outbox) -> bool {
        self.router.write().unsubscribe(filter, outbox.id)
    }

    /// Puts a message into the outbox of everybody who subscribes.
    pub fn publish(&self, publisher: u64, parcel: Parcel) -> Reach {
        let parcel = Arc::new(parcel);
        let mut reach = Reach { count: 0, crowded: None };
        self.metrics.received.inc();
        self.router.read().route(publisher, &parcel.topic, |subscriber, share| {
            let quality = subscriber.quality.min(parcel.quality);
            match subscriber.outbox.put(Entry { parcel: parcel.clone(), quality, share }) {
                Put::Queued => {
                    reach.count += 1;
                    self.metrics.delivered.inc();
                    if subscriber.outbox.is_crowded() {
                        reach.crowded = Some(subscriber.outbox.clone());
                    }
                }
                Put::TooLarge | Put::Ended => {
                    self.metrics.dropped.inc();
                }
            }
        });
        reach
    }

    /// Counts a refusal, and logs it unless another was just logged.
    pub fn refuse(&self, identity: &str, what: &'static str, topic: &str) {
        self.metrics.refused.inc();
        if let Some(untold) = self.complaints.now() {
            let topic: String = topic.chars().take(SHOWN).collect();
            tracing::warn!(identity, what, topic, untold, "refused: this identity may not do that");
        }
    }
}
