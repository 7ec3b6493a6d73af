//! The agent between broker, engine and store.

use std::sync::{Arc, OnceLock};

use aro_base::SharedClock;
use aro_bundle::{Action, Event, IdRange, SequenceId, StatusResync, Subresource, Topics};
use aro_crds::work::v1::ManifestWorkStatus;
use aro_mqtt::{Delivery, Inbox};
use aro_runtime::{Component, Seldom};
use aro_work_engine::{Engine, Reports, Times};
use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::book::Book;
use crate::intake::{Decision, decide};
use crate::metrics::AgentMetrics;
use crate::record::Record;

/// What the tasks of an agent share.
pub struct Agent {
    pub consumer: String,
    pub topics: Topics,
    pub book: Mutex<Book>,
    /// Set before the first message can come.
    pub engine: OnceLock<Engine>,
    pub clock: SharedClock,
    pub metrics: AgentMetrics,
    pub ready: Component,
    /// Told when there is something to say.
    pub to_say: Notify,
    /// Told when there is something to write down.
    pub to_write: Notify,
    /// Told when the engine waits for something to be written down.
    pub held: Notify,
    /// Whether the server is still to be told what is known.
    pub resync: Mutex<bool>,
    /// How often the server is asked for what it believes to be here.
    pub asking: Seldom,
}

impl Agent {
    /// Takes a message; what it is not able to take is counted and dropped.
    fn take(&self, topic: &str, message: &aro_mqtt::Message) {
        self.metrics.received.inc();
        if self.topics.source_topic_consumer(topic) != Some(self.consumer.as_str()) {
            return self.drop_event("it came by a topic that is not this consumer's", topic);
        }
        let event = match aro_bundle::mqtt::read(message) {
            Ok(event) => event,
            Err(error) => return self.drop_event(&error.to_string(), topic),
        };
        if event.cluster_name != self.consumer {
            return self.drop_event("it is for another consumer", &event.cluster_name);
        }
        match (event.kind.subresource, event.kind.action) {
            (Subresource::Status, Action::ResyncRequest) => self.answer(&event),
            (Subresource::Spec, Action::ResyncRequest) | (Subresource::Status, _) => {
                self.drop_event("only agents say so", &event.source);
            }
            (Subresource::Spec, _) => self.spec(&event),
        }
    }

    /// Sends statuses that the server does not have.
    fn answer(&self, event: &Event) {
        let request: StatusResync = match event.payload() {
            Ok(request) => request,
            Err(error) => return self.drop_event(&error.to_string(), &event.source),
        };
        let range = IdRange::of_status_list(event);
        let mut book = self.book.lock();
        let count = book.resync(&request, range.as_ref());
        let missing = request.status_hashes.iter().filter(|one| !book.knows(&one.id)).count();
        drop(book);
        tracing::debug!(listed = request.status_hashes.len(), count, missing, "statuses are sent again");
        // The server believes that something is here which is not: it has to learn what is, and sends the rest.
        if missing > 0 && self.asking.now().is_some() {
            tracing::info!(missing, "the server has works that are not known here; it is asked for them");
            *self.resync.lock() = true;
        }
        self.to_say.notify_one();
    }

    fn spec(&self, event: &Event) {
        let Some(engine) = self.engine.get() else { return };
        let id = event.resource_id.as_deref().unwrap_or_default();
        let mut book = self.book.lock();
        if let Some(known) = event.sequence_id.as_deref().and_then(SequenceId::parse) {
            book.heard(known);
        }
        let decision = decide(event, book.get(id), self.clock.now());
        // What the engine is to do is done without the book: the engine reports into it.
        let next = match decision {
            Decision::Apply(record) if book.get(id).is_none() => Next::Put(Box::new(book.note(*record))),
            Decision::Apply(record) => {
                let record = book.note(*record);
                book.hold(&record.id);
                Next::WriteFirst
            }
            Decision::Delete(record) => {
                let record = book.note(*record);
                tracing::info!(id, version = record.version, "a work is taken away");
                // Of what is gone already only the report is owed.
                if record.gone {
                    book.gone(&record.name);
                    Next::Nothing
                } else {
                    book.hold(&record.id);
                    Next::WriteFirst
                }
            }
            Decision::Repeat => {
                book.ask(id);
                Next::Nothing
            }
            Decision::Refuse(record, why) => {
                self.metrics.refused.inc();
                tracing::warn!(id, version = record.version, why, "a bundle cannot be applied");
                book.refuse(*record, why);
                Next::Nothing
            }
            Decision::Drop(why) => {
                drop(book);
                return self.drop_event(why, id);
            }
        };
        self.count(&book);
        drop(book);
        match next {
            Next::Put(record) => engine.put(record.work()),
            Next::WriteFirst => self.held.notify_one(),
            Next::Nothing => {}
        }
        self.to_say.notify_one();
        self.to_write.notify_one();
    }

    fn drop_event(&self, why: &str, what: &str) {
        self.metrics.dropped.inc();
        tracing::debug!(why, what, "an event was dropped");
    }

    /// Shows how much there is.
    pub fn count(&self, book: &Book) {
        self.metrics.works.set(book.len() as i64);
        self.metrics.waiting.set(book.waiting() as i64);
    }
}

/// What the engine is told.
enum Next {
    Put(Box<Record>),
    /// Nothing before it is written down: a process after this one would go back to what was written before. It would
    /// remove what only the new version has, or take the record of a work that goes for one that strangers delete.
    WriteFirst,
    Nothing,
}

#[async_trait]
impl Inbox for Agent {
    fn connected(&self) {
        *self.resync.lock() = true;
        self.ready.ready();
        self.to_say.notify_one();
    }

    fn disconnected(&self) {
        self.ready.not_ready("the broker is not connected; what is known is still enforced");
    }

    async fn deliver(&self, delivery: Delivery) {
        self.take(&delivery.topic, &delivery.message);
        // It is with the engine and waits to be written down.
        delivery.ack.done();
    }
}

impl Reports for Agent {
    fn status(&self, name: &str, generation: i64, status: ManifestWorkStatus, times: Times) {
        let mut book = self.book.lock();
        book.saw(name, generation, status, times);
        self.count(&book);
        drop(book);
        self.to_say.notify_one();
        self.to_write.notify_one();
    }

    fn gone(&self, name: &str) {
        let mut book = self.book.lock();
        let wanted = book.gone(name);
        drop(book);
        // It was put again while it went, and the engine does not revive what goes.
        if let (Some(record), Some(engine)) = (wanted, self.engine.get()) {
            engine.put(record.work());
        }
        self.to_say.notify_one();
        self.to_write.notify_one();
    }
}

/// Reports and messages go to the same agent.
pub type SharedAgent = Arc<Agent>;
