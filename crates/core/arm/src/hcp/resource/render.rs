//! The steps of an answer that all resources share.
//!
//! Answers are made for every read, so they are made in one pass: typed parts become JSON, members the version does
//! not know are taken out. Objects keep their keys sorted, as `serde_json`'s maps do.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Identity, ServiceProperties, Status, Tags};
use crate::hcp::members::Projection;
use crate::hcp::version::ApiVersion;
use crate::{ResourceId, SystemData};

/// The members around `properties` of a resource that has no place, tags or identity.
pub fn proxy(id: &ResourceId, resource_type: &str, system_data: &SystemData) -> Map<String, Value> {
    let mut answer = Map::new();
    answer.insert("id".to_owned(), Value::from(id.as_str()));
    answer.insert("name".to_owned(), Value::from(id.name()));
    insert(&mut answer, "systemData", system_data);
    answer.insert("type".to_owned(), Value::from(resource_type));
    answer
}

/// The members around `properties` of a resource that has them.
pub fn tracked(
    id: &ResourceId,
    resource_type: &str,
    location: &str,
    tags: &Tags,
    system_data: &SystemData,
    identity: Option<&Identity>,
) -> Map<String, Value> {
    let mut answer = proxy(id, resource_type, system_data);
    answer.insert("location".to_owned(), Value::from(location));
    if !tags.is_empty() {
        insert(&mut answer, "tags", tags);
    }
    if let Some(identity) = identity {
        insert(&mut answer, "identity", identity);
    }
    answer
}

/// `properties`: what the caller set, the state, and the status where there is one.
pub fn properties<T: Serialize>(
    customer: &T,
    service: &ServiceProperties,
    status: &Status,
) -> Map<String, Value> {
    let mut properties = match serde_json::to_value(customer) {
        Ok(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    properties.insert("provisioningState".to_owned(), Value::from(service.provisioning_state.as_str()));
    if !status.is_empty() {
        insert(&mut properties, "status", status);
    }
    properties
}

/// Puts a member the service wrote into an object among those of the caller.
pub fn show(properties: &mut Map<String, Value>, object: &str, name: &str, value: &str) {
    let parent = properties.entry(object).or_insert_with(|| Value::Object(Map::new()));
    if let Some(parent) = parent.as_object_mut() {
        parent.insert(name.to_owned(), Value::from(value));
    }
}

/// What the version shows of it. A status of which nothing is left is left out.
pub fn finish(projection: &Projection, version: ApiVersion, answer: Map<String, Value>) -> Value {
    let mut answer = Value::Object(answer);
    projection.apply(version, &mut answer);
    if let Some(properties) = answer.get_mut("properties").and_then(Value::as_object_mut)
        && properties.get("status").and_then(Value::as_object).is_some_and(Map::is_empty)
    {
        properties.remove("status");
    }
    answer
}

fn insert<T: Serialize>(answer: &mut Map<String, Value>, name: &str, part: &T) {
    if let Ok(value) = serde_json::to_value(part) {
        answer.insert(name.to_owned(), value);
    }
}
