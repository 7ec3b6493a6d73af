//! The envelope.

pub mod grpc;
pub mod json;
pub mod mqtt;
mod text;

use std::collections::BTreeMap;
use std::fmt;

use aro_base::Timestamp;
use bytes::Bytes;

/// The one kind of thing these events are about.
pub const DATA_TYPE: &str = "io.open-cluster-management.works.v1alpha1.manifestbundles";
/// The version of CloudEvents.
pub const SPEC_VERSION: &str = "1.0";
/// What the data is written in.
pub const CONTENT_TYPE: &str = "application/json";
/// Content types that begin so hold the whole event, envelope included.
pub(crate) const STRUCTURED: &str = "application/cloudevents";

/// What is wanted, or what is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subresource {
    /// What is wanted.
    Spec,
    /// What is so.
    Status,
}

/// What the event is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Make it.
    Create,
    /// Change it.
    Update,
    /// Take it away.
    Delete,
    /// Send me what I do not know.
    ResyncRequest,
    /// Here is what you did not know.
    ResyncResponse,
}

impl Action {
    const ALL: [Self; 5] =
        [Self::Create, Self::Update, Self::Delete, Self::ResyncRequest, Self::ResyncResponse];

    /// The word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Create => "create_request",
            Self::Update => "update_request",
            Self::Delete => "delete_request",
            Self::ResyncRequest => "resync_request",
            Self::ResyncResponse => "resync_response",
        }
    }
}

impl Subresource {
    /// The word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::Status => "status",
        }
    }
}

/// An event's type: `<data type>.<subresource>.<action>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventType {
    /// What is wanted, or what is so.
    pub subresource: Subresource,
    /// What the event is for.
    pub action: Action,
}

impl EventType {
    /// An event about what is wanted.
    pub const fn spec(action: Action) -> Self {
        Self { subresource: Subresource::Spec, action }
    }

    /// An event about what is so.
    pub const fn status(action: Action) -> Self {
        Self { subresource: Subresource::Status, action }
    }

    /// Reads a type; from the right, as the data type may hold any number of dots.
    pub fn parse(text: &str) -> Result<Self, EventError> {
        let wrong = || EventError::Type(shortened(text));
        let (rest, action) = text.rsplit_once('.').ok_or_else(wrong)?;
        let (data_type, subresource) = rest.rsplit_once('.').ok_or_else(wrong)?;
        let action = Action::ALL.into_iter().find(|known| known.word() == action).ok_or_else(wrong)?;
        let subresource = [Subresource::Spec, Subresource::Status]
            .into_iter()
            .find(|known| known.word() == subresource)
            .ok_or_else(wrong)?;
        if data_type != DATA_TYPE {
            return Err(EventError::DataType(shortened(data_type)));
        }
        Ok(Self { subresource, action })
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{DATA_TYPE}.{}.{}", self.subresource.word(), self.action.word())
    }
}

/// An extension that has no member of its own here.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// Yes or no.
    Boolean(bool),
    /// A whole number.
    Integer(i32),
    /// A text.
    Text(String),
    /// A time.
    Time(Timestamp),
}

/// One CloudEvent about bundles.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Names this event; fresh for each, except that a spec on its way to an agent keeps its source's.
    pub id: String,
    /// Who says it: a source, the server (`maestro`), or an agent.
    pub source: String,
    /// What it is.
    pub kind: EventType,
    /// When it was said.
    pub time: Option<Timestamp>,
    /// The consumer it is about. Always said, if only as nothing.
    pub cluster_name: String,
    /// Whom the resource belongs to. Always said by agents and the server, if only as nothing.
    pub original_source: Option<String>,
    /// The bundle. Resyncs have none.
    pub resource_id: Option<String>,
    /// To the server: the version that is expected (0: any). To an agent: the row's. From an agent: what it applied.
    pub resource_version: Option<i32>,
    /// The bundle is to go. This counts, not the action.
    pub deletion_timestamp: Option<Timestamp>,
    /// Orders statuses of one agent.
    pub sequence_id: Option<String>,
    /// The agent's digest of its status.
    pub status_hash: Option<String>,
    /// The work's metadata, as JSON.
    pub metadata: Option<String>,
    /// Trace ids, as a JSON map of texts.
    pub log_tracing: Option<String>,
    /// Extensions we do not know, and ours that others do not.
    pub others: BTreeMap<String, Attribute>,
    /// The payload, as JSON; empty when there is none.
    pub data: Bytes,
}

impl Event {
    /// An event of a type from somebody about a cluster; everything else is nothing yet.
    pub fn new(
        id: impl Into<String>,
        source: impl Into<String>,
        kind: EventType,
        cluster_name: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            source: source.into(),
            kind,
            time: None,
            cluster_name: cluster_name.into(),
            original_source: None,
            resource_id: None,
            resource_version: None,
            deletion_timestamp: None,
            sequence_id: None,
            status_hash: None,
            metadata: None,
            log_tracing: None,
            others: BTreeMap::new(),
            data: Bytes::new(),
        }
    }

    /// About which bundle; events that are not resyncs must say it.
    pub fn resource(&self) -> Result<&str, EventError> {
        match self.resource_id.as_deref() {
            Some(id) if !id.is_empty() => Ok(id),
            _ => Err(EventError::Missing("resourceid")),
        }
    }

    /// About which version of it.
    pub fn version(&self) -> Result<i32, EventError> {
        self.resource_version.ok_or(EventError::Missing("resourceversion"))
    }

    /// The work's metadata as an object; empty when none came.
    pub fn metadata_object(&self) -> Result<serde_json::Map<String, serde_json::Value>, EventError> {
        match self.metadata.as_deref() {
            None | Some("") => Ok(serde_json::Map::new()),
            Some(text) => {
                serde_json::from_str(text).map_err(|error| EventError::Value("metadata", error.to_string()))
            }
        }
    }

    /// A text among the extensions that have no member of their own.
    pub fn other(&self, name: &str) -> Option<&str> {
        match self.others.get(name) {
            Some(Attribute::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The payload as a type.
    pub fn payload<T: serde::de::DeserializeOwned>(&self) -> Result<T, EventError> {
        serde_json::from_slice(&self.data).map_err(|error| EventError::Data(error.to_string()))
    }

    /// With a payload.
    pub fn carrying<T: serde::Serialize>(mut self, payload: &T) -> Result<Self, EventError> {
        let data = serde_json::to_vec(payload).map_err(|error| EventError::Data(error.to_string()))?;
        self.data = data.into();
        Ok(self)
    }

    /// About how many bytes it takes on the wire.
    pub fn size(&self) -> usize {
        // Names, lengths and what is always there; generous.
        let fixed = 512;
        let texts = [&self.metadata, &self.log_tracing, &self.status_hash, &self.sequence_id];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let others = |value: &Attribute| if let Attribute::Text(text) = value { text.len() } else { 32 };
        let others: usize = self.others.iter().map(|(name, value)| name.len() + others(value) + 8).sum();
        fixed + self.id.len() + self.source.len() + self.cluster_name.len() + texts + others + self.data.len()
    }
}

/// Why something is not an event of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// Its type is none.
    #[error("the event type `{0}` is not <data type>.<spec|status>.<action>")]
    Type(String),
    /// Its type is about something else.
    #[error("events about `{0}` are not handled here")]
    DataType(String),
    /// An attribute that must be there is not.
    #[error("the event has no `{0}`")]
    Missing(&'static str),
    /// An attribute has a value it cannot have.
    #[error("the event's `{0}` cannot be read: {1}")]
    Value(&'static str, String),
    /// The payload is not what its type promises.
    #[error("the event's data cannot be read: {0}")]
    Data(String),
    /// The version of CloudEvents is another.
    #[error("the event is of CloudEvents version `{0}`, not {SPEC_VERSION}")]
    SpecVersion(String),
    /// It is not a CloudEvent at all.
    #[error("the message is not a CloudEvent: {0}")]
    NoEvent(&'static str),
}

/// What came from outside is told shortened.
pub fn shortened(text: &str) -> String {
    const MOST: usize = 120;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_from_the_right_and_only_ours_is_taken() {
        let text = format!("{DATA_TYPE}.spec.create_request");
        assert_eq!(EventType::parse(&text), Ok(EventType::spec(Action::Create)));
        assert_eq!(EventType::parse(&text).unwrap().to_string(), text);
        let former = "io.open-cluster-management.works.v1alpha1.manifests.spec.create_request";
        assert!(matches!(EventType::parse(former), Err(EventError::DataType(_))));
        for wrong in ["", "a", "a.b", "spec.create_request.x", &format!("{DATA_TYPE}.specs.create_request")] {
            assert!(matches!(EventType::parse(wrong), Err(EventError::Type(_))), "{wrong}");
        }
    }

    #[test]
    fn what_came_from_outside_is_told_shortened_at_a_character() {
        assert_eq!(shortened(&"ü".repeat(500)).chars().count(), 121);
    }
}
