//! Somebody between two brokers who passes on what is said, but not as it was said.
//!
//! The server is at one broker, the agent at the other. To the server's broker the meddler is the consumer, to the agent's
//! it is the server. Messages are acknowledged at once; then, as a seed decides, they are lost, doubled, or held back and
//! passed on later in another order. From [`Meddler::be_honest`] on, everything is passed on as it comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use aro_fixtures::wait;
use aro_mqtt::{Delivery, Inbox, Link, Message};
use aro_runtime::{Fault, Scope, TaskKind};
use async_trait::async_trait;
use tokio::sync::mpsc;

use super::{Dice, ear};
use crate::pki::Pki;

/// Messages that may wait to be passed on.
const ROOM: usize = 10_000;
/// Messages held back at most.
const HELD: usize = 16;
/// How long something is held back when nothing else comes.
const HOLD: Duration = Duration::from_millis(30);

/// What was done.
#[derive(Debug, Default)]
pub struct Deeds {
    pub lost: AtomicUsize,
    pub doubled: AtomicUsize,
    pub held: AtomicUsize,
    honest: AtomicBool,
}

/// The meddler. It goes when this is dropped.
pub struct Meddler {
    pub deeds: Arc<Deeds>,
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

impl Meddler {
    /// Between the broker of the server and that of the agent of a consumer.
    pub async fn start(pki: &Pki, server: &str, agent: &str, consumer: &str, seed: u64) -> Result<Self> {
        let (deeds, scope) = (Arc::new(Deeds::default()), Scope::root("meddler"));
        let (to_agent, specs) = mpsc::channel(ROOM);
        let (to_server, statuses) = mpsc::channel(ROOM);
        let topics = ear::topics();
        let listen = |identity: &str, broker: &str, filter: String, to: mpsc::Sender<Message>| {
            ear::link(pki, identity, broker, vec![filter], Arc::new(Intake(to)), &scope)
        };
        let at_server = listen(consumer, server, topics.to_agent(consumer), to_agent)?;
        let at_agent = listen("maestro", agent, topics.from_agents(None), to_server)?;
        for (link, topic, from, seed) in [
            (at_agent.clone(), topics.to_agent(consumer), specs, seed),
            (at_server.clone(), topics.from_agent(consumer), statuses, seed + 1),
        ] {
            let passing =
                Passing { link, topic, deeds: deeds.clone(), dice: Dice::new(seed), held: Vec::new() };
            let stop = scope.clone();
            scope.spawn(TaskKind::Helper, "passing", async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = passing.run(from) => {}
                }
                Ok::<_, Fault>(())
            });
        }
        let meddler = Self { deeds, links: [at_server, at_agent], scope };
        meddler.connected().await?;
        Ok(meddler)
    }

    /// Waits until both brokers are there.
    pub async fn connected(&self) -> Result<()> {
        for link in &self.links {
            tokio::time::timeout(wait::DEADLINE, link.connected()).await.context("a broker")?;
        }
        Ok(())
    }

    /// From now on everything is passed on as it comes.
    pub fn be_honest(&self) {
        self.deeds.honest.store(true, Ordering::Relaxed);
    }
}

impl Drop for Meddler {
    fn drop(&mut self) {
        self.scope.token().cancel();
    }
}

/// One direction.
struct Passing {
    link: Link,
    topic: String,
    deeds: Arc<Deeds>,
    dice: Dice,
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
                // A pause in which nothing else came.
                () = tokio::time::sleep(HOLD) => self.release().await,
            }
        }
    }

    async fn meddle(&mut self, message: Message) {
        if self.deeds.honest.load(Ordering::Relaxed) {
            self.release().await;
            return self.pass(message).await;
        }
        match self.dice.below(10) {
            0 | 1 => {
                self.deeds.lost.fetch_add(1, Ordering::Relaxed);
            }
            2 | 3 => {
                self.deeds.doubled.fetch_add(1, Ordering::Relaxed);
                self.held.push(message.clone());
                self.pass(message).await;
            }
            4..=6 => {
                self.deeds.held.fetch_add(1, Ordering::Relaxed);
                self.held.push(message);
            }
            _ => self.pass(message).await,
        }
        if self.held.len() >= HELD {
            self.release().await;
        }
    }

    /// Passes on what was held back, in any order.
    async fn release(&mut self) {
        while !self.held.is_empty() {
            let message = self.held.swap_remove(self.dice.below(self.held.len()));
            self.pass(message).await;
        }
    }

    async fn pass(&self, message: Message) {
        self.link.connected().await;
        if self.link.publish(&self.topic, message).await.is_err() {
            self.deeds.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}
