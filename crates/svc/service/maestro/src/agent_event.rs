//! Parses the messages of agents. Pure.
//!
//! An agent publishes on its consumer's topic and only about that consumer.

use aro_bundle::{Action, Event, EventError, EventType, Subresource, Topics, mqtt, shortened};

/// An event of an agent.
#[derive(Debug, PartialEq)]
pub enum AgentEvent {
    /// The status of a bundle.
    Status(Event),
    /// The versions the agent has; it expects the missing specs.
    SpecResync(Event),
}

/// Why a message is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The topic is not an agent's.
    #[error("not a topic of an agent")]
    Topic,
    /// The message is not a valid event.
    #[error(transparent)]
    Malformed(#[from] EventError),
    /// The event is about another consumer than the topic's.
    #[error("agent of `{publisher}` publishes for `{claimed}`")]
    OtherConsumer {
        /// The consumer of the topic.
        publisher: String,
        /// The consumer of the event.
        claimed: String,
    },
    /// Agents do not publish this type.
    #[error("agents do not publish {0}")]
    Unexpected(EventType),
}

impl Rejection {
    /// The metric label.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Malformed(_) => "malformed",
            Self::OtherConsumer { .. } => "other_consumer",
            Self::Unexpected(_) => "unexpected",
        }
    }
}

/// Parses a message.
pub fn parse_agent_event(
    topics: &Topics,
    topic: &str,
    message: &mqtt::Message,
) -> Result<AgentEvent, Rejection> {
    let publisher = topics.agent_topic_consumer(topic).ok_or(Rejection::Topic)?;
    let event = mqtt::read(message)?;
    if event.cluster_name != publisher {
        return Err(Rejection::OtherConsumer {
            publisher: publisher.to_owned(),
            claimed: shortened(&event.cluster_name),
        });
    }
    match (event.kind.subresource, event.kind.action) {
        (Subresource::Status, Action::Update | Action::ResyncResponse) => {
            event.resource()?;
            event.version()?;
            Ok(AgentEvent::Status(event))
        }
        (Subresource::Spec, Action::ResyncRequest) => Ok(AgentEvent::SpecResync(event)),
        _ => Err(Rejection::Unexpected(event.kind)),
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
    fn agent_is_accepted_on_its_own_topic_about_its_own_consumer_only() {
        let topics = Topics::of_source("maestro");
        let own = topics.from_agent("c1");
        assert!(matches!(parse_agent_event(&topics, &own, &status("c1")), Ok(AgentEvent::Status(_))));
        let other = parse_agent_event(&topics, &own, &status("c2")).unwrap_err();
        assert_eq!(other.label(), "other_consumer");
        assert_eq!(parse_agent_event(&topics, &topics.to_agent("c1"), &status("c1")), Err(Rejection::Topic));
        assert_eq!(
            parse_agent_event(&topics, "sources/other/consumers/c1/agentevents", &status("c1")),
            Err(Rejection::Topic)
        );
    }

    #[test]
    fn event_types_that_agents_do_not_publish_are_rejected() {
        let topics = Topics::of_source("maestro");
        let own = topics.from_agent("c1");
        for action in [Action::Create, Action::Update, Action::Delete, Action::ResyncResponse] {
            let event = Event::new("e", "a", EventType::spec(action), "c1");
            let rejection = parse_agent_event(&topics, &own, &mqtt::write(&event)).unwrap_err();
            assert_eq!(rejection, Rejection::Unexpected(event.kind));
        }
        let mut nameless = Event::new("e", "a", EventType::status(Action::Update), "c1");
        nameless.resource_version = Some(1);
        let rejected = |message| parse_agent_event(&topics, &own, &message).unwrap_err();
        assert!(matches!(rejected(mqtt::write(&nameless)), Rejection::Malformed(_)));
        assert!(matches!(rejected(mqtt::Message::default()), Rejection::Malformed(_)));
    }
}
