//! Rules of built-in types: what is wrong with an object, in upstream's words.
//!
//! Objects have their defaults and went through [`crate::strategy`]. Rules people run into are here; rules for corners
//! of types that no client here writes are not, and their values pass.

pub mod format;
mod metadata;
mod network;
mod path;
mod plain;
mod pods;
mod policy;
mod selectors;
mod services;
mod storage;
mod workloads;

use aro_kube_apimachinery::{FieldError, ResourceType};
use serde_json::Value;

pub use metadata::NameRule;
use path::Found;

/// How objects of a built-in resource may be called.
pub fn name_rule(resource: &ResourceType) -> NameRule {
    match (&*resource.gvk.group, &*resource.gvk.kind) {
        ("", "Namespace" | "Service") | ("apps", "StatefulSet") => NameRule::Label,
        (
            "rbac.authorization.k8s.io"
            | "apiregistration.k8s.io"
            | "authentication.k8s.io"
            | "authorization.k8s.io",
            _,
        ) => NameRule::PathSegment,
        // Checked against their address or range.
        ("networking.k8s.io", "IPAddress") => NameRule::Any,
        _ => NameRule::Subdomain,
    }
}

/// What is wrong with the metadata of a new object of any type, custom ones too.
pub fn metadata_create(object: &Value, namespaced: bool, rule: NameRule) -> Vec<FieldError> {
    let mut found = Found::default();
    metadata::create(&mut found, object, namespaced, rule, false);
    found.0
}

/// What is wrong with a change of metadata of any type, custom ones too. The resource version is the server's matter.
pub fn metadata_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut found = Found::default();
    metadata::update(&mut found, new, old, false);
    found.0
}

/// What is wrong with a new object. Runs after defaults and [`crate::strategy::prepare_create`].
pub fn create(resource: &ResourceType, object: &Value) -> Vec<FieldError> {
    let mut found = Found::default();
    metadata::create(&mut found, object, resource.namespaced, name_rule(resource), is_strict(resource));
    check(&mut found, resource, object);
    if resource.gvk.kind == "Pod" && resource.gvk.group.is_empty() {
        pods::create_only(&mut found, object);
    }
    if resource.gvk.kind == "Event" && resource.gvk.group == "events.k8s.io" {
        plain::new_event(&mut found, object);
    }
    found.0
}

/// What is wrong with a change. `subresource` is empty for the object itself.
pub fn update(resource: &ResourceType, subresource: &str, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut found = Found::default();
    metadata::update(&mut found, new, old, is_strict(resource));
    if subresource == "status" {
        if (&*resource.gvk.group, &*resource.gvk.kind) == ("", "Namespace") {
            plain::namespace_phase(&mut found, new);
        }
        return found.0;
    }
    if (&*resource.gvk.group, &*resource.gvk.kind) == ("apps", "DaemonSet") {
        // The one kind that says what must stay before it says what is wrong.
        stays_in_spec(&mut found, new, old, &["selector"]);
    }
    check(&mut found, resource, new);
    check_update(&mut found, resource, subresource, new, old);
    found.0
}

/// Types of the main server want finalizers to be standard or qualified; those of the extension servers do not.
fn is_strict(resource: &ResourceType) -> bool {
    !matches!(&*resource.gvk.group, "apiextensions.k8s.io" | "apiregistration.k8s.io")
}

/// Rules for an object as it stands.
fn check(found: &mut Found, resource: &ResourceType, object: &Value) {
    match (&*resource.gvk.group, &*resource.gvk.kind) {
        ("", "Pod") => pods::pod(found, object),
        ("", "PodTemplate") => pods::pod_template(found, object),
        ("", "Service") => services::service(found, object),
        ("", "Endpoints") => services::endpoints(found, object),
        ("discovery.k8s.io", "EndpointSlice") => services::endpoint_slice(found, object),
        ("", "ConfigMap") => plain::config_map(found, object),
        ("", "Secret") => plain::secret(found, object),
        ("", "Namespace") => plain::namespace(found, object),
        ("", "Node") => plain::node(found, object),
        ("", "ResourceQuota") => plain::resource_quota(found, object),
        ("", "LimitRange") => plain::limit_range(found, object),
        ("", "Event") => plain::event(found, object),
        ("", "PersistentVolume") => storage::volume(found, object),
        ("", "PersistentVolumeClaim") => storage::claim(found, object),
        ("storage.k8s.io", "StorageClass") => storage::class(found, object),
        ("", "ReplicationController") => workloads::replication_controller(found, object),
        ("apps", "Deployment") => workloads::deployment(found, object),
        ("apps", "ReplicaSet") => workloads::replica_set(found, object),
        ("apps", "DaemonSet") => workloads::daemon_set(found, object),
        ("apps", "StatefulSet") => workloads::stateful_set(found, object),
        ("apps", "ControllerRevision") => workloads::controller_revision(found, object),
        ("batch", "Job") => workloads::job(found, object),
        ("batch", "CronJob") => workloads::cron_job(found, object),
        ("autoscaling", "HorizontalPodAutoscaler") => workloads::autoscaler(found, object),
        ("rbac.authorization.k8s.io", _) => policy::rbac(found, &resource.gvk.kind, object),
        ("policy", "PodDisruptionBudget") => policy::disruption_budget(found, object),
        ("certificates.k8s.io", "CertificateSigningRequest") => policy::signing_request(found, object),
        ("coordination.k8s.io", "Lease") => policy::lease(found, object),
        ("scheduling.k8s.io", "PriorityClass") => policy::priority_class(found, object),
        ("node.k8s.io", "RuntimeClass") => policy::runtime_class(found, object),
        ("apiregistration.k8s.io", "APIService") => policy::api_service(found, object),
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => {
            policy::webhooks(found, object);
        }
        ("networking.k8s.io", "Ingress") => network::ingress(found, object),
        ("networking.k8s.io", "IngressClass") => network::ingress_class(found, object),
        ("networking.k8s.io", "NetworkPolicy") => network::network_policy(found, object),
        _ => {}
    }
}

/// Rules for a change: what must stay.
fn check_update(found: &mut Found, resource: &ResourceType, subresource: &str, new: &Value, old: &Value) {
    match (&*resource.gvk.group, &*resource.gvk.kind) {
        ("", "Pod") if subresource.is_empty() => pods::update(found, new, old),
        ("", "Service") => services::update(found, new, old),
        ("discovery.k8s.io", "EndpointSlice") => {
            // What did not change is not looked at again, even if the type of addresses did.
            if new["endpoints"] == old["endpoints"] {
                found.0.retain(|error| !error.field.starts_with("endpoints["));
            }
            stays(found, new, old, &["addressType"]);
        }
        ("", "ConfigMap") => plain::config_map_update(found, new, old),
        ("", "Secret") => plain::secret_update(found, new, old),
        ("", "ResourceQuota") => stays_in_spec(found, new, old, &["scopes"]),
        ("", "PersistentVolume") => storage::volume_update(found, new, old),
        ("", "PersistentVolumeClaim") => storage::claim_update(found, new, old),
        ("storage.k8s.io", "StorageClass") => {
            stays(found, new, old, &["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"]);
        }
        ("storage.k8s.io", "VolumeAttributesClass") => stays(found, new, old, &["driverName", "parameters"]),
        ("apps", "Deployment" | "ReplicaSet") => stays_in_spec(found, new, old, &["selector"]),
        ("apps", "StatefulSet") => workloads::stateful_set_update(found, new, old),
        ("apps", "ControllerRevision") => stays(found, new, old, &["data"]),
        ("batch", "Job") => workloads::job_update(found, new, old),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            policy::role_ref_update(found, new, old);
        }
        ("scheduling.k8s.io", "PriorityClass") => policy::priority_class_update(found, new, old),
        ("node.k8s.io", "RuntimeClass") => stays(found, new, old, &["handler"]),
        ("networking.k8s.io", "IngressClass") => stays_in_spec(found, new, old, &["controller"]),
        _ => {}
    }
}

fn stays(found: &mut Found, new: &Value, old: &Value, members: &[&str]) {
    for key in members {
        found.immutable(&path::Path::new(key), path::member(new, key), path::member(old, key));
    }
}

fn stays_in_spec(found: &mut Found, new: &Value, old: &Value, members: &[&str]) {
    let spec = path::Path::new("spec");
    for key in members {
        found.immutable(&spec.child(key), path::member(&new["spec"], key), path::member(&old["spec"], key));
    }
}

#[cfg(test)]
mod tests;
