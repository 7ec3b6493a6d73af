//! Attributes as strings: shared by MQTT and structured JSON.

use aro_base::Timestamp;

use super::{Attribute, Event, EventError, EventType, SPEC_VERSION, shortened};

/// Names of attributes and extensions that have fields of their own.
pub(super) const ID: &str = "id";
pub(super) const SOURCE: &str = "source";
pub(super) const SPECVERSION: &str = "specversion";
pub(super) const TYPE: &str = "type";
pub(super) const TIME: &str = "time";
pub(super) const CLUSTER_NAME: &str = "clustername";
pub(super) const ORIGINAL_SOURCE: &str = "originalsource";
pub(super) const RESOURCE_ID: &str = "resourceid";
pub(super) const RESOURCE_VERSION: &str = "resourceversion";
pub(super) const DELETION_TIMESTAMP: &str = "deletiontimestamp";
pub(super) const SEQUENCE_ID: &str = "sequenceid";
pub(super) const STATUS_HASH: &str = "statushash";
pub(super) const METADATA: &str = "metadata";
pub(super) const LOG_TRACING: &str = "logtracing";

/// The names of the data in an event's JSON. An extension with such a name would appear twice.
pub(super) const DATA: &str = "data";
pub(super) const DATA_BASE64: &str = "data_base64";
pub(super) const DATA_CONTENT_TYPE: &str = "datacontenttype";

/// Whether CloudEvents allows an extension of this name.
fn is_extension(name: &str) -> bool {
    ![DATA, DATA_CONTENT_TYPE].contains(&name)
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Builds an event from attributes in any order.
#[derive(Default)]
pub(super) struct Builder {
    id: Option<String>,
    source: Option<String>,
    spec_version: Option<String>,
    kind: Option<EventType>,
    rest: Option<Event>,
}

impl Builder {
    /// Adds one attribute.
    pub(super) fn put(&mut self, name: &str, value: Attribute) -> Result<(), EventError> {
        match name {
            ID => self.id = Some(text(ID, value)?),
            SOURCE => self.source = Some(text(SOURCE, value)?),
            SPECVERSION => self.spec_version = Some(text(SPECVERSION, value)?),
            TYPE => self.kind = Some(EventType::parse(&text(TYPE, value)?)?),
            _ => {
                let event = self.event();
                match name {
                    TIME => event.time = Some(time(TIME, value)?),
                    CLUSTER_NAME => event.cluster_name = text(CLUSTER_NAME, value)?,
                    ORIGINAL_SOURCE => event.original_source = Some(text(ORIGINAL_SOURCE, value)?),
                    RESOURCE_ID => event.resource_id = Some(text(RESOURCE_ID, value)?),
                    RESOURCE_VERSION => event.resource_version = Some(number(RESOURCE_VERSION, value)?),
                    DELETION_TIMESTAMP => event.deletion_timestamp = Some(time(DELETION_TIMESTAMP, value)?),
                    SEQUENCE_ID => event.sequence_id = Some(text(SEQUENCE_ID, value)?),
                    STATUS_HASH => event.status_hash = Some(text(STATUS_HASH, value)?),
                    METADATA => event.metadata = Some(text(METADATA, value)?),
                    LOG_TRACING => event.log_tracing = Some(text(LOG_TRACING, value)?),
                    // A name CloudEvents does not allow is ignored, like every property without the prefix.
                    name if !is_extension(name) => {}
                    _ => {
                        event.others.insert(name.to_owned(), value);
                    }
                }
            }
        }
        Ok(())
    }

    fn event(&mut self) -> &mut Event {
        const PLACEHOLDER: EventType = EventType::spec(super::Action::Create);
        self.rest.get_or_insert_with(|| Event::new("", "", PLACEHOLDER, ""))
    }

    /// The event, if all required attributes are present.
    pub(super) fn finish(mut self, data: bytes::Bytes) -> Result<Event, EventError> {
        let filled = |value: Option<String>, name| match value {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(EventError::Missing(name)),
        };
        let version = filled(self.spec_version.take(), SPECVERSION)?;
        if version != SPEC_VERSION {
            return Err(EventError::SpecVersion(shortened(&version)));
        }
        let kind = self.kind.ok_or(EventError::Missing(TYPE))?;
        let (id, source) = (filled(self.id.take(), ID)?, filled(self.source.take(), SOURCE)?);
        let mut event = self.rest.take().unwrap_or_else(|| Event::new("", "", kind, ""));
        event.id = id;
        event.source = source;
        event.kind = kind;
        // Some writers end a document with a line break. It is removed before storing, publishing and hashing.
        event.data = data.slice_ref(data.trim_ascii());
        Ok(event)
    }
}

/// Every attribute except the four that each encoding places itself, in a fixed order.
pub(super) fn attributes(event: &Event) -> impl Iterator<Item = (&str, Attribute)> {
    let text = |value: &Option<String>| value.clone().map(Attribute::Text);
    let known = [
        (TIME, event.time.map(Attribute::Time)),
        (CLUSTER_NAME, Some(Attribute::Text(event.cluster_name.clone()))),
        (ORIGINAL_SOURCE, text(&event.original_source)),
        (RESOURCE_ID, text(&event.resource_id)),
        (RESOURCE_VERSION, event.resource_version.map(Attribute::Integer)),
        (DELETION_TIMESTAMP, event.deletion_timestamp.map(Attribute::Time)),
        (SEQUENCE_ID, text(&event.sequence_id)),
        (STATUS_HASH, text(&event.status_hash)),
        (METADATA, text(&event.metadata)),
        (LOG_TRACING, text(&event.log_tracing)),
    ];
    let known = known.into_iter().filter_map(|(name, value)| Some((name, value?)));
    known.chain(event.others.iter().map(|(name, value)| (name.as_str(), value.clone())))
}

/// The value as CloudEvents writes it in a string.
pub(super) fn canonical(value: &Attribute) -> String {
    match value {
        Attribute::Boolean(value) => value.to_string(),
        Attribute::Integer(value) => value.to_string(),
        Attribute::Text(value) => value.clone(),
        Attribute::Time(value) => value.to_string(),
    }
}

fn text(name: &'static str, value: Attribute) -> Result<String, EventError> {
    match value {
        Attribute::Text(text) => Ok(text),
        _ => Err(EventError::Value(name, "it is not a string".to_owned())),
    }
}

fn time(name: &'static str, value: Attribute) -> Result<Timestamp, EventError> {
    match value {
        Attribute::Time(time) => Ok(time),
        Attribute::Text(text) => {
            text.parse().map_err(|_| EventError::Value(name, format!("`{}` is not a time", shortened(&text))))
        }
        _ => Err(EventError::Value(name, "it is not a time".to_owned())),
    }
}

/// Some clients send numbers as strings, even as decimal fractions.
fn number(name: &'static str, value: Attribute) -> Result<i32, EventError> {
    match value {
        Attribute::Integer(number) => Ok(number),
        Attribute::Text(text) => {
            let wrong = || EventError::Value(name, format!("`{}` is not a number", shortened(&text)));
            if let Ok(number) = text.parse::<i32>() {
                return Ok(number);
            }
            let number = text.parse::<f64>().map_err(|_| wrong())?.trunc();
            let fits = number >= f64::from(i32::MIN) && number <= f64::from(i32::MAX);
            if fits { Ok(number as i32) } else { Err(wrong()) }
        }
        _ => Err(EventError::Value(name, "it is not a number".to_owned())),
    }
}
