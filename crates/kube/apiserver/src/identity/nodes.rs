//! What nodes may do: `system:node:<name>` of the group `system:nodes`.
//!
//! A node may read what the pods on it need, write about itself and about those pods, and nothing of other nodes. Two
//! parts decide: `decide` before the request is read (upstream's node authorizer), and `restriction` when it is known
//! what is to be written (upstream's admission plugin of that name). Roles may allow a node more, as they may everybody.

mod bound;
mod references;
pub mod restriction;

use std::sync::{Arc, LazyLock};

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::selector::FieldSelector;
use aro_kube_types::registry::builtin;
use serde_json::Value;

pub use bound::BoundPods;
use references::{Kind, Reference};

use super::authorize::Attributes;
use super::rules::Rule;
use super::user::User;
use crate::cluster::Cluster;

/// The node a user is.
pub fn node_of(user: &User) -> Option<&str> {
    user.name.strip_prefix("system:node:").filter(|_| user.is_in("system:nodes"))
}

/// What all nodes may do alike.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let role = builtin().rbac().iter().find(|role| {
        role.get("kind").and_then(Value::as_str) == Some("ClusterRole") && meta::name(role) == "system:node"
    });
    let rules = role.and_then(|role| role.get("rules")).cloned().unwrap_or_default();
    serde_json::from_value(rules).unwrap_or_default()
});

/// Allows, or returns the reason for the refusal; the reason may be empty.
pub(super) fn decide(cluster: &Arc<Cluster>, node: &str, asked: &Attributes<'_>) -> Result<(), String> {
    if node.is_empty() {
        return Err("unknown node for user \"system:node:\"".to_owned());
    }
    let Attributes { verb, subresource, .. } = *asked;
    if asked.path.is_empty() {
        match (asked.group, asked.resource) {
            ("", "secrets") => return read(cluster, node, Kind::Secret, asked),
            ("", "configmaps") => return read(cluster, node, Kind::ConfigMap, asked),
            ("", "persistentvolumeclaims") if subresource == "status" => {
                if !matches!(verb, "update" | "patch") {
                    return no("can only get/update/patch this type");
                }
                return related(cluster, node, Kind::Claim, asked);
            }
            ("", "persistentvolumeclaims") => return get(cluster, node, Kind::Claim, asked),
            ("", "persistentvolumes") => return get(cluster, node, Kind::Volume, asked),
            ("resource.k8s.io", "resourceclaims") => return get(cluster, node, Kind::ResourceClaim, asked),
            ("storage.k8s.io", "volumeattachments") => return get(cluster, node, Kind::Attachment, asked),
            ("", "serviceaccounts") => return account(cluster, node, asked),
            ("coordination.k8s.io", "leases") => return lease(node, asked),
            ("storage.k8s.io", "csinodes") => return csi_node(node, asked),
            ("resource.k8s.io", "resourceslices") => return slice(cluster, node, asked),
            ("", "nodes") => return own_node(node, asked),
            ("", "pods") => return pod(cluster, node, asked),
            _ => {}
        }
    }
    if RULES.iter().any(|rule| rule.allows(asked)) { Ok(()) } else { no("") }
}

fn no(why: &str) -> Result<(), String> {
    Err(why.to_owned())
}

/// Whether one of the node's pods needs the object.
fn related(cluster: &Arc<Cluster>, node: &str, kind: Kind, asked: &Attributes<'_>) -> Result<(), String> {
    if asked.name.is_empty() {
        return no("No Object name found");
    }
    let reference = Reference::new(kind, asked.namespace, asked.name);
    if cluster.bound_pods.refers(cluster, node, &reference) {
        return Ok(());
    }
    Err(format!("no relationship found between node '{node}' and this object"))
}

fn get(cluster: &Arc<Cluster>, node: &str, kind: Kind, asked: &Attributes<'_>) -> Result<(), String> {
    if asked.verb != "get" {
        return no("can only get individual resources of this type");
    }
    if !asked.subresource.is_empty() {
        return no("cannot get subresource");
    }
    related(cluster, node, kind, asked)
}

fn read(cluster: &Arc<Cluster>, node: &str, kind: Kind, asked: &Attributes<'_>) -> Result<(), String> {
    if !matches!(asked.verb, "get" | "list" | "watch") {
        return no("can only read resources of this type");
    }
    if !asked.subresource.is_empty() {
        return no("cannot read subresource");
    }
    if asked.namespace.is_empty() {
        return no("can only read namespaced object of this type");
    }
    related(cluster, node, kind, asked)
}

fn account(cluster: &Arc<Cluster>, node: &str, asked: &Attributes<'_>) -> Result<(), String> {
    if asked.verb == "get" && asked.subresource.is_empty() {
        return read(cluster, node, Kind::Account, asked);
    }
    if asked.verb != "create" || asked.name.is_empty() {
        return no("can only create tokens for individual service accounts");
    }
    if asked.subresource != "token" {
        return no("can only create token subresource of serviceaccount");
    }
    related(cluster, node, Kind::Account, asked)
}

const OWN: [&str; 5] = ["get", "create", "update", "patch", "delete"];

fn lease(node: &str, asked: &Attributes<'_>) -> Result<(), String> {
    if !OWN.contains(&asked.verb) {
        return no("can only get, create, update, patch, or delete a node lease");
    }
    if asked.namespace != "kube-node-lease" {
        return no("can only access leases in the \"kube-node-lease\" system namespace");
    }
    // Of one that is to be created the name is not known yet.
    if asked.verb != "create" && asked.name != node {
        return no("can only access node lease with the same name as the requesting node");
    }
    Ok(())
}

fn csi_node(node: &str, asked: &Attributes<'_>) -> Result<(), String> {
    if !OWN.contains(&asked.verb) {
        return no("can only get, create, update, patch, or delete a CSINode");
    }
    if !asked.subresource.is_empty() {
        return no("cannot authorize CSINode subresources");
    }
    if asked.verb != "create" && asked.name != node {
        return no("can only access CSINode with the same name as the requesting node");
    }
    Ok(())
}

fn slice(cluster: &Arc<Cluster>, node: &str, asked: &Attributes<'_>) -> Result<(), String> {
    if !asked.subresource.is_empty() {
        return no("cannot authorize ResourceSlice subresources");
    }
    match asked.verb {
        "create" => Ok(()),
        "get" | "update" | "patch" | "delete" => related(cluster, node, Kind::Slice, asked),
        "watch" | "list" | "deletecollection" if selects_node(asked, node) => Ok(()),
        "watch" | "list" | "deletecollection" => {
            no("can only list/watch/deletecollection resourceslices with nodeName field selector")
        }
        _ => no(
            "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
        ),
    }
}

fn own_node(node: &str, asked: &Attributes<'_>) -> Result<(), String> {
    match (asked.subresource, asked.verb) {
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
        ("", "get" | "list" | "watch") => match asked.name {
            name if name == node => Ok(()),
            "" => Err(format!("node '{node}' cannot read all nodes, only its own Node object")),
            other => Err(format!("node '{node}' cannot read '{other}', only its own Node object")),
        },
        _ => no(""),
    }
}

fn pod(cluster: &Arc<Cluster>, node: &str, asked: &Attributes<'_>) -> Result<(), String> {
    match (asked.subresource, asked.verb) {
        ("", "get") => related(cluster, node, Kind::Pod, asked),
        ("", "list" | "watch") if selects_node(asked, node) => Ok(()),
        ("", "list" | "watch") if !asked.name.is_empty() => related(cluster, node, Kind::Pod, asked),
        ("", "list" | "watch") => no("can only list/watch pods with spec.nodeName field selector"),
        ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => Ok(()),
        _ => no(""),
    }
}

/// Whether only what is on the node is asked for.
fn selects_node(asked: &Attributes<'_>, node: &str) -> bool {
    let Ok(selector) = FieldSelector::parse(asked.fields) else { return false };
    selector.requirements().any(|requirement| requirement == ("spec.nodeName", true, node))
}
