//! A proxy between two brokers that wait_deleted, duplicates and reorders messages.
//!
//! The server is connected to one broker, the agent to the other. On the server's broker the proxy is the consumer, on the
//! agent's it is the server. Messages are acknowledged at once; then, by a seed, they are lost, duplicated, or delayed and
//! forwarded in another order. After [`FaultProxy::stop_faults`] every message is forwarded as it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use aro_fixtures::wait;
use aro_mqtt::{Delivery, Inbox, Link, Message};
use aro_runtime::{Fault, Scope, TaskKind};
use async_trait::async_trait;
use tokio::sync::mpsc;

use super::{SeededRandom, broker_client};
use crate::pki::Pki;

/// Messages that wait to be forwarded.
const ROOM: usize = 10_000;
/// Messages delayed at most.
const HELD: usize = 16;
/// How long a message is delayed without other traffic.
const HOLD: Duration = Duration::from_millis(30);

/// The injected faults.
#[derive(Debug, Default)]
pub struct Faults {
    pub lost: AtomicUsize,
    pub doubled: AtomicUsize,
    pub held: AtomicUsize,
    honest: AtomicBool,
}

/// The proxy. Dropping it stops it.
pub struct FaultProxy {
    pub faults: Arc<Faults>,
    links: [Link; 2],
    scope: Scope,
}

struct Intake(mpsc::Sender<Message>);

#[async_trait]
impl Inbox for Intake {
    async fn deliver(&self, delivery: Delivery) {
        delivery.ack.done();
        let _ = self.0.send(delivery.message).await;
    }
}

impl FaultProxy {
    /// Between the broker of the server and that of a consumer's agent.
    pub async fn start(pki: &Pki, server: &str, agent: &str, consumer: &str, seed: u64) -> Result<Self> {
        let (faults, scope) = (Arc::new(Faults::default()), Scope::root("fault_proxy"));
        let (to_agent, specs) = mpsc::channel(ROOM);
        let (to_server, statuses) = mpsc::channel(ROOM);
        let topics = broker_client::topics();
        let listen = |identity: &str, broker: &str, filter: String, to: mpsc::Sender<Message>| {
            broker_client::link(pki, identity, broker, vec![filter], Arc::new(Intake(to)), &scope)
        };
        let at_server = listen(consumer, server, topics.to_agent(consumer), to_agent)?;
        let at_agent = listen("maestro", agent, topics.from_agents(None), to_server)?;
        for (link, topic, from, seed) in [
            (at_agent.clone(), topics.to_agent(consumer), specs, seed),
            (at_server.clone(), topics.from_agent(consumer), statuses, seed + 1),
        ] {
            let passing = Passing {
                link,
                topic,
                faults: faults.clone(),
                random: SeededRandom::new(seed),
                held: Vec::new(),
            };
            let stop = scope.clone();
            scope.spawn(TaskKind::Helper, "passing", async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = passing.run(from) => {}
                }
                Ok::<_, Fault>(())
            });
        }
        let fault_proxy = Self { faults, links: [at_server, at_agent], scope };
        fault_proxy.connected().await?;
        Ok(fault_proxy)
    }

    /// Waits until both brokers are connected.
    pub async fn connected(&self) -> Result<()> {
        for link in &self.links {
            tokio::time::timeout(wait::DEADLINE, link.connected()).await.context("a broker")?;
        }
        Ok(())
    }

    /// Forwards every message as it is from now on.
    pub fn stop_faults(&self) {
        self.faults.honest.store(true, Ordering::Relaxed);
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.scope.token().cancel();
    }
}

/// One direction.
struct Passing {
    link: Link,
    topic: String,
    faults: Arc<Faults>,
    random: SeededRandom,
    held: Vec<Message>,
}

impl Passing {
    async fn run(mut self, mut from: mpsc::Receiver<Message>) {
        loop {
            tokio::select! {
                message = from.recv() => match message {
                    Some(message) => self.meddle(message).await,
                    None => return,
                },
                // A pause without other traffic.
                () = tokio::time::sleep(HOLD) => self.release().await,
            }
        }
    }

    async fn meddle(&mut self, message: Message) {
        if self.faults.honest.load(Ordering::Relaxed) {
            self.release().await;
            return self.pass(message).await;
        }
        match self.random.below(10) {
            0 | 1 => {
                self.faults.lost.fetch_add(1, Ordering::Relaxed);
            }
            2 | 3 => {
                self.faults.doubled.fetch_add(1, Ordering::Relaxed);
                self.held.push(message.clone());
                self.pass(message).await;
            }
            4..=6 => {
                self.faults.held.fetch_add(1, Ordering::Relaxed);
                self.held.push(message);
            }
            _ => self.pass(message).await,
        }
        if self.held.len() >= HELD {
            self.release().await;
        }
    }

    /// Forwards the delayed messages in any order.
    async fn release(&mut self) {
        while !self.held.is_empty() {
            let message = self.held.swap_remove(self.random.below(self.held.len()));
            self.pass(message).await;
        }
    }

    async fn pass(&self, message: Message) {
        self.link.connected().await;
        if self.link.publish(&self.topic, message).await.is_err() {
            self.faults.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}
