//! The link: connects, and connects again.

use std::sync::Arc;
use std::time::Duration;

use aro_base::SharedClock;
use aro_net::{Dialer, Resolve};
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

/// A connection that lasted so long was a good one: the next pause is short again.
const GOOD: Duration = Duration::from_secs(2);

/// What a link needs from outside.
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
    /// The connection was lost before the broker answered: the message may have arrived or not.
    #[error("the connection was lost before the broker acknowledged the message")]
    Lost,
    /// No acknowledgement in time: the message may still arrive.
    #[error("the broker did not acknowledge the message in time")]
    Late,
    /// It cannot be sent at all.
    #[error("the message is too large: {0}")]
    TooLarge(String),
    /// The broker said no.
    #[error("the broker refused the message with reason {0:#04x}")]
    Refused(u8),
}

/// The broker has taken a message, and nobody subscribes to its topic.
const NO_SUBSCRIBERS: u8 = 0x10;

/// Whether anybody gets a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// Somebody does, or the broker does not tell.
    Somebody,
    /// Nobody subscribes now: the other side is away, and will have to be told again.
    Nobody,
}

/// A link to a broker. Cloning gives another handle; it lives as long as its scope.
#[derive(Clone)]
pub struct Link(Arc<Shared>);

/// What the handles and the tasks share.
pub(crate) struct Shared {
    pub options: LinkOptions,
    pub subscriptions: Vec<String>,
    pub inbox: Arc<dyn Inbox>,
    pub dialer: Dialer,
    pub identity: Option<Arc<Identity>>,
    pub metrics: LinkMetrics,
    /// The connection that is up.
    pub session: RwLock<Option<Arc<Session>>>,
    pub up: watch::Sender<bool>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("broker", &self.0.options.broker).finish_non_exhaustive()
    }
}

impl Link {
    /// Starts connecting, in a child of `scope`, and never gives up.
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
        // Roles may publish until the end: the link goes after them.
        let scope = scope.child(Phase::Transports, "mqtt");
        let (own, stop) = (shared.clone(), scope.clone());
        scope.spawn(TaskKind::Worker, "link", async move {
            keep_up(&own, &stop).await;
            Ok::<_, Fault>(())
        });
        Self(shared)
    }

    /// Publishes with quality 1. Resolves when the broker has acknowledged; many may be under way at once.
    pub async fn publish(&self, topic: &str, message: Message) -> Result<(), PublishError> {
        self.publish_reaching(topic, message).await.map(drop)
    }

    /// Publishes, and tells whether anybody gets it, as far as the broker says.
    pub async fn publish_reaching(&self, topic: &str, message: Message) -> Result<Reached, PublishError> {
        let deadline = Instant::now() + self.0.options.publish_timeout;
        let done = tokio::time::timeout_at(deadline, self.attempt(topic, &message)).await;
        let done = done.unwrap_or(Err(PublishError::Late));
        match done {
            Ok(_) => self.0.metrics.published.inc(),
            Err(_) => self.0.metrics.publish_failures.inc(),
        };
        done
    }

    async fn attempt(&self, topic: &str, message: &Message) -> Result<Reached, PublishError> {
        let session = self.0.session.read().clone().ok_or(PublishError::Down)?;
        let body = message::to_body(message).map_err(PublishError::TooLarge)?;
        let size = wire::publish_size(1, topic, &body);
        if size > session.largest || topic.len() > usize::from(u16::MAX) {
            let largest = session.largest;
            return Err(PublishError::TooLarge(format!("{size} bytes, and the broker takes {largest}")));
        }
        let taken = session.take_place(size).await.map_err(|_| PublishError::Down)?;
        let answer = session.publish(topic, &body, taken).map_err(|_| PublishError::Down)?;
        match answer.await {
            Ok(NO_SUBSCRIBERS) => Ok(Reached::Nobody),
            Ok(reason) if reason < 0x80 => Ok(Reached::Somebody),
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
        // The sender lives in `self`, so waiting cannot fail while we do.
        let _ = self.0.up.subscribe().wait_for(|up| *up).await;
    }

    /// Returns when there is no connection.
    pub async fn disconnected(&self) {
        let _ = self.0.up.subscribe().wait_for(|up| !*up).await;
    }
}

async fn keep_up(shared: &Arc<Shared>, stop: &Scope) {
    let options = &shared.options;
    let mut pause = options.first_pause;
    let mut told = String::new();
    while !stop.is_cancelled() {
        let started = Instant::now();
        let lost = connection::run(shared, stop).await;
        if *shared.up.borrow() {
            shared.metrics.connected.set(0);
            shared.up.send_replace(false);
            told.clear();
            if !stop.is_cancelled() {
                shared.inbox.disconnected();
            }
        }
        let wait = match &lost {
            Lost::Stopped => break,
            Lost::Rotated => {
                tracing::info!(broker = options.broker, "new certificates: connecting anew");
                continue;
            }
            Lost::Refused(_) => options.refused_pause,
            Lost::Failed(_) => {
                pause = if started.elapsed() > GOOD {
                    options.first_pause
                } else {
                    (pause * 2).min(options.longest_pause)
                };
                pause
            }
        };
        // Once per cause: a broker that is away for an hour is one line.
        let why = lost.to_string();
        if why != told {
            tracing::warn!(broker = options.broker, why, "no connection to the broker; trying again");
            told = why;
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(wait.mul_f64(jitter())) => {}
        }
    }
}

/// Between a half and one and a half, so that many who lost the same broker do not come back at once.
fn jitter() -> f64 {
    let random = uuid::Uuid::new_v4().as_u128() as u16;
    0.5 + f64::from(random) / f64::from(u16::MAX)
}
