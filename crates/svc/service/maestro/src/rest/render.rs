//! Bundles and consumers as clients see them, rendered from the stored JSON without parsing all of it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::ROOT;
use crate::fault::Fault;
use crate::rows::{Consumer, Moment};

/// The members of a bundle.
pub(super) const BUNDLE_FIELDS: [&str; 14] = [
    "id",
    "kind",
    "href",
    "name",
    "consumer_name",
    "version",
    "created_at",
    "updated_at",
    "deleted_at",
    "metadata",
    "manifests",
    "manifest_configs",
    "delete_option",
    "status",
];

/// The members of a consumer.
pub(super) const CONSUMER_FIELDS: [&str; 7] =
    ["id", "kind", "href", "name", "labels", "created_at", "updated_at"];

/// The parsed part of a stored bundle.
#[derive(Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    consumer_name: Cow<'a, str>,
    version: i32,
    created_at: Moment,
    updated_at: Moment,
    deleted_at: Option<Moment>,
    #[serde(borrow)]
    payload: &'a RawValue,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    #[serde(borrow)]
    manifests: Option<&'a RawValue>,
    #[serde(borrow)]
    manifest_configs: Option<&'a RawValue>,
    #[serde(borrow)]
    delete_option: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct StatusEvent<'a> {
    #[serde(borrow)]
    resourceversion: Option<&'a RawValue>,
    #[serde(borrow)]
    sequenceid: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusData<'a> {
    #[serde(borrow)]
    conditions: Option<&'a RawValue>,
    #[serde(borrow)]
    resource_status: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct BundleView<'a> {
    id: &'a str,
    kind: &'static str,
    href: String,
    name: &'a str,
    consumer_name: &'a str,
    version: i32,
    created_at: Moment,
    updated_at: Moment,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_at: Option<Moment>,
    metadata: Metadata<'a>,
    manifests: &'a RawValue,
    manifest_configs: &'a RawValue,
    delete_option: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<StatusView<'a>>,
}

#[derive(Serialize)]
struct StatusView<'a> {
    #[serde(rename = "ObservedVersion")]
    observed_version: i32,
    #[serde(rename = "SequenceID")]
    sequence_id: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    conditions: Option<&'a RawValue>,
    #[serde(rename = "resourceStatus", skip_serializing_if = "Option::is_none")]
    resource_status: Option<&'a RawValue>,
}

/// The work's metadata, with the row's times instead of the source's.
struct Metadata<'a> {
    given: BTreeMap<Cow<'a, str>, &'a RawValue>,
    created: Moment,
    deleted: Option<Moment>,
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const TIMES: [&str; 2] = ["creationTimestamp", "deletionTimestamp"];
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.given.iter().filter(|(name, _)| !TIMES.contains(&name.as_ref())) {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry(TIMES[0], &self.created.seconds())?;
        if let Some(deleted) = self.deleted {
            map.serialize_entry(TIMES[1], &deleted.seconds())?;
        }
        map.end()
    }
}

/// What replaces a missing list or object.
fn or<'a>(given: Option<&'a RawValue>, otherwise: &'static str) -> &'a RawValue {
    given
        .filter(|given| given.get() != "null")
        .unwrap_or_else(|| serde_json::from_str(otherwise).unwrap_or(RawValue::NULL))
}

/// Events received over MQTT hold numbers as strings.
fn number(raw: Option<&RawValue>) -> i32 {
    raw.and_then(|raw| raw.get().trim_matches('"').parse().ok()).unwrap_or(0)
}

/// Appends a stored bundle in the form of the REST API.
pub(super) fn bundle(body: &str, out: &mut Vec<u8>) -> Result<(), Fault> {
    write(body, out).map_err(|error| Fault::caused("a stored bundle cannot be shown", error))
}

fn write(body: &str, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let stored: Stored<'_> = serde_json::from_str(body)?;
    let payload: Payload<'_> = serde_json::from_str(stored.payload.get())?;
    let data: Data<'_> =
        payload.data.map(|data| serde_json::from_str(data.get())).transpose()?.unwrap_or_default();
    let given = payload.metadata.filter(|metadata| metadata.get() != "null");
    let given = given.map(|metadata| serde_json::from_str(metadata.get())).transpose()?.unwrap_or_default();
    let view = BundleView {
        id: &stored.id,
        kind: "ResourceBundle",
        href: format!("{ROOT}/v1/resource-bundles/{}", stored.id),
        name: &stored.name,
        consumer_name: &stored.consumer_name,
        version: stored.version,
        created_at: stored.created_at,
        updated_at: stored.updated_at,
        deleted_at: stored.deleted_at,
        metadata: Metadata { given, created: stored.created_at, deleted: stored.deleted_at },
        manifests: or(data.manifests, "[]"),
        manifest_configs: or(data.manifest_configs, "[]"),
        delete_option: or(data.delete_option, "{}"),
        status: stored.status.map(status).transpose()?,
    };
    serde_json::to_writer(out, &view)
}

fn status(raw: &RawValue) -> Result<StatusView<'_>, serde_json::Error> {
    let event: StatusEvent<'_> = serde_json::from_str(raw.get())?;
    let data: StatusData<'_> =
        event.data.map(|data| serde_json::from_str(data.get())).transpose()?.unwrap_or_default();
    let there = |given: Option<&'_ RawValue>| given.is_some_and(|given| given.get() != "null");
    Ok(StatusView {
        observed_version: number(event.resourceversion),
        sequence_id: or(event.sequenceid, "\"\""),
        conditions: data.conditions.filter(|_| there(data.conditions)),
        resource_status: data.resource_status.filter(|_| there(data.resource_status)),
    })
}

#[derive(Serialize)]
struct ConsumerView<'a> {
    id: &'a str,
    kind: &'static str,
    href: String,
    name: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<String, String>,
    created_at: Moment,
    updated_at: Moment,
}

/// Appends a consumer in the form of the REST API.
pub(super) fn consumer(consumer: &Consumer, out: &mut Vec<u8>) -> Result<(), Fault> {
    let view = ConsumerView {
        id: &consumer.id,
        kind: "Consumer",
        href: format!("{ROOT}/v1/consumers/{}", consumer.id),
        name: &consumer.name,
        labels: &consumer.labels,
        created_at: consumer.created_at,
        updated_at: consumer.updated_at,
    };
    serde_json::to_writer(out, &view).map_err(|error| Fault::caused("a consumer cannot be shown", error))
}
