//! Discovery documents, rendered from the types that are served.
//!
//! Groups come in upstream's order: built-in ones as a real server lists them, then custom ones by name. Versions come
//! with the preferred one first.

use aro_machinery::{GroupVersion, ResourceType};
use serde_json::{Value, json};

/// `/api`: `APIVersions`. The address is what clients outside reach the server by (`host:port`).
pub fn api_versions(server_address: &str) -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]})
}

/// `/apis`: `APIGroupList`.
pub fn group_list<'a>(_types: impl IntoIterator<Item = &'a ResourceType>) -> Value {
    Value::Null
}

/// `/apis/<group>`: `APIGroup`. `None` when no type is of that group.
pub fn group<'a>(_name: &str, _types: impl IntoIterator<Item = &'a ResourceType>) -> Option<Value> {
    None
}

/// `/api/v1` and `/apis/<group>/<version>`: `APIResourceList`. `None` when no type is of that version.
pub fn resource_list<'a>(
    _version: &GroupVersion,
    _types: impl IntoIterator<Item = &'a ResourceType>,
) -> Option<Value> {
    None
}

/// Aggregated `/api` (`apidiscovery.k8s.io/v2`, `APIGroupDiscoveryList`): the core group.
pub fn aggregated_core<'a>(_types: impl IntoIterator<Item = &'a ResourceType>) -> Value {
    Value::Null
}

/// Aggregated `/apis`: every other group.
pub fn aggregated_groups<'a>(_types: impl IntoIterator<Item = &'a ResourceType>) -> Value {
    Value::Null
}
