//! Documents as ARM bodies. Pure.

use aro_arm::ResourceId;
use aro_base::{ETag, Timestamp};
use aro_cloud_store::Resource;
use serde_json::{Map, Value, json};

use crate::references;
use crate::spec::{Inline, TypeSpec};

/// A resource as its GET shows it.
pub fn resource(spec: &TypeSpec, stored: &Resource, etag: Option<&ETag>, now: Timestamp) -> Value {
    let Ok(id) = ResourceId::parse(&stored.id) else { return Value::Null };
    let mut body = stored.body.clone();
    let state = provisioning_state(stored, now);
    if let Some(properties) = body.get_mut("properties").and_then(Value::as_object_mut) {
        for inline in spec.inline {
            if let Some(items) = properties.get_mut(inline.member).and_then(Value::as_array_mut) {
                for item in items {
                    complete_item(item, &id, inline, etag, state);
                }
            }
        }
    }
    if shows_state(spec) {
        let properties = body.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            properties.insert("provisioningState".to_owned(), json!(state));
        }
    }
    head(&mut body, &id, spec.full, etag);
    Value::Object(body)
}

/// Assignments and definitions have no provisioning state, nor have credentials.
fn shows_state(spec: &TypeSpec) -> bool {
    spec.is_tracked() || spec.long_running || spec.full.starts_with("Microsoft.Network/dnsZones/")
}

/// A child inside of a document as its own GET shows it.
pub fn inline_item(
    inline: &Inline,
    parent: &ResourceId,
    stored: &Resource,
    name: &str,
    etag: Option<&ETag>,
    now: Timestamp,
) -> Option<Value> {
    let mut items = references::items(&stored.body, inline);
    let mut item = items.find(|item| is_named(item, name))?.clone();
    complete_item(&mut item, parent, inline, etag, provisioning_state(stored, now));
    Some(item)
}

/// Whether a child has a name, in any case.
pub fn is_named(item: &Value, name: &str) -> bool {
    item.get("name").and_then(Value::as_str).is_some_and(|known| known.eq_ignore_ascii_case(name))
}

fn complete_item(item: &mut Value, parent: &ResourceId, inline: &Inline, etag: Option<&ETag>, state: &str) {
    let Some(item) = item.as_object_mut() else { return };
    let name = item.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let id = parent.child(inline.member, &name);
    let properties = item.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert("provisioningState".to_owned(), json!(state));
    }
    head(item, &id, inline.full, etag);
}

/// The members that follow from the id.
fn head(body: &mut Map<String, Value>, id: &ResourceId, full: &str, etag: Option<&ETag>) {
    body.insert("id".to_owned(), json!(id.as_str()));
    body.insert("name".to_owned(), json!(id.name()));
    body.insert("type".to_owned(), json!(full));
    if let Some(etag) = etag {
        body.insert("etag".to_owned(), json!(format!("W/\"{etag}\"")));
    }
}

/// What the clock says about the last operation.
pub fn provisioning_state(stored: &Resource, now: Timestamp) -> &'static str {
    match &stored.operation {
        _ if stored.deleting => "Deleting",
        Some(operation) if !operation.is_settled(now) && operation.creates => "Creating",
        Some(operation) if !operation.is_settled(now) => "Updating",
        _ => "Succeeded",
    }
}

/// A resource as generic lists show it.
pub fn summary(full: &str, stored: &Resource, now: Timestamp, expand: &str) -> Value {
    let Ok(id) = ResourceId::parse(&stored.id) else { return Value::Null };
    let mut body = Map::new();
    for member in ["location", "tags", "kind", "sku", "identity", "zones", "plan", "managedBy"] {
        if let Some(value) = stored.body.get(member) {
            body.insert(member.to_owned(), value.clone());
        }
    }
    body.insert("id".to_owned(), json!(id.as_str()));
    body.insert("name".to_owned(), json!(id.name()));
    body.insert("type".to_owned(), json!(full));
    let expands = |what: &str| expand.split(',').any(|asked| asked.trim().eq_ignore_ascii_case(what));
    if expands("createdTime") {
        body.insert("createdTime".to_owned(), json!(stored.created.to_string()));
    }
    if expands("changedTime") {
        body.insert("changedTime".to_owned(), json!(stored.changed.to_string()));
    }
    if expands("provisioningState") {
        body.insert("provisioningState".to_owned(), json!(provisioning_state(stored, now)));
    }
    Value::Object(body)
}

/// A resource group.
pub fn group(stored: &Resource) -> Value {
    let Ok(id) = ResourceId::parse(&stored.id) else { return Value::Null };
    let mut body = stored.body.clone();
    body.insert("id".to_owned(), json!(id.as_str()));
    body.insert("name".to_owned(), json!(id.resource_group().unwrap_or_default()));
    body.insert("type".to_owned(), json!("Microsoft.Resources/resourceGroups"));
    let state = if stored.deleting { "Deleting" } else { "Succeeded" };
    body.insert("properties".to_owned(), json!({"provisioningState": state}));
    Value::Object(body)
}
