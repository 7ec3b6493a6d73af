//! The typed envelope of an event.

pub mod grpc;
pub mod json;
pub mod mqtt;
mod text;

use std::collections::BTreeMap;
use std::fmt;

use aro_base::Timestamp;
use bytes::Bytes;

/// The data type of every event here.
pub const DATA_TYPE: &str = "io.open-cluster-management.works.v1alpha1.manifestbundles";
/// The version of CloudEvents.
pub const SPEC_VERSION: &str = "1.0";
/// The media type of the data.
pub const CONTENT_TYPE: &str = "application/json";
/// The prefix of media types whose payload is the whole event, envelope included.
pub(crate) const STRUCTURED: &str = "application/cloudevents";

/// The part of a bundle that an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subresource {
    /// The desired state.
    Spec,
    /// The observed state.
    Status,
}

/// The purpose of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Create the bundle.
    Create,
    /// Update the bundle.
    Update,
    /// Delete the bundle.
    Delete,
    /// Send what the list in the payload lacks.
    ResyncRequest,
    /// The response to a resync request.
    ResyncResponse,
}

impl Action {
    const ALL: [Self; 5] =
        [Self::Create, Self::Update, Self::Delete, Self::ResyncRequest, Self::ResyncResponse];

    /// The name on the wire.
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
    /// The name on the wire.
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
    /// The part of the bundle it is about.
    pub subresource: Subresource,
    /// Its purpose.
    pub action: Action,
}

impl EventType {
    /// A spec event.
    pub const fn spec(action: Action) -> Self {
        Self { subresource: Subresource::Spec, action }
    }

    /// A status event.
    pub const fn status(action: Action) -> Self {
        Self { subresource: Subresource::Status, action }
    }

    /// Parses a type from the right, since the data type contains dots.
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

/// The value of an extension that has no field of its own.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// A boolean.
    Boolean(bool),
    /// An integer.
    Integer(i32),
    /// A string.
    Text(String),
    /// A time.
    Time(Timestamp),
}

/// One CloudEvent about bundles.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The event's id: unique, except that a spec published to an agent keeps its source's id.
    pub id: String,
    /// The publisher: a source, the server (`maestro`), or an agent.
    pub source: String,
    /// The type.
    pub kind: EventType,
    /// When it was created.
    pub time: Option<Timestamp>,
    /// The consumer. Always present, possibly empty.
    pub cluster_name: String,
    /// The source that owns the resource. Agents and the server always set it, possibly empty.
    pub original_source: Option<String>,
    /// The bundle id. Resyncs have none.
    pub resource_id: Option<String>,
    /// To the server: the expected resource version (0: any). To an agent: the row's. From an agent: the applied one.
    pub resource_version: Option<i32>,
    /// The bundle is being deleted. This decides, not the action.
    pub deletion_timestamp: Option<Timestamp>,
    /// Orders the statuses of one agent.
    pub sequence_id: Option<String>,
    /// The agent's digest of its status.
    pub status_hash: Option<String>,
    /// The work's metadata as JSON.
    pub metadata: Option<String>,
    /// Trace ids as a JSON map of strings.
    pub log_tracing: Option<String>,
    /// All other extensions, ours included.
    pub others: BTreeMap<String, Attribute>,
    /// The payload as JSON; empty if there is none.
    pub data: Bytes,
}

impl Event {
    /// An event with the required attributes.
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

    /// The bundle id; required except in resyncs.
    pub fn resource(&self) -> Result<&str, EventError> {
        match self.resource_id.as_deref() {
            Some(id) if !id.is_empty() => Ok(id),
            _ => Err(EventError::Missing("resourceid")),
        }
    }

    /// The resource version.
    pub fn version(&self) -> Result<i32, EventError> {
        self.resource_version.ok_or(EventError::Missing("resourceversion"))
    }

    /// The work's metadata as an object; empty if the event has none.
    pub fn metadata_object(&self) -> Result<serde_json::Map<String, serde_json::Value>, EventError> {
        match self.metadata.as_deref() {
            None | Some("") => Ok(serde_json::Map::new()),
            Some(text) => {
                serde_json::from_str(text).map_err(|error| EventError::Value("metadata", error.to_string()))
            }
        }
    }

    /// The string value of an extension without a field of its own.
    pub fn other(&self, name: &str) -> Option<&str> {
        match self.others.get(name) {
            Some(Attribute::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The decoded payload.
    pub fn payload<T: serde::de::DeserializeOwned>(&self) -> Result<T, EventError> {
        serde_json::from_slice(&self.data).map_err(|error| EventError::Data(error.to_string()))
    }

    /// Sets the payload.
    pub fn with_payload<T: serde::Serialize>(mut self, payload: &T) -> Result<Self, EventError> {
        let data = serde_json::to_vec(payload).map_err(|error| EventError::Data(error.to_string()))?;
        self.data = data.into();
        Ok(self)
    }

    /// The approximate size on the wire in bytes.
    pub fn size(&self) -> usize {
        // An upper bound for names, lengths and the required attributes.
        let fixed = 512;
        let texts = [&self.metadata, &self.log_tracing, &self.status_hash, &self.sequence_id];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let others = |value: &Attribute| if let Attribute::Text(text) = value { text.len() } else { 32 };
        let others: usize = self.others.iter().map(|(name, value)| name.len() + others(value) + 8).sum();
        fixed + self.id.len() + self.source.len() + self.cluster_name.len() + texts + others + self.data.len()
    }
}

/// Why a message is not an event of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The type has another shape.
    #[error("the event type `{0}` is not <data type>.<spec|status>.<action>")]
    Type(String),
    /// The data type is another.
    #[error("events about `{0}` are not handled here")]
    DataType(String),
    /// A required attribute is missing.
    #[error("the event has no `{0}`")]
    Missing(&'static str),
    /// An attribute has an invalid value.
    #[error("the event's `{0}` cannot be read: {1}")]
    Value(&'static str, String),
    /// The payload does not match the type.
    #[error("the event's data cannot be read: {0}")]
    Data(String),
    /// The CloudEvents version is another.
    #[error("the event is of CloudEvents version `{0}`, not {SPEC_VERSION}")]
    SpecVersion(String),
    /// The message is not a CloudEvent.
    #[error("the message is not a CloudEvent: {0}")]
    NoEvent(&'static str),
}

/// Input text, shortened for messages and logs.
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
    fn type_is_parsed_from_the_right_and_other_data_types_are_rejected() {
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
    fn input_is_shortened_at_a_character_boundary() {
        assert_eq!(shortened(&"ü".repeat(500)).chars().count(), 121);
    }
}
