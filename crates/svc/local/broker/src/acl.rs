//! Which identity may publish and subscribe to which topics.
//!
//! A server (by configuration) may use the topics of all consumers of its source; every other identity is the consumer of its
//! name and may use only its own two topics. So one management cluster can neither read another's secrets nor report for it.
//! [`Topics`] alone defines those topics.

use std::collections::BTreeSet;

use aro_bundle::Topics;

use crate::topics::{Filter, is_name};

/// The rules of one source.
#[derive(Debug, Clone)]
pub struct Acl {
    topics: Topics,
    servers: BTreeSet<String>,
}

impl Acl {
    /// The rules for a source and the identities of its servers.
    pub fn new(source: &str, servers: impl IntoIterator<Item = String>) -> Self {
        Self { topics: Topics::of_source(source), servers: servers.into_iter().collect() }
    }

    /// Whether a name can be an identity. A name with a wildcard in it would match other identities' topics.
    pub fn knows(&self, identity: &str) -> bool {
        is_name(identity)
    }

    /// Whether it is a server's.
    pub fn is_server(&self, identity: &str) -> bool {
        self.servers.contains(identity)
    }

    /// Whether it may publish to this topic.
    pub fn may_publish(&self, identity: &str, topic: &str) -> bool {
        if self.is_server(identity) {
            return self.topics.source_topic_consumer(topic).is_some();
        }
        self.topics.agent_topic_consumer(topic) == Some(identity)
    }

    /// Whether it may subscribe to this filter. Only servers may share: every share is tried for every message, and a consumer
    /// could create any number of them.
    pub fn may_subscribe(&self, identity: &str, filter: &Filter) -> bool {
        let path = filter.path();
        if self.is_server(identity) {
            return path == self.topics.from_agents(None) || self.topics.agent_topic_consumer(path).is_some();
        }
        filter.share().is_none() && self.topics.source_topic_consumer(path) == Some(identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acl() -> Acl {
        Acl::new("maestro", ["maestro".to_owned()])
    }

    #[test]
    fn identity_publishes_on_its_own_topics_only() {
        for (identity, topic, allowed) in [
            ("maestro", "sources/maestro/consumers/c1/sourceevents", true),
            ("maestro", "sources/maestro/sourcebroadcast", false),
            ("maestro", "sources/maestro/consumers/+/sourceevents", false),
            ("maestro", "sources/maestro/consumers/c1/agentevents", false),
            ("maestro", "sources/other/consumers/c1/sourceevents", false),
            ("maestro", "sources/maestro/consumers//sourceevents", false),
            ("c1", "sources/maestro/consumers/c1/agentevents", true),
            ("c1", "sources/maestro/consumers/c2/agentevents", false),
            ("c1", "sources/maestro/consumers/c1/sourceevents", false),
            ("c1", "sources/maestro/sourcebroadcast", false),
            ("c1", "consumers/c1/agentbroadcast", false),
            ("c1", "anything", false),
            ("", "sources/maestro/consumers//agentevents", false),
        ] {
            assert_eq!(acl().may_publish(identity, topic), allowed, "{identity} to {topic}");
        }
    }

    #[test]
    fn identity_subscribes_to_its_own_topics_only() {
        for (identity, filter, allowed) in [
            ("maestro", "sources/maestro/consumers/+/agentevents", true),
            ("maestro", "$share/statussubscribers/sources/maestro/consumers/+/agentevents", true),
            ("maestro", "sources/maestro/consumers/c1/agentevents", true),
            ("maestro", "sources/+/consumers/+/agentevents", false),
            ("maestro", "consumers/+/agentbroadcast", false),
            ("maestro", "sources/maestro/consumers/+/sourceevents", false),
            ("maestro", "#", false),
            ("c1", "sources/maestro/consumers/c1/sourceevents", true),
            ("c1", "$share/g/sources/maestro/consumers/c1/sourceevents", false),
            ("c1", "sources/maestro/consumers/+/sourceevents", false),
            ("c1", "sources/maestro/consumers/c2/sourceevents", false),
            ("c1", "sources/+/consumers/c1/sourceevents", false),
            ("c1", "sources/maestro/consumers/c1/+", false),
            ("c1", "sources/maestro/#", false),
            ("c1", "$share/g/sources/maestro/consumers/+/agentevents", false),
        ] {
            let parsed = Filter::parse(filter).unwrap();
            assert_eq!(acl().may_subscribe(identity, &parsed), allowed, "{identity} to {filter}");
        }
    }

    #[test]
    fn name_with_a_wildcard_is_no_identity() {
        let acl = acl();
        for identity in ["+", "#", "a/b", "", "c1/sourceevents", "a\0b", "$share"] {
            let filter = Filter::parse("sources/maestro/consumers/+/sourceevents").unwrap();
            assert!(!acl.knows(identity), "{identity:?}");
            assert!(!acl.may_subscribe(identity, &filter), "{identity:?}");
            let topic = format!("sources/maestro/consumers/{identity}/agentevents");
            assert!(!acl.may_publish(identity, &topic), "{identity:?}");
        }
    }
}
