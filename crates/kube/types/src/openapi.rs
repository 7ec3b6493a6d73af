//! OpenAPI documents, rendered from the types that are served.
//!
//! Descriptions of built-in types come from the `k8s-openapi` crate, those of custom types from their own schema.
//! Everything is rendered on request, deterministically: callers keep what they serve often. Parameters are not
//! described, and the old `/watch/` paths are left out.

mod components;
mod custom;
mod descriptions;
mod paths;
mod protobuf;
mod swagger;

use std::collections::BTreeMap;

use aro_kube_apimachinery::{GroupVersion, ResourceType};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha512};

/// A type together with what only its CustomResourceDefinition knows.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    pub resource: &'a ResourceType,
    /// For custom types.
    pub custom: Option<CustomDescription<'a>>,
}

#[derive(Debug, Clone, Copy)]
pub struct CustomDescription<'a> {
    /// `openAPIV3Schema` of this version. `None`: anything goes.
    pub schema: Option<&'a Value>,
    pub list_kind: &'a str,
}

/// `/openapi/v3`: where each document is, with a hash of what it says.
pub fn v3_index<'a>(types: impl IntoIterator<Item = Described<'a>>) -> Value {
    let mut hashes: BTreeMap<String, Sha512> = BTreeMap::new();
    for of in types {
        let hash = hashes.entry(document_path(&of.resource.group_version())).or_default();
        fingerprint(hash, &of);
    }
    let entry = |(path, hash): (String, Sha512)| {
        let hash = hash.finalize().iter().fold(String::with_capacity(128), |mut text, byte| {
            use std::fmt::Write as _;
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02X}");
            text
        });
        let url = format!("/openapi/v3/{path}?hash={hash}");
        (path, json!({"serverRelativeURL": url}))
    };
    json!({"paths": hashes.into_iter().map(entry).collect::<Map<String, Value>>()})
}

/// `/openapi/v3/api/v1` and `/openapi/v3/apis/<group>/<version>`. `None` when no type is of that version.
pub fn v3_document<'a>(
    version: &GroupVersion,
    types: impl IntoIterator<Item = Described<'a>>,
) -> Option<Value> {
    let own = |of: &Described<'a>| of.resource.group_version() == *version;
    let types: Vec<Described<'a>> = types.into_iter().filter(own).collect();
    let first = types.first()?;
    let title = if first.custom.is_some() { "Kubernetes CRD Swagger" } else { "Kubernetes" };
    let release = if first.custom.is_some() { "v0.1.0" } else { "unversioned" };
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": title, "version": release},
        "paths": paths::of(version, &types),
        "components": components::of(&types),
    }))
}

/// `/openapi/v2`: one Swagger 2.0 document of everything.
pub fn v2_document<'a>(types: impl IntoIterator<Item = Described<'a>>) -> Value {
    let mut versions: BTreeMap<GroupVersion, Vec<Described<'a>>> = BTreeMap::new();
    for of in types {
        versions.entry(of.resource.group_version()).or_default().push(of);
    }
    let all: Vec<Described<'a>> = versions.values().flatten().copied().collect();
    let paths: Map<String, Value> =
        versions.iter().flat_map(|(version, types)| paths::of(version, types)).collect();
    swagger::document(paths, components::schemas(&all))
}

/// The same document in protobuf, which kubectl and client-go ask for.
pub fn v2_protobuf<'a>(types: impl IntoIterator<Item = Described<'a>>) -> Vec<u8> {
    protobuf::document(&v2_document(types))
}

/// `api/v1`, `apis/apps/v1`
fn document_path(version: &GroupVersion) -> String {
    if version.group.is_empty() { format!("api/{version}") } else { format!("apis/{version}") }
}

/// What a type contributes to its document. Built-in schemas change with the program only.
fn fingerprint(hash: &mut Sha512, of: &Described<'_>) {
    let resource = of.resource;
    hash.update(env!("CARGO_PKG_VERSION"));
    for text in [&resource.gvk.kind, &resource.plural, &resource.singular].into_iter().chain(&resource.verbs)
    {
        hash.update(text);
        hash.update([0]);
    }
    hash.update([u8::from(resource.namespaced)]);
    for sub in &resource.subresources {
        hash.update(&sub.name);
        hash.update([0]);
    }
    if let Some(custom) = of.custom {
        hash.update(custom.list_kind);
        hash.update(custom.schema.map(Value::to_string).unwrap_or_default());
    }
}

/// What a member of a built-in definition is, in upstream's words.
pub(crate) fn field_description(definition: &str, field: &str) -> Option<&'static str> {
    descriptions::of_field(definition, field)
}

#[cfg(test)]
mod tests;
