//! Statuses and questions on their way from agents.
//!
//! Messages come in order; statuses of one bundle stay in order, those of different bundles are stored side by side
//! (in lanes). A message is acknowledged when what it says is stored: what a crash interrupts, the broker or the next
//! resync brings again. While the store is away, nothing is acknowledged and the broker stops sending.
//!
//! Who may say what: an agent speaks on the topic of its consumer, and only about that consumer. Everything else is
//! counted, told once in a while, and dropped.

use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_bundle::{Action, BundleStatus, Event, EventError, EventType, Subresource, Topics, mqtt, shortened};
use aro_mqtt::{Ack, Delivery, Inbox};
use aro_runtime::{Fault, Scope, Seldom, TaskKind};
use async_trait::async_trait;
use tokio::sync::{Notify, mpsc};

use crate::dispatch::Dispatcher;
use crate::fault::Code;
use crate::rows::Outcome;
use crate::speech;

/// How many statuses are stored side by side.
const LANES: usize = 64;
/// How many may wait in each.
const DEPTH: usize = 64;
/// How many questions of agents may wait.
const QUESTIONS: usize = 1024;
/// The first pause when the store does not take a status; it doubles up to the longest.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);
/// How often it is told that something was dropped; everything is counted.
const COMPLAIN: Duration = Duration::from_secs(1);

/// Why something that nobody wants stays all the same.
pub const NOT_BELIEVED: &str = "an agent came with what this store does not know before anything was wanted for its consumer here: nothing is taken away. Look which store this server has. If it is the right one, say so with POST /api/aro/maestro/v1/consumers/{id}/trust; what nobody wants then goes with the agent's next report or connect";

/// What an agent said.
#[derive(Debug, PartialEq)]
pub enum Heard {
    /// How a bundle is.
    Status(Event),
    /// What it has: send it the rest.
    SpecResync(Event),
}

/// Why a message was dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nobody speaks there.
    #[error("the topic is none that agents speak on")]
    Topic,
    /// It is no event of ours.
    #[error(transparent)]
    Malformed(#[from] EventError),
    /// It is about another consumer than the one that speaks.
    #[error("an agent of `{speaker}` speaks for `{claimed}`")]
    OtherConsumer {
        /// Whose topic it is.
        speaker: String,
        /// What the event says.
        claimed: String,
    },
    /// Agents do not say such things.
    #[error("agents do not send {0}")]
    Unexpected(EventType),
}

impl Refusal {
    /// In a word, for counting.
    fn reason(&self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Malformed(_) => "malformed",
            Self::OtherConsumer { .. } => "other_consumer",
            Self::Unexpected(_) => "unexpected",
        }
    }
}

/// What a message says. Pure.
pub fn hear(topics: &Topics, topic: &str, message: &mqtt::Message) -> Result<Heard, Refusal> {
    let speaker = topics.agent_topic_consumer(topic).ok_or(Refusal::Topic)?;
    let event = mqtt::read(message)?;
    if event.cluster_name != speaker {
        return Err(Refusal::OtherConsumer {
            speaker: speaker.to_owned(),
            claimed: shortened(&event.cluster_name),
        });
    }
    match (event.kind.subresource, event.kind.action) {
        (Subresource::Status, Action::Update | Action::ResyncResponse) => {
            event.resource()?;
            event.version()?;
            Ok(Heard::Status(event))
        }
        (Subresource::Spec, Action::ResyncRequest) => Ok(Heard::SpecResync(event)),
        _ => Err(Refusal::Unexpected(event.kind)),
    }
}

type Item = (Event, Ack);

/// The server's ear.
pub struct Ears {
    dispatcher: Arc<Dispatcher>,
    lanes: Vec<mpsc::Sender<Item>>,
    questions: mpsc::Sender<Item>,
    /// Who sends nonsense without a pause must not fill the log.
    complaints: Arc<Seldom>,
    /// Woken after every connect.
    pub connected: Arc<Notify>,
}

impl Ears {
    /// Starts listening in a scope. Questions of agents come out of the receiver.
    pub fn start(dispatcher: Arc<Dispatcher>, scope: &Scope) -> (Arc<Self>, mpsc::Receiver<Item>) {
        let complaints = Arc::new(Seldom::every(COMPLAIN));
        let mut lanes = Vec::with_capacity(LANES);
        for _ in 0..LANES {
            let (sender, receiver) = mpsc::channel(DEPTH);
            lanes.push(sender);
            let (dispatcher, inside, complaints) = (dispatcher.clone(), scope.clone(), complaints.clone());
            scope.spawn(TaskKind::Worker, "statuses", async move {
                store_all(&dispatcher, receiver, &complaints, &inside).await;
                Ok::<_, Fault>(())
            });
        }
        let (questions, asked) = mpsc::channel(QUESTIONS);
        let connected = Arc::new(Notify::new());
        (Arc::new(Self { dispatcher, lanes, questions, complaints, connected }), asked)
    }
}

#[async_trait]
impl Inbox for Ears {
    fn connected(&self) {
        self.connected.notify_one();
    }

    async fn deliver(&self, delivery: Delivery) {
        let Delivery { topic, message, ack } = delivery;
        match hear(&self.dispatcher.topics, &topic, &message) {
            Ok(Heard::Status(event)) => {
                self.dispatcher.observer.received(event.kind);
                let lane = lane_of(event.resource_id.as_deref().unwrap_or_default(), self.lanes.len());
                // A full lane makes the reader wait, and with it the broker.
                let _ = self.lanes[lane].send((event, ack)).await;
            }
            Ok(Heard::SpecResync(event)) => {
                self.dispatcher.observer.received(event.kind);
                let _ = self.questions.send((event, ack)).await;
            }
            Err(refusal) => {
                self.dispatcher.observer.refused(refusal.reason());
                if let Some(untold) = self.complaints.now() {
                    tracing::warn!(topic, why = %refusal, untold, "a message of an agent was dropped");
                }
                ack.done();
            }
        }
    }
}

fn lane_of(bundle: &str, lanes: usize) -> usize {
    use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
    BuildHasherDefault::<DefaultHasher>::default().hash_one(bundle) as usize % lanes
}

/// One lane: one status after another.
async fn store_all(
    dispatcher: &Dispatcher,
    mut items: mpsc::Receiver<Item>,
    complaints: &Seldom,
    scope: &Scope,
) {
    loop {
        let item = tokio::select! {
            biased;
            () = scope.cancelled() => return,
            item = items.recv() => item,
        };
        let Some((event, ack)) = item else { return };
        let stored = tokio::select! {
            biased;
            () = scope.cancelled() => return,
            stored = store(dispatcher, &event, complaints) => stored,
        };
        if stored {
            ack.done();
        }
    }
}

/// Stores one status, for as long as it takes. `false`: nobody will ever be able to.
async fn store(dispatcher: &Dispatcher, event: &Event, complaints: &Seldom) -> bool {
    let id = event.resource_id.as_deref().unwrap_or_default();
    let version = event.resource_version.unwrap_or_default();
    let mut pause = PAUSE;
    loop {
        let published = dispatcher.published_at(id, version);
        match dispatcher.rows.record_status_of(event, published).await {
            Ok(outcome) => {
                became(dispatcher, event, outcome, complaints);
                if outcome == Outcome::Unknown && is_ghost(event, &dispatcher.server) {
                    send_away(dispatcher, event, complaints).await;
                }
                return true;
            }
            Err(error) if !may_pass(&error) => {
                let unreadable = error.code == Code::Unreadable;
                dispatcher.observer.refused(if unreadable { "unreadable_row" } else { "malformed" });
                if let Some(untold) = complaints.now() {
                    let bundle = shortened(id);
                    tracing::warn!(bundle, why = %chain(&error), untold, "a status was dropped");
                }
                return true;
            }
            Err(error) => {
                if let Some(untold) = complaints.now() {
                    tracing::warn!(bundle = shortened(id), error = %chain(&error), untold, "a status could not be stored; trying again");
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST);
            }
        }
    }
}

/// Whether trying again may help: the store is away, or others change the bundle all the time. A status that is refused for
/// another reason would be refused for ever, and everything behind it would wait.
fn may_pass(error: &crate::Fault) -> bool {
    matches!(error.code, Code::General | Code::Conflict)
}

/// Whether an agent reports something that nobody wants: a spec that came late, or again, after its bundle was gone, has
/// brought it back. That it is gone may be said of what nobody knows.
fn is_ghost(event: &Event, server: &str) -> bool {
    event.original_source.as_deref() == Some(server)
        && event.payload::<BundleStatus>().is_ok_and(|status| !status.is_deleted())
}

/// Tells the agent to take it away. Should that be lost, its next report or resync leads to the same.
async fn send_away(dispatcher: &Dispatcher, event: &Event, complaints: &Seldom) {
    let (id, consumer) = (event.resource_id.as_deref().unwrap_or_default(), &event.cluster_name);
    match dispatcher.rows.may_remove_from(consumer).await {
        Ok(true) => {}
        Ok(false) => {
            if let Some(untold) = complaints.now() {
                tracing::warn!(bundle = shortened(id), consumer, untold, "{NOT_BELIEVED}");
            }
            return;
        }
        Err(error) => {
            if let Some(untold) = complaints.now() {
                tracing::warn!(bundle = shortened(id), consumer, error = %chain(&error), untold, "an agent has what nobody wants; it is told so with its next report");
            }
            return;
        }
    }
    let version = event.resource_version.unwrap_or_default();
    let (now, fresh) = (dispatcher.clock.now(), uuid::Uuid::new_v4().to_string());
    let away = speech::ghost(id, version, &event.cluster_name, &dispatcher.server, now, &fresh);
    let said = dispatcher.say(consumer, &away).await;
    if let Some(untold) = complaints.now() {
        let bundle = shortened(id);
        tracing::warn!(
            bundle,
            consumer,
            ?said,
            untold,
            "an agent has what nobody wants, and is to take it away; if that is wrong, look which store this server has"
        );
    }
}

fn became(dispatcher: &Dispatcher, event: &Event, outcome: Outcome, complaints: &Seldom) {
    let id = event.resource_id.as_deref().unwrap_or_default();
    let word = match outcome {
        Outcome::Stored => "stored",
        Outcome::Removed => "removed",
        Outcome::Stale => "stale",
        Outcome::Duplicate => "duplicate",
        Outcome::Unknown => "unknown",
        Outcome::WrongConsumer => "wrong_consumer",
        Outcome::WrongSource => "wrong_source",
        Outcome::Lost => "lost",
    };
    dispatcher.observer.status(word);
    match outcome {
        Outcome::Stored => {
            // Known until the first status of a version comes.
            if let Some(published) = dispatcher.forget(id) {
                let took = dispatcher.clock.now().duration_since(published);
                dispatcher.observer.first_status.observe(took.as_secs_f64().max(0.0));
            }
        }
        Outcome::Removed => {
            dispatcher.forget(id);
        }
        Outcome::Lost => dispatcher.queue.add(id.into()),
        Outcome::WrongConsumer => {
            if let Some(untold) = complaints.now() {
                let consumer = event.cluster_name.as_str();
                tracing::warn!(
                    bundle = shortened(id),
                    consumer,
                    untold,
                    "an agent reports a bundle of another consumer; dropped"
                );
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(consumer: &str) -> mqtt::Message {
        let mut event = Event::new("e", "c1-work-agent", EventType::status(Action::Update), consumer);
        event.resource_id = Some("b".to_owned());
        event.resource_version = Some(1);
        mqtt::write(&event)
    }

    #[test]
    fn an_agent_is_heard_on_its_own_topic_about_its_own_consumer_only() {
        let topics = Topics::of_source("maestro");
        let own = topics.from_agent("c1");
        assert!(matches!(hear(&topics, &own, &status("c1")), Ok(Heard::Status(_))));
        let other = hear(&topics, &own, &status("c2")).unwrap_err();
        assert_eq!(other.reason(), "other_consumer");
        assert_eq!(hear(&topics, &topics.to_agent("c1"), &status("c1")), Err(Refusal::Topic));
        assert_eq!(
            hear(&topics, "sources/other/consumers/c1/agentevents", &status("c1")),
            Err(Refusal::Topic)
        );
    }

    #[test]
    fn what_nobody_wants_is_a_ghost_unless_it_says_that_it_is_gone() {
        let told = |source: &str, conditions: serde_json::Value| {
            let mut event = Event::new("e", "a", EventType::status(Action::Update), "c1");
            event.original_source = Some(source.to_owned());
            event.with_payload(&serde_json::json!({ "conditions": conditions })).unwrap()
        };
        let gone = serde_json::json!([{"type": "Deleted", "status": "True", "reason": "ManifestsDeleted",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        assert!(is_ghost(&told("maestro", serde_json::json!([])), "maestro"));
        assert!(!is_ghost(&told("maestro", gone), "maestro"), "else it would be told for ever");
        assert!(!is_ghost(&told("another", serde_json::json!([])), "maestro"));
        let nonsense = Event { data: "nonsense".into(), ..told("maestro", serde_json::json!([])) };
        assert!(!is_ghost(&nonsense, "maestro"));
    }

    #[test]
    fn what_agents_do_not_say_is_refused() {
        let topics = Topics::of_source("maestro");
        let own = topics.from_agent("c1");
        for action in [Action::Create, Action::Update, Action::Delete, Action::ResyncResponse] {
            let event = Event::new("e", "a", EventType::spec(action), "c1");
            let refusal = hear(&topics, &own, &mqtt::write(&event)).unwrap_err();
            assert_eq!(refusal, Refusal::Unexpected(event.kind));
        }
        let mut nameless = Event::new("e", "a", EventType::status(Action::Update), "c1");
        nameless.resource_version = Some(1);
        assert!(matches!(hear(&topics, &own, &mqtt::write(&nameless)), Err(Refusal::Malformed(_))));
        assert!(matches!(hear(&topics, &own, &mqtt::Message::default()), Err(Refusal::Malformed(_))));
    }
}
