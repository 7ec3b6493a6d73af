//! State shared by all connections: clients, subscriptions, metrics.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aro_runtime::LogLimiter;
use parking_lot::{Mutex, RwLock};

use crate::acl::Acl;
use crate::metrics::BrokerMetrics;
use crate::outbox::{Bounds, Entry, Outbox, Publication, Put};
use crate::router::{Router, Subscriber};
use crate::topics::Filter;

/// Reasons to disconnect.
const TAKEN_OVER: u8 = 0x8e;

/// The least time between log lines about rejections; every one is counted.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Connections of one identity. A consumer's agent has one, the servers of a source share theirs. Without this limit one
/// consumer could take all connections.
const MAX_PER_IDENTITY: usize = 100;

/// Characters of a topic in the log.
const MAX_TOPIC: usize = 200;

/// The broker's limits.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest packet accepted.
    pub max_packet: usize,
    /// Unacknowledged publishes of one client; the broker acknowledges at once.
    pub receive_maximum: u16,
    pub queue_messages: usize,
    pub queue_bytes: usize,
    /// Filters one client may subscribe to.
    pub subscriptions: usize,
}

/// The broker's shared state.
#[derive(Debug)]
pub struct Hub {
    pub acl: Acl,
    pub limits: Limits,
    pub metrics: BrokerMetrics,
    router: RwLock<Router>,
    /// By identity and client id: one identity cannot take over another's client id.
    clients: Mutex<HashMap<String, HashMap<String, Arc<Outbox>>>>,
    last_id: AtomicU64,
    pub log_limiter: LogLimiter,
}

/// The outcome of a publish.
#[derive(Debug)]
pub struct Routed {
    /// Subscribers that get it.
    pub count: usize,
    /// One of them whose queue is long.
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
            log_limiter: LogLimiter::every(LOG_INTERVAL),
        }
    }

    /// Registers a client and disconnects an earlier one with its client id. `None` if the identity has too many.
    pub fn register(
        &self,
        identity: &str,
        client_id: &str,
        window: u16,
        largest: usize,
    ) -> Option<Arc<Outbox>> {
        let bounds = Bounds {
            messages: self.limits.queue_messages,
            bytes: self.limits.queue_bytes,
            // One below the number of packet ids, so that one is always unused.
            window: window.min(u16::MAX - 1),
            largest,
        };
        let outbox = Arc::new(Outbox::new(self.last_id.fetch_add(1, Ordering::Relaxed) + 1, bounds));
        let mut clients = self.clients.lock();
        let own = clients.entry(identity.to_owned()).or_default();
        if own.len() >= MAX_PER_IDENTITY && !own.contains_key(client_id) {
            return None;
        }
        if let Some(before) = own.insert(client_id.to_owned(), outbox.clone()) {
            before.end(TAKEN_OVER);
        }
        self.metrics.connections.inc();
        Some(outbox)
    }

    /// Unregisters a client. Its unacknowledged messages of a share go to another member.
    pub fn unregister(&self, identity: &str, client_id: &str, outbox: &Outbox, filters: &[Filter]) {
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
        for entry in outbox.drain() {
            if !entry.share.is_some_and(|share| self.redeliver(share, &entry)) {
                dropped += 1;
            }
        }
        self.metrics.dropped.inc_by(dropped);
        self.metrics.connections.dec();
    }

    /// Queues a message of a share for another member.
    fn redeliver(&self, share: u64, entry: &Entry) -> bool {
        let router = self.router.read();
        router.member_of(share).is_some_and(|member| member.outbox.put(entry.clone()) == Put::Queued)
    }

    /// Adds a subscription.
    pub fn subscribe(&self, filter: &Filter, subscriber: Subscriber) {
        self.router.write().subscribe(filter, subscriber);
    }

    /// Removes a subscription; returns whether there was one.
    pub fn unsubscribe(&self, filter: &Filter, outbox: &Outbox) -> bool {
        self.router.write().unsubscribe(filter, outbox.id)
    }

    /// Queues a message for every subscriber.
    pub fn publish(&self, publisher: u64, publication: Publication) -> Routed {
        let publication = Arc::new(publication);
        let mut routed = Routed { count: 0, crowded: None };
        self.metrics.received.inc();
        self.router.read().route(publisher, &publication.topic, |subscriber, share| {
            let qos = subscriber.qos.min(publication.qos);
            match subscriber.outbox.put(Entry { publication: publication.clone(), qos, share }) {
                Put::Queued => {
                    routed.count += 1;
                    self.metrics.delivered.inc();
                    if subscriber.outbox.is_crowded() {
                        routed.crowded = Some(subscriber.outbox.clone());
                    }
                }
                Put::TooLarge | Put::Ended => {
                    self.metrics.dropped.inc();
                }
            }
        });
        routed
    }

    /// Counts a rejection, and logs it unless another was just logged.
    pub fn reject(&self, identity: &str, operation: &'static str, topic: &str) {
        self.metrics.refused.inc();
        if let Some(suppressed) = self.log_limiter.permit() {
            let topic: String = topic.chars().take(MAX_TOPIC).collect();
            tracing::warn!(identity, operation, topic, suppressed, "rejected: identity not authorized");
        }
    }
}
