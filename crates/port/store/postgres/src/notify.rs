//! Wake-ups between replicas.
//!
//! One task owns one connection, on which it listens and over which it announces this replica's commits. `NOTIFY`
//! inside a writing transaction would take a lock over the whole database at commit, so it is sent afterwards,
//! gathered over a short while. Whatever is lost here, polling finds within a second.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aro_base::chain;
use aro_net::Backoff;
use aro_store::Container;
use aro_store::adapter::Signals;
use futures::future::{Fuse, FutureExt as _};
use tokio::sync::Notify;
use tokio_postgres::{AsyncMessage, Config};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::sync::CancellationToken;

const CHANNEL: &str = "aro_store_changes";

/// How long commits are gathered before they are announced.
const GATHER: Duration = Duration::from_millis(10);

/// Between attempts to connect.
const RECONNECT: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));

/// The containers written to since the last notification.
#[derive(Default)]
pub(crate) struct Outbox {
    containers: Mutex<BTreeSet<&'static str>>,
    filled: Notify,
}

impl Outbox {
    pub(crate) fn add(&self, container: Container) {
        let mut containers = self.containers.lock().unwrap_or_else(PoisonError::into_inner);
        if containers.insert(container.name()) {
            self.filled.notify_one();
        }
    }

    fn take(&self) -> Vec<&'static str> {
        let mut containers = self.containers.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *containers).into_iter().collect()
    }
}

pub(crate) struct Notifier {
    pub(crate) config: Config,
    pub(crate) connector: MakeRustlsConnect,
    pub(crate) signals: Arc<Signals>,
    pub(crate) outbox: Arc<Outbox>,
}

impl Notifier {
    /// Runs until cancelled; connects again whenever the connection is lost.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        let mut attempts = RECONNECT.attempts();
        while !cancel.is_cancelled() {
            let began = tokio::time::Instant::now();
            tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                ended = self.session() => {
                    if let Err(error) = ended {
                        tracing::debug!(error = %chain(&error), "lost the connection for change notifications");
                    }
                }
            }
            if began.elapsed() > RECONNECT.max() {
                attempts.reset();
            }
            tokio::select! {
                () = cancel.cancelled() => return,
                () = attempts.wait() => {}
            }
        }
    }

    async fn session(&self) -> Result<(), tokio_postgres::Error> {
        let (client, mut connection) = self.config.connect(self.connector.clone()).await?;
        let listen_sql = format!("LISTEN {CHANNEL}");
        let mut listen = pin!(client.batch_execute(&listen_sql).fuse());
        let mut announce = pin!(Fuse::terminated());
        let mut outbox = pin!(self.next_outbox().fuse());
        loop {
            tokio::select! {
                listening = &mut listen => {
                    listening?;
                    // Announcements during the gap are lost: all readers poll once.
                    self.signals.wake_all();
                }
                containers = &mut outbox => {
                    let client = &client;
                    announce.set(async move {
                        client.query(
                            "SELECT pg_notify($1, c) FROM unnest($2::text[]) c", &[&CHANNEL, &containers]
                        ).await
                    }.fuse());
                }
                announced = &mut announce => {
                    announced?;
                    outbox.set(self.next_outbox().fuse());
                }
                message = poll_fn(|context| connection.poll_message(context)) => match message {
                    Some(Ok(AsyncMessage::Notification(notification))) => {
                        self.signals.wake(notification.payload());
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error),
                    None => return Ok(()),
                }
            }
        }
    }

    async fn next_outbox(&self) -> Vec<&'static str> {
        self.outbox.filled.notified().await;
        tokio::time::sleep(GATHER).await;
        self.outbox.take()
    }
}
