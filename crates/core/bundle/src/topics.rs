//! The topics of one source.
//!
//! The server publishes on `sources/<source>/consumers/<consumer>/sourceevents` and subscribes to `…/agentevents` of all
//! consumers; an agent publishes on its own `…/agentevents` and subscribes to its own `…/sourceevents`. A configuration may
//! change the words between, not the shape.

/// The topics of a source, with `+` in the consumer's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topics {
    source_events: String,
    agent_events: String,
}

/// Why a string is not such a topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{topic}` is not a topic like `{example}`")]
pub struct TopicError {
    topic: String,
    example: &'static str,
}

const SOURCE_EVENTS: &str = "sourceevents";
const AGENT_EVENTS: &str = "agentevents";
const EVERY: &str = "+";
const SHARED: &str = "$share/";
const EXAMPLES: [&str; 2] =
    ["sources/maestro/consumers/+/sourceevents", "sources/maestro/consumers/+/agentevents"];

impl Topics {
    /// Maestro's default topics.
    pub fn of_source(source: &str) -> Self {
        Self {
            source_events: format!("sources/{source}/consumers/+/{SOURCE_EVENTS}"),
            agent_events: format!("sources/{source}/consumers/+/{AGENT_EVENTS}"),
        }
    }

    /// Parses configured topics. A leading `$share/<group>/` is ignored.
    pub fn parse(source_events: &str, agent_events: &str) -> Result<Self, TopicError> {
        let check = |text: &str, last: &str, example| {
            let plain = without_group(text);
            let wrong = || TopicError { topic: text.to_owned(), example };
            if shape(plain, last) { Ok(plain.to_owned()) } else { Err(wrong()) }
        };
        Ok(Self {
            source_events: check(source_events, SOURCE_EVENTS, EXAMPLES[0])?,
            agent_events: check(agent_events, AGENT_EVENTS, EXAMPLES[1])?,
        })
    }

    /// The source of the topics.
    pub fn source(&self) -> &str {
        self.source_events.split('/').nth(1).unwrap_or_default()
    }

    /// The topic of spec events to a consumer's agent.
    pub fn to_agent(&self, consumer: &str) -> String {
        filled(&self.source_events, consumer)
    }

    /// The topic of a consumer's agent.
    pub fn from_agent(&self, consumer: &str) -> String {
        filled(&self.agent_events, consumer)
    }

    /// The filter for all agents' topics. With a group, each message is delivered to one member of it.
    pub fn from_agents(&self, group: Option<&str>) -> String {
        let all = filled(&self.agent_events, EVERY);
        group.map_or_else(|| all.clone(), |group| format!("{SHARED}{group}/{all}"))
    }

    /// The consumer of an agent topic. `None` if it is not one.
    pub fn agent_topic_consumer<'t>(&self, topic: &'t str) -> Option<&'t str> {
        between(&self.agent_events, topic)
    }

    /// The consumer of a source topic. `None` if it is not one.
    pub fn source_topic_consumer<'t>(&self, topic: &'t str) -> Option<&'t str> {
        between(&self.source_events, topic)
    }
}

/// A filter without its share group.
pub fn without_group(filter: &str) -> &str {
    filter.strip_prefix(SHARED).and_then(|rest| rest.split_once('/')).map_or(filter, |(_, plain)| plain)
}

/// `word/name/word/name/last`; a name may be `+`.
fn shape(topic: &str, last: &str) -> bool {
    let word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase());
    let parts: Vec<&str> = topic.split('/').collect();
    let [first, source, second, consumer, end] = parts[..] else { return false };
    let name = |text: &str| text == EVERY || is_name(text);
    word(first) && name(source) && word(second) && name(consumer) && end == last
}

fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(allowed)
}

/// The consumer's place is the fourth level, whatever the configuration has there.
fn filled(pattern: &str, consumer: &str) -> String {
    let parts = pattern.split('/').enumerate();
    let parts: Vec<&str> = parts.map(|(at, part)| if at == 3 { consumer } else { part }).collect();
    parts.join("/")
}

fn between<'t>(pattern: &str, topic: &'t str) -> Option<&'t str> {
    let mut consumer = None;
    let mut parts = topic.split('/');
    for (at, wanted) in pattern.split('/').enumerate() {
        let found = parts.next()?;
        match at {
            3 => consumer = Some(found),
            _ if found == wanted || wanted == EVERY => {}
            _ => return None,
        }
    }
    if parts.next().is_some() { None } else { consumer.filter(|name| is_name(name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_publishes_where_the_other_subscribes() {
        let topics = Topics::of_source("maestro");
        assert_eq!(topics.source(), "maestro");
        assert_eq!(topics.to_agent("c1"), "sources/maestro/consumers/c1/sourceevents");
        assert_eq!(topics.from_agent("c1"), "sources/maestro/consumers/c1/agentevents");
        assert_eq!(
            topics.from_agents(Some("statussubscribers")),
            "$share/statussubscribers/sources/maestro/consumers/+/agentevents"
        );
        assert_eq!(topics.agent_topic_consumer("sources/maestro/consumers/c1/agentevents"), Some("c1"));
        assert_eq!(topics.source_topic_consumer("sources/maestro/consumers/c1/sourceevents"), Some("c1"));
        for other in [
            "sources/maestro/consumers/c1/sourceevents",
            "sources/other/consumers/c1/agentevents",
            "sources/maestro/consumers/c1/agentevents/more",
            "sources/maestro/consumers//agentevents",
            "sources/maestro/consumers",
            "",
        ] {
            assert_eq!(topics.agent_topic_consumer(other), None, "{other}");
        }
    }

    #[test]
    fn configured_topics_may_use_other_words_or_a_consumer_name() {
        let topics =
            Topics::parse("sources/hub1/clusters/+/sourceevents", "sources/hub1/clusters/c1/agentevents")
                .unwrap();
        assert_eq!(topics.to_agent("c2"), "sources/hub1/clusters/c2/sourceevents");
        assert_eq!(topics.from_agent("c1"), "sources/hub1/clusters/c1/agentevents");
        let shared = "$share/statussubscribers/sources/maestro/consumers/+/agentevents";
        assert!(Topics::parse("sources/maestro/consumers/+/sourceevents", shared).is_ok());
        for wrong in
            ["", "#", "a/b/c", "sources/m/consumers/#/sourceevents", "Sources/m/consumers/+/sourceevents"]
        {
            assert!(Topics::parse(wrong, shared).is_err(), "{wrong}");
        }
    }
}
