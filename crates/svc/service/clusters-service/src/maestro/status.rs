//! Statuses of bundles, as the management cluster reports them: feedback inside of feedback.

use std::collections::BTreeMap;

use aro_bundle::{BundleStatus, Event, EventError};
use aro_crds::work::v1::{FeedbackValue, ManifestCondition, ManifestWorkStatus};
use aro_ocm::names::label;
use async_trait::async_trait;
use serde_json::Value;

use crate::manifests::{OBJECT, feedback};

/// A status of a bundle.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// The bundle.
    pub(crate) bundle: String,
    /// The cluster, from the bundle's labels.
    pub(crate) cluster: String,
    /// The object, from the bundle's annotations.
    pub(crate) object: String,
    /// The bundle and everything of it is gone from the management cluster.
    pub(crate) deleted: bool,
    /// The agent's digest of the status.
    pub(crate) hash: String,
    /// Orders the statuses of a bundle.
    pub(crate) sequence: String,
    /// What is reported of the object in the bundle.
    pub(crate) outer: Values,
    /// What is reported of the objects inside of it, by kind and name.
    pub(crate) inner: Vec<ObjectStatus>,
    /// Objects that are not applied, with the cause.
    pub(crate) problems: Vec<String>,
}

/// What is reported of one object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ObjectStatus {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) values: Values,
}

/// Reported values, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Values(BTreeMap<String, Value>);

impl Values {
    fn of(values: &[FeedbackValue]) -> Self {
        let value = |value: &FeedbackValue| {
            let field = &value.field_value;
            let content = field.string.clone().map(Value::String);
            let content = content.or_else(|| field.integer.map(Value::from));
            let content = content.or_else(|| field.boolean.map(Value::from));
            let raw = || field.json_raw.as_deref().and_then(|text| serde_json::from_str(text).ok());
            Some((value.name.clone(), content.or_else(raw)?))
        };
        Self(values.iter().filter_map(value).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        let value = self.get(name)?;
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    }

    /// The generation of the record that the object carries.
    pub(crate) fn record_generation(&self) -> Option<u64> {
        let value = self.get(feedback::RECORD_GENERATION)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    }
}

impl Received {
    /// Reads a status event.
    pub(crate) fn read(event: &Event) -> Result<Self, EventError> {
        let status: BundleStatus = event.payload()?;
        let metadata = event.metadata_object()?;
        let text = |group: &str, key: &str| {
            metadata
                .get(group)
                .and_then(|all| all.get(key))
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let mut received = Self {
            bundle: event.resource()?.to_owned(),
            cluster: text("labels", label::ID),
            object: text("annotations", OBJECT),
            deleted: status.is_deleted(),
            hash: event.status_hash.clone().unwrap_or_default(),
            sequence: event.sequence_id.clone().unwrap_or_default(),
            outer: Values::default(),
            inner: Vec::new(),
            problems: Vec::new(),
        };
        let Some(outer) = status.resource_status.first() else { return Ok(received) };
        received.problems.extend(problem(outer));
        received.outer = Values::of(&outer.status_feedback.values);
        let Some(inner) = received.outer.get(feedback::STATUS) else { return Ok(received) };
        if outer.resource_meta.kind != "ManifestWork" {
            return Ok(received);
        }
        let inner: ManifestWorkStatus =
            serde_json::from_value(inner.clone()).map_err(|error| EventError::Data(error.to_string()))?;
        for object in &inner.resource_status.manifests {
            received.problems.extend(problem(object));
            let meta = &object.resource_meta;
            received.inner.push(ObjectStatus {
                kind: meta.kind.clone(),
                namespace: meta.namespace.clone(),
                name: meta.name.clone(),
                values: Values::of(&object.status_feedback.values),
            });
        }
        Ok(received)
    }

    /// What is reported of the first object of a kind.
    pub(crate) fn object_of(&self, kind: &str) -> Option<&ObjectStatus> {
        self.inner.iter().find(|object| object.kind == kind)
    }
}

/// An object that the agent could not apply.
fn problem(object: &ManifestCondition) -> Option<String> {
    let failed = object.conditions.iter().find(|one| one.type_ == "Applied" && one.status == "False")?;
    let meta = &object.resource_meta;
    let place = match meta.namespace.as_str() {
        "" => meta.name.clone(),
        namespace => format!("{namespace}/{}", meta.name),
    };
    Some(format!("{} {place}: {}", meta.kind, failed.message))
}

/// Takes statuses.
#[async_trait]
pub(crate) trait StatusHandler: Send + Sync + 'static {
    /// Stores what a status says. An error keeps the status: it is requested again.
    async fn handle(&self, received: &Received) -> Result<(), aro_runtime::Fault>;
}
