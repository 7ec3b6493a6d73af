//! Discovery documents, rendered from the types that are served.
//!
//! Groups come in upstream's order: built-in ones as a real server lists them, then custom ones by name. Versions come
//! with the preferred one first. Versions of one group may be given in any order.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use aro_kube_apimachinery::{GroupVersion, ResourceType, Subresource};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::registry::builtin;

/// `/api`: `APIVersions`. The address is what clients outside reach the server by (`host:port`).
pub fn api_versions(server_address: &str) -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]})
}

/// `/apis`: `APIGroupList`.
pub fn group_list<'a>(types: impl IntoIterator<Item = &'a ResourceType>) -> Value {
    let groups = collect(types);
    let groups = groups.iter().filter(|(key, _)| !key.name().is_empty());
    let groups: Vec<Value> = groups.map(|(key, versions)| group_members(key.name(), versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`: `APIGroup`. `None` when no type is of that group.
pub fn group<'a>(name: &str, types: impl IntoIterator<Item = &'a ResourceType>) -> Option<Value> {
    let groups = collect(types.into_iter().filter(|of| of.gvk.group == name));
    let (_, versions) = groups.first_key_value()?;
    let mut group = group_members(name, versions);
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Some(group)
}

/// `/api/v1` and `/apis/<group>/<version>`: `APIResourceList`. `None` when no type is of that version.
pub fn resource_list<'a>(
    version: &GroupVersion,
    types: impl IntoIterator<Item = &'a ResourceType>,
) -> Option<Value> {
    let own = |of: &&ResourceType| of.gvk.group == version.group && of.gvk.version == version.version;
    let mut types: Vec<&ResourceType> = types.into_iter().filter(own).collect();
    types.sort_by(|a, b| a.plural.cmp(&b.plural));
    let mut resources = Vec::new();
    for of in &types {
        resources.push(plain_resource(of));
        resources.extend(subresources(of).into_iter().map(|sub| plain_subresource(of, sub)));
    }
    if resources.is_empty() {
        return None;
    }
    let mut list =
        json!({"kind": "APIResourceList", "groupVersion": version.to_string(), "resources": resources});
    // The core group predates this member, and still does not have it.
    if !version.group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    Some(list)
}

/// Aggregated `/api` (`apidiscovery.k8s.io/v2`, `APIGroupDiscoveryList`): the core group.
pub fn aggregated_core<'a>(types: impl IntoIterator<Item = &'a ResourceType>) -> Value {
    aggregated(types.into_iter().filter(|of| of.gvk.group.is_empty()))
}

/// Aggregated `/apis`: every other group.
pub fn aggregated_groups<'a>(types: impl IntoIterator<Item = &'a ResourceType>) -> Value {
    aggregated(types.into_iter().filter(|of| !of.gvk.group.is_empty()))
}

/// The hash that tells clients when the stored version of a kind changes.
pub fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    STANDARD.encode(&digest[..8])
}

/// Newest first, as Kubernetes understands versions: `v2`, `v1`, `v1beta2`, `v1beta1`, `v1alpha1`, then anything else
/// by name.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    version_key(a).cmp(&version_key(b)).then_with(|| a.cmp(b))
}

/// Smaller is newer.
fn version_key(version: &str) -> (u8, Reverse<u8>, Reverse<u64>, Reverse<u64>) {
    let parsed = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (major, rest) = rest.split_at(digits);
        let major: u64 = major.parse().ok()?;
        let (stability, minor) = match rest {
            "" => (2, ""),
            _ => rest
                .strip_prefix("beta")
                .map(|minor| (1, minor))
                .or_else(|| rest.strip_prefix("alpha").map(|minor| (0, minor)))?,
        };
        let minor = if stability == 2 { 0 } else { minor.parse().ok()? };
        Some((0, Reverse(stability), Reverse(major), Reverse(minor)))
    };
    parsed().unwrap_or((1, Reverse(0), Reverse(0), Reverse(0)))
}

/// Sorts built-in groups by their place, custom ones after them by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey(usize, String);

impl GroupKey {
    fn of(name: &str) -> Self {
        let place = builtin().groups().iter().position(|group| group.name == name);
        Self(place.unwrap_or(usize::MAX), name.to_owned())
    }

    fn name(&self) -> &str {
        &self.1
    }
}

/// The versions of one group, preferred first, each with its types by name.
type Versions<'a> = Vec<(&'a str, Vec<&'a ResourceType>)>;

fn collect<'a>(types: impl IntoIterator<Item = &'a ResourceType>) -> BTreeMap<GroupKey, Versions<'a>> {
    let mut by_version: BTreeMap<(&str, &str), Vec<&ResourceType>> = BTreeMap::new();
    for of in types {
        by_version.entry((&of.gvk.group, &of.gvk.version)).or_default().push(of);
    }
    let mut groups: BTreeMap<GroupKey, Versions<'a>> = BTreeMap::new();
    for ((group, version), mut types) in by_version {
        types.sort_by(|a, b| a.plural.cmp(&b.plural));
        groups.entry(GroupKey::of(group)).or_default().push((version, types));
    }
    for versions in groups.values_mut() {
        versions.sort_by(|a, b| compare_versions(a.0, b.0));
    }
    groups
}

fn group_members(name: &str, versions: &Versions<'_>) -> Value {
    let version = |version: &str| json!({"groupVersion": GroupVersion::new(name, version).to_string(), "version": version});
    let versions: Vec<Value> = versions.iter().map(|(of, _)| version(of)).collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

/// The order upstream lists the verbs of custom types in; those of built-in ones are sorted.
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

fn verbs(of: &ResourceType) -> Vec<&str> {
    let mut verbs: Vec<&str> = of.verbs.iter().map(String::as_str).collect();
    if of.custom {
        verbs.sort_by_key(|verb| CUSTOM_VERBS.iter().position(|known| known == verb));
    }
    verbs
}

/// `status` before `scale` for custom types; those of built-in ones are sorted.
fn subresources(of: &ResourceType) -> Vec<&Subresource> {
    let mut all: Vec<&Subresource> = of.subresources.iter().collect();
    if of.custom {
        all.sort_by_key(|sub| sub.name != "status");
    }
    all
}

fn plain_resource(of: &ResourceType) -> Value {
    let mut entry = json!({"name": of.plural, "singularName": of.singular, "namespaced": of.namespaced,
        "kind": of.gvk.kind, "verbs": verbs(of)});
    add_names(&mut entry, of);
    if !of.storage_version_hash.is_empty() {
        entry["storageVersionHash"] = json!(of.storage_version_hash);
    }
    entry
}

fn plain_subresource(of: &ResourceType, sub: &Subresource) -> Value {
    let mut entry = json!({"name": format!("{}/{}", of.plural, sub.name), "singularName": "",
        "namespaced": of.namespaced, "kind": sub.gvk.kind, "verbs": sub.verbs});
    if sub.gvk.group_version() != of.group_version() {
        entry["group"] = json!(sub.gvk.group);
        entry["version"] = json!(sub.gvk.version);
    }
    entry
}

fn add_names(entry: &mut Value, of: &ResourceType) {
    if !of.short_names.is_empty() {
        entry["shortNames"] = json!(of.short_names);
    }
    if !of.categories.is_empty() {
        entry["categories"] = json!(of.categories);
    }
}

fn aggregated<'a>(types: impl IntoIterator<Item = &'a ResourceType>) -> Value {
    let group = |(key, versions): (GroupKey, Versions<'a>)| {
        let metadata = if key.name().is_empty() { json!({}) } else { json!({"name": key.name()}) };
        let versions: Vec<Value> = versions
            .iter()
            .map(|(version, types)| {
                let resources: Vec<Value> = types.iter().map(|of| aggregated_resource(of)).collect();
                json!({"version": version, "resources": resources, "freshness": "Current"})
            })
            .collect();
        json!({"metadata": metadata, "versions": versions})
    };
    let items: Vec<Value> = collect(types).into_iter().map(group).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(of: &ResourceType) -> Value {
    let scope = if of.namespaced { "Namespaced" } else { "Cluster" };
    // Built-in kinds of the version at hand leave group and version out; custom kinds spell them.
    let response_kind = |kind: &aro_kube_apimachinery::GroupVersionKind| {
        if of.custom || kind.group_version() != of.group_version() {
            json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
        } else {
            json!({"group": "", "version": "", "kind": kind.kind})
        }
    };
    let mut entry = json!({"resource": of.plural, "responseKind": response_kind(&of.gvk), "scope": scope,
        "singularResource": of.singular, "verbs": verbs(of)});
    add_names(&mut entry, of);
    if !of.subresources.is_empty() {
        let subresource = |sub: &Subresource| json!({"subresource": sub.name, "responseKind": response_kind(&sub.gvk), "verbs": sub.verbs});
        entry["subresources"] = subresources(of).into_iter().map(subresource).collect();
    }
    entry
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn types<'a>() -> impl Iterator<Item = &'a ResourceType> {
        builtin().resources().iter().map(Arc::as_ref)
    }

    fn recorded(file: &str) -> Option<Value> {
        let text = std::fs::read_to_string(aro_prerequisites::specs("kube")?.join(file)).ok()?;
        Some(serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn aggregated_documents_equal_a_real_servers() {
        // Recordings are not part of the repository.
        for (file, own) in [
            ("discovery-api.json", aggregated_core(types())),
            ("discovery-apis.json", aggregated_groups(types())),
        ] {
            if let Some(recorded) = recorded(file) {
                assert_eq!(own, recorded, "{file}");
            }
        }
    }

    #[test]
    fn custom_groups_follow_built_in_ones_by_name() {
        let mut custom = types().next().unwrap().clone();
        custom.custom = true;
        custom.gvk.group = "zoo.example.com".into();
        custom.gvk.version = "v1beta1".into();
        let mut stable = custom.clone();
        stable.gvk.version = "v1".into();
        let mut other = custom.clone();
        other.gvk.group = "acme.example.com".into();
        let list = group_list([&custom, &stable, &other].into_iter().chain(types()));
        let groups = list["groups"].as_array().unwrap();
        let names: Vec<&str> = groups.iter().rev().take(2).map(|of| of["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["zoo.example.com", "acme.example.com"]);
        assert_eq!(groups.last().unwrap()["preferredVersion"]["version"], "v1");
        assert_eq!(groups[0]["name"], "apiregistration.k8s.io");
    }

    #[test]
    fn versions_are_ordered_newest_first() {
        let mut versions = ["foo1", "v1alpha1", "v1", "v1beta2", "v10", "v1beta10", "v2", "bar", "v2alpha1"];
        versions.sort_by(|a, b| compare_versions(a, b));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v1beta10", "v1beta2", "v2alpha1", "v1alpha1", "bar", "foo1"]
        );
    }

    #[test]
    fn plain_lists_name_subresources_after_their_resource() {
        let list = resource_list(&GroupVersion::new("", "v1"), types()).unwrap();
        assert!(list.get("apiVersion").is_none());
        let names: Vec<&str> =
            list["resources"].as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap()).collect();
        let at = names.iter().position(|name| *name == "namespaces").unwrap();
        assert_eq!(names[at + 1], "namespaces/finalize");
        assert!(resource_list(&GroupVersion::new("apps", "v9"), types()).is_none());
    }

    #[test]
    fn hashes_are_upstreams() {
        assert_eq!(storage_version_hash("", "v1", "ConfigMap"), "qFsyl6wFWjQ=");
        assert_eq!(storage_version_hash("apps", "v1", "DaemonSet"), "dd7pWHUlMKQ=");
    }
}
