//! Where events go: the topics of one source.
//!
//! The server speaks on `sources/<source>/consumers/<consumer>/sourceevents` and hears `…/agentevents` of all consumers;
//! an agent speaks on its own `…/agentevents` and hears its own `…/sourceevents`. The words between may differ from
//! place to place, the shape may not.

/// The topics of a source, with `+` where the consumer's name goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topics {
    source_events: String,
    agent_events: String,
}

/// Why something is not a topic.
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
    /// The topics Maestro uses.
    pub fn of_source(source: &str) -> Self {
        Self {
            source_events: format!("sources/{source}/consumers/+/{SOURCE_EVENTS}"),
            agent_events: format!("sources/{source}/consumers/+/{AGENT_EVENTS}"),
        }
    }

    /// Takes topics from a configuration. A `$share/<group>/` in front is not part of them.
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

    /// The source the topics are of.
    pub fn source(&self) -> &str {
        self.source_events.split('/').nth(1).unwrap_or_default()
    }

    /// What is said to a consumer.
    pub fn to_agent(&self, consumer: &str) -> String {
        filled(&self.source_events, consumer)
    }

    /// What a consumer says.
    pub fn from_agent(&self, consumer: &str) -> String {
        filled(&self.agent_events, consumer)
    }

    /// What every consumer says; with a group, each message comes to one member of it.
    pub fn from_agents(&self, group: Option<&str>) -> String {
        let all = filled(&self.agent_events, EVERY);
        group.map_or_else(|| all.clone(), |group| format!("{SHARED}{group}/{all}"))
    }

    /// Which consumer said something on a topic. `None`: it is not one that consumers speak on.
    pub fn speaker<'t>(&self, topic: &'t str) -> Option<&'t str> {
        between(&self.agent_events, topic)
    }

    /// Which consumer something on a topic is for. `None`: it is not one that consumers hear.
    pub fn listener<'t>(&self, topic: &'t str) -> Option<&'t str> {
        between(&self.source_events, topic)
    }
}

/// A filter without the group that shares it.
pub fn without_group(filter: &str) -> &str {
    filter.strip_prefix(SHARED).and_then(|rest| rest.split_once('/')).map_or(filter, |(_, plain)| plain)
}

/// `word/name/word/name/last`, where a name may be `+`.
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

/// The consumer's place is the fourth, whatever a configuration wrote there.
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
    fn each_side_speaks_where_the_other_listens() {
        let topics = Topics::of_source("maestro");
        assert_eq!(topics.source(), "maestro");
        assert_eq!(topics.to_agent("c1"), "sources/maestro/consumers/c1/sourceevents");
        assert_eq!(topics.from_agent("c1"), "sources/maestro/consumers/c1/agentevents");
        assert_eq!(
            topics.from_agents(Some("statussubscribers")),
            "$share/statussubscribers/sources/maestro/consumers/+/agentevents"
        );
        assert_eq!(topics.speaker("sources/maestro/consumers/c1/agentevents"), Some("c1"));
        assert_eq!(topics.listener("sources/maestro/consumers/c1/sourceevents"), Some("c1"));
        for other in [
            "sources/maestro/consumers/c1/sourceevents",
            "sources/other/consumers/c1/agentevents",
            "sources/maestro/consumers/c1/agentevents/more",
            "sources/maestro/consumers//agentevents",
            "sources/maestro/consumers",
            "",
        ] {
            assert_eq!(topics.speaker(other), None, "{other}");
        }
    }

    #[test]
    fn topics_of_a_configuration_may_use_other_words_or_a_name_in_place() {
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
