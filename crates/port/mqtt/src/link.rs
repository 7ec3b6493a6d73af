//! The link: connects and reconnects.

use std::sync::Arc;
use std::time::Duration;

use aro_base::SharedClock;
use aro_net::{Backoff, Dialer, Resolve};
use aro_runtime::{Fault, Metrics, Phase, Scope, TaskKind};
use parking_lot::RwLock;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::connection::{self, Lost};
use crate::identity::Identity;
use crate::inbox::Inbox;
use crate::metrics::LinkMetrics;
use crate::options::LinkOptions;
use crate::session::Session;
use crate::{Message, message, wire};

/// A connection that lasted this long resets the reconnect pause.
const STABLE: Duration = Duration::from_secs(2);

/// The dependencies of a link.
pub struct LinkPorts {
    pub resolve: Arc<dyn Resolve>,
    pub clock: SharedClock,
    pub metrics: Metrics,
}

/// Why a message was not published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// There is no connection.
    #[error("the broker is not connected")]
    Down,
    /// The connection was lost before the broker answered: the message may have been delivered or not.
    #[error("the connection was lost before the broker acknowledged the message")]
    Lost,
    /// No acknowledgement in time: the message may still be delivered.
    #[error("the broker did not acknowledge the message in time")]
    Late,
    /// The message cannot be sent at all.
    #[error("the message is too large: {0}")]
    TooLarge(String),
    /// The broker rejected the message.
    #[error("the broker rejected the message with reason {0:#04x}")]
    Refused(u8),
}

/// The PUBACK reason for an accepted message whose topic has no subscriber.
const NO_SUBSCRIBERS: u8 = 0x10;

/// Whether a published message had subscribers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscribers {
    /// At least one, or the broker does not report it.
    Matched,
    /// None: the message is lost, and its publisher has to repeat it.
    None,
}

/// A link to a broker. Cloning gives another handle; it lives as long as its scope.
#[derive(Clone)]
pub struct Link(Arc<Shared>);

/// Shared by the handles and the tasks.
pub(crate) struct Shared {
    pub options: LinkOptions,
    pub subscriptions: Vec<String>,
    pub inbox: Arc<dyn Inbox>,
    pub dialer: Dialer,
    pub identity: Option<Arc<Identity>>,
    pub metrics: LinkMetrics,
    /// The current connection.
    pub session: RwLock<Option<Arc<Session>>>,
    pub up: watch::Sender<bool>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("broker", &self.0.options.broker).finish_non_exhaustive()
    }
}

impl Link {
    /// Starts connecting in a child of `scope`, and retries until that closes.
    pub fn start(
        options: LinkOptions,
        subscriptions: Vec<String>,
        inbox: Arc<dyn Inbox>,
        ports: LinkPorts,
        scope: &Scope,
    ) -> Self {
        let identity = options.credentials.clone();
        let dialer = Dialer::new(ports.resolve, options.dial_timeout);
        let shared = Arc::new(Shared {
            identity: identity.map(|credentials| Arc::new(Identity::new(credentials, ports.clock))),
            metrics: LinkMetrics::new(&ports.metrics),
            options,
            subscriptions,
            inbox,
            dialer,
            session: RwLock::new(None),
            up: watch::Sender::new(false),
        });
        // Roles may publish until they stop, so the link stops after them.
        let scope = scope.child(Phase::Transports, "mqtt");
        let (own, stop) = (shared.clone(), scope.clone());
        scope.spawn(TaskKind::Worker, "link", async move {
            keep_connected(&own, &stop).await;
            Ok::<_, Fault>(())
        });
        Self(shared)
    }

    /// Publishes with QoS 1. Resolves when the broker has acknowledged; many publishes may be in flight.
    pub async fn publish(&self, topic: &str, message: Message) -> Result<(), PublishError> {
        self.publish_matching(topic, message).await.map(drop)
    }

    /// Publishes with QoS 1 and returns whether the message had subscribers, if the broker reports it.
    pub async fn publish_matching(&self, topic: &str, message: Message) -> Result<Subscribers, PublishError> {
        let deadline = Instant::now() + self.0.options.publish_timeout;
        let done = tokio::time::timeout_at(deadline, self.attempt(topic, &message)).await;
        let done = done.unwrap_or(Err(PublishError::Late));
        match done {
            Ok(_) => self.0.metrics.published.inc(),
            Err(_) => self.0.metrics.publish_failures.inc(),
        };
        done
    }

    async fn attempt(&self, topic: &str, message: &Message) -> Result<Subscribers, PublishError> {
        let session = self.0.session.read().clone().ok_or(PublishError::Down)?;
        let body = message::to_body(message).map_err(PublishError::TooLarge)?;
        let size = wire::publish_size(1, topic, &body);
        if size > session.largest || topic.len() > usize::from(u16::MAX) {
            let largest = session.largest;
            return Err(PublishError::TooLarge(format!("{size} bytes, and the broker accepts {largest}")));
        }
        let slot = session.reserve(size).await.map_err(|_| PublishError::Down)?;
        let puback = session.publish(topic, &body, slot).map_err(|_| PublishError::Down)?;
        match puback.await {
            Ok(NO_SUBSCRIBERS) => Ok(Subscribers::None),
            Ok(reason) if reason < 0x80 => Ok(Subscribers::Matched),
            Ok(reason) => Err(PublishError::Refused(reason)),
            Err(_) => Err(PublishError::Lost),
        }
    }

    /// Whether there is a connection with all its subscriptions.
    pub fn is_connected(&self) -> bool {
        *self.0.up.borrow()
    }

    /// Returns when there is a connection with all its subscriptions.
    pub async fn connected(&self) {
        // `self` holds the sender, so the wait cannot fail.
        let _ = self.0.up.subscribe().wait_for(|up| *up).await;
    }

    /// Returns when there is no connection.
    pub async fn disconnected(&self) {
        let _ = self.0.up.subscribe().wait_for(|up| !*up).await;
    }
}

async fn keep_connected(shared: &Arc<Shared>, stop: &Scope) {
    let options = &shared.options;
    let mut attempts = options.reconnect.attempts();
    let mut logged = String::new();
    while !stop.is_cancelled() {
        let started = Instant::now();
        let lost = connection::run(shared, stop).await;
        if *shared.up.borrow() {
            shared.metrics.connected.set(0);
            shared.up.send_replace(false);
            logged.clear();
            if !stop.is_cancelled() {
                shared.inbox.disconnected();
            }
        }
        let wait = match &lost {
            Lost::Stopped => break,
            Lost::Rotated => {
                tracing::info!(broker = options.broker, "certificates changed; reconnecting");
                continue;
            }
            Lost::Refused(_) => Backoff::new(options.refused_pause, options.refused_pause).delay(1),
            Lost::Failed(_) => {
                if started.elapsed() > STABLE {
                    attempts.reset();
                }
                attempts.next_delay()
            }
        };
        // One line per cause: a broker that is unreachable for an hour is logged once.
        let cause = lost.to_string();
        if cause != logged {
            tracing::warn!(broker = options.broker, cause, "broker not connected; retrying");
            logged = cause;
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(wait) => {}
        }
    }
}
