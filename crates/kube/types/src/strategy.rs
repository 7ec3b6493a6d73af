//! What a write may change: upstream's "prepare for create" and "prepare for update" of built-in types.
//!
//! Most kinds follow from what discovery says: with a `status` subresource, status is written there and nowhere else.
//! The rest is a list of exceptions.

mod kinds;
mod pods;

use std::collections::HashMap;
use std::sync::LazyLock;

use aro_kube_apimachinery::{GroupVersionKind, ResourceType, meta, meta::Object};
use serde_json::{Map, Value};

use crate::defaults;
use crate::registry::builtin;

/// What a change of makes a new generation. Kinds not listed have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    Spec,
    SpecOrAnnotations,
    Member(&'static str),
    AllButMetadata,
    /// Starts at 1 and stays.
    Nothing,
}

fn counts(gvk: &GroupVersionKind) -> Option<Counts> {
    Some(match (&*gvk.group, &*gvk.kind) {
        ("apps", "Deployment") => Counts::SpecOrAnnotations,
        ("apps", "DaemonSet" | "ReplicaSet" | "StatefulSet")
        | ("batch", "Job" | "CronJob")
        | ("", "ReplicationController" | "Pod")
        | ("networking.k8s.io", "Ingress" | "IngressClass" | "NetworkPolicy")
        | ("policy", "PodDisruptionBudget")
        | ("apiextensions.k8s.io", "CustomResourceDefinition")
        | (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicy"
            | "ValidatingAdmissionPolicyBinding"
            | "MutatingAdmissionPolicy"
            | "MutatingAdmissionPolicyBinding",
        )
        | ("flowcontrol.apiserver.k8s.io", _)
        | ("resource.k8s.io", "ResourceSlice" | "DeviceClass") => Counts::Spec,
        ("", "PodTemplate") => Counts::Member("template"),
        ("admissionregistration.k8s.io", _) => Counts::Member("webhooks"),
        ("discovery.k8s.io", "EndpointSlice") => Counts::AllButMetadata,
        ("scheduling.k8s.io", "PriorityClass") => Counts::Nothing,
        _ => return None,
    })
}

/// Kinds whose status upstream lets clients set on creation.
fn status_is_free(gvk: &GroupVersionKind) -> bool {
    matches!((&*gvk.group, &*gvk.kind), ("", "Node"))
}

/// The status a new object of each kind shows.
static INITIAL_STATUS: LazyLock<HashMap<GroupVersionKind, Value>> = LazyLock::new(|| {
    let with_status = builtin().resources().iter().filter(|of| of.subresource("status").is_some());
    let status = |of: &ResourceType| {
        let mut empty = Value::Object(Map::new());
        defaults::apply(&of.gvk, &mut empty);
        meta::remove(&mut empty, &["status"])
    };
    with_status.filter_map(|of| Some((of.gvk.clone(), status(of)?))).collect()
});

/// Whether an update may come without a resource version.
pub fn allows_unconditional_update(resource: &ResourceType) -> bool {
    if resource.custom {
        return false;
    }
    let gvk = &resource.gvk;
    !matches!(
        (&*gvk.group, &*gvk.kind),
        ("node.k8s.io", "RuntimeClass")
            | ("policy", "PodDisruptionBudget")
            | ("storage.k8s.io", "CSIDriver" | "CSIStorageCapacity" | "VolumeAttachment" | "CSINode")
            | (
                "coordination.k8s.io"
                    | "admissionregistration.k8s.io"
                    | "apiextensions.k8s.io"
                    | "apiregistration.k8s.io",
                _
            )
    )
}

/// Whether an update of an object that does not exist makes it.
pub fn allows_create_on_update(resource: &ResourceType) -> bool {
    let gvk = &resource.gvk;
    !resource.custom
        && matches!(
            (&*gvk.group, &*gvk.kind),
            ("node.k8s.io", "RuntimeClass")
                | ("rbac.authorization.k8s.io", _)
                | ("coordination.k8s.io", "Lease" | "LeaseCandidate")
                | ("", "LimitRange" | "Event" | "Service" | "Endpoints")
                | ("events.k8s.io", "Event")
        )
}

/// Drops what a client may not set on creation (status, …) and sets the first generation. Runs after defaults, and
/// after the server gave the object its name and uid. Custom types are left alone.
pub fn prepare_create(resource: &ResourceType, object: &mut Value) {
    let Value::Object(members) = object else { return };
    if resource.custom {
        return;
    }
    let gvk = &resource.gvk;
    let generation = counts(gvk).map(|_| 1.into());
    set_generation(members, generation);
    if resource.subresource("status").is_some() && !status_is_free(gvk) {
        match INITIAL_STATUS.get(gvk) {
            Some(status) => members.insert("status".to_owned(), status.clone()),
            None => members.remove("status"),
        };
    }
    kinds::prepare_create(gvk, members);
}

/// Puts back what this path may not change, and counts the generation up when the desired state changed. `subresource`
/// is empty for the object itself. Both objects have their defaults. Custom types are left alone.
pub fn prepare_update(resource: &ResourceType, subresource: &str, new: &mut Value, old: &Value) {
    let (Value::Object(new), Value::Object(old)) = (new, old) else { return };
    if resource.custom {
        return;
    }
    let gvk = &resource.gvk;
    let generation = member(old, "metadata").and_then(|metadata| metadata.get("generation")).cloned();
    set_generation(new, generation);
    match subresource {
        "" if resource.subresource("status").is_some() => {
            put_back(new, old, "status");
        }
        "status" => only_status(gvk, new, old),
        _ => {}
    }
    kinds::prepare_update(gvk, subresource, new, old);
    // Status has no say in the generation; the other paths may change the desired state.
    if subresource != "status" && changed(gvk, new, old) {
        let next = member(old, "metadata").and_then(|of| of.get("generation")).and_then(Value::as_i64);
        set_generation(new, Some((next.unwrap_or_default() + 1).into()));
    }
}

fn changed(gvk: &GroupVersionKind, new: &Object, old: &Object) -> bool {
    let metadata =
        |object: &Object, key: &str| member(object, "metadata").and_then(|of| of.get(key)).cloned();
    match counts(gvk) {
        None | Some(Counts::Nothing) => false,
        Some(Counts::Spec) => new.get("spec") != old.get("spec"),
        Some(Counts::SpecOrAnnotations) => {
            new.get("spec") != old.get("spec") || metadata(new, "annotations") != metadata(old, "annotations")
        }
        Some(Counts::Member(key)) => new.get(key) != old.get(key),
        Some(Counts::AllButMetadata) => {
            let rest = |object: &Object| {
                let rest = object.iter().filter(|(key, _)| *key != "metadata");
                rest.map(|(key, value)| (key.clone(), value.clone())).collect::<Vec<_>>()
            };
            rest(new) != rest(old) || metadata(new, "labels") != metadata(old, "labels")
        }
    }
}

fn only_status(gvk: &GroupVersionKind, new: &mut Object, old: &Object) {
    let kept = |key: &str| matches!(key, "status" | "metadata" | "apiVersion" | "kind");
    new.retain(|key, _| kept(key));
    for (key, value) in old.iter().filter(|(key, _)| !kept(key)) {
        new.insert(key.clone(), value.clone());
    }
    let reset: &[&str] = match (&*gvk.group, &*gvk.kind) {
        ("apps", "Deployment") => &["labels"],
        ("", "Pod") => &["ownerReferences", "deletionTimestamp"],
        ("flowcontrol.apiserver.k8s.io" | "apiregistration.k8s.io" | "resource.k8s.io", _)
        | ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy")
        | ("networking.k8s.io", "ServiceCIDR")
        | ("storage.k8s.io", "VolumeAttachment") => {
            &["labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"]
        }
        _ => &[],
    };
    let before = member(old, "metadata");
    let Some(Value::Object(metadata)) = new.get_mut("metadata") else { return };
    for key in reset {
        match before.and_then(|before| before.get(*key)) {
            Some(value) => metadata.insert((*key).to_owned(), value.clone()),
            None => metadata.remove(*key),
        };
    }
}

fn set_generation(object: &mut Object, generation: Option<Value>) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    match generation {
        Some(generation) => metadata.insert("generation".to_owned(), generation),
        None => metadata.remove("generation"),
    };
}

fn member<'a>(object: &'a Object, key: &str) -> Option<&'a Object> {
    object.get(key).and_then(Value::as_object)
}

/// Makes a member what it was.
fn put_back(new: &mut Object, old: &Object, key: &str) {
    match old.get(key) {
        Some(value) => new.insert(key.to_owned(), value.clone()),
        None => new.remove(key),
    };
}

#[cfg(test)]
mod tests;
