//! What a node may write: about itself and about the pods on it, and not what would bring it more pods or more secrets.
//!
//! Texts are upstream's (its admission plugin `NodeRestriction`).

mod mirror;
mod own_node;
pub mod token;

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::Status;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{node_of, references};
use crate::identity::signing;
use crate::rest::Call;
use crate::rest::admission::Operation;

fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    meta::get(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// Refuses a write about `name`.
fn refuse(call: &Call, name: &str, why: impl std::fmt::Display) -> Result<(), Status> {
    Err(Status::forbidden(&call.resource_name(), name, why))
}

/// Looks at an object that is about to be written.
pub fn admit(call: &Call, operation: Operation, object: &Value, old: Option<&Value>) -> Result<(), Status> {
    let Some(node) = node_of(&call.user) else { return Ok(()) };
    let name = if call.name.is_empty() { meta::name(object) } else { &call.name };
    if node.is_empty() {
        return refuse(call, name, format!("could not determine node from user {:?}", call.user.name));
    }
    let resource = &call.served.resource;
    let create = operation == Operation::Create;
    match (resource.gvk.group.as_str(), resource.plural.as_str(), call.subresource.as_str()) {
        ("", "pods", "") if create => mirror::admit(call, node, object),
        ("", "pods", "") => refuse(
            call,
            name,
            format!("unexpected operation \"UPDATE\", node {node:?} can only create and delete mirror pods"),
        ),
        ("", "pods", "status") => refused(call, name, pod_status(node, object, old.unwrap_or(&Value::Null))),
        ("", "pods", other) => refuse(
            call,
            name,
            format!("unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"),
        ),
        ("", "nodes", _) => refused(call, name, own_node::check(node, name, object, old)),
        ("", "persistentvolumeclaims", "status") => {
            refused(call, name, claim_status(node, object, old.unwrap_or(&Value::Null)))
        }
        ("", "persistentvolumeclaims", _) => refuse(call, name, "may only update PVC status"),
        ("coordination.k8s.io", "leases", _) => {
            if call.namespace != "kube-node-lease" {
                return refuse(
                    call,
                    name,
                    "can only access leases in the \"kube-node-lease\" system namespace",
                );
            }
            if name != node {
                return refuse(
                    call,
                    name,
                    "can only access node lease with the same name as the requesting node",
                );
            }
            Ok(())
        }
        ("storage.k8s.io", "csinodes", _) if name != node => {
            refuse(call, name, "can only access CSINode with the same name as the requesting node")
        }
        ("resource.k8s.io", "resourceslices", _) if create && text(object, &["spec", "nodeName"]) != node => {
            refuse(call, name, "can only create ResourceSlice with the same NodeName as the requesting node")
        }
        ("certificates.k8s.io", "certificatesigningrequests", "") if create => {
            refused(call, name, signing_request(node, object))
        }
        _ => Ok(()),
    }
}

fn refused(call: &Call, name: &str, decided: Result<(), String>) -> Result<(), Status> {
    decided.or_else(|why| refuse(call, name, why))
}

/// Looks at what is about to be deleted.
pub fn admit_delete(call: &Call) -> Result<(), Status> {
    let Some(node) = node_of(&call.user) else { return Ok(()) };
    let resource = &call.served.resource;
    match (resource.gvk.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => on_node(call, node, &format!("node {node:?} can only delete pods")),
        ("", "nodes") | ("coordination.k8s.io", "leases") | ("storage.k8s.io", "csinodes")
            if call.name != node =>
        {
            refuse(call, &call.name, format!("node {node:?} is not allowed to modify node {:?}", call.name))
        }
        _ => Ok(()),
    }
}

/// Looks at a pod that is about to be evicted.
pub fn admit_eviction(call: &Call) -> Result<(), Status> {
    node_of(&call.user)
        .map_or(Ok(()), |node| on_node(call, node, &format!("node {node} can only evict pods")))
}

fn on_node(call: &Call, node: &str, what: &str) -> Result<(), Status> {
    let Some(pod) = call.latest(&call.key()) else { return Err(call.not_found()) };
    if text(&pod.value(), &["spec", "nodeName"]) == node {
        return Ok(());
    }
    refuse(call, &call.name, format!("{what} with spec.nodeName set to itself"))
}

fn pod_status(node: &str, new: &Value, old: &Value) -> Result<(), String> {
    if text(old, &["spec", "nodeName"]) != node {
        return Err(format!(
            "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
        ));
    }
    let same = |path: &[&str]| {
        let of = |pod| {
            meta::get(pod, path)
                .filter(|value| !value.is_null() && **value != json!({}) && **value != json!([]))
        };
        of(new) == of(old)
    };
    if !same(&["metadata", "labels"]) {
        return Err(format!("node {node:?} cannot update labels through pod status"));
    }
    if !same(&["status", "resourceClaimStatuses"]) {
        return Err(format!("node {node:?} cannot update resource claim statues"));
    }
    if !same(&["status", "extendedResourceClaimStatus"]) {
        return Err(format!("node {node:?} cannot update extended resource claim status"));
    }
    Ok(())
}

fn claim_status(node: &str, new: &Value, old: &Value) -> Result<(), String> {
    let rest = |claim: &Value| {
        let mut rest = claim.clone();
        for path in [
            ["metadata", "resourceVersion"],
            ["metadata", "managedFields"],
            ["status", "capacity"],
            ["status", "conditions"],
            ["status", "allocatedResourceStatuses"],
            ["status", "allocatedResources"],
        ] {
            meta::remove(&mut rest, &path);
        }
        rest
    };
    if rest(new) == rest(old) {
        return Ok(());
    }
    Err(format!(
        "node {node:?} is not allowed to update fields other than status.quantity and status.conditions"
    ))
}

fn signing_request(node: &str, request: &Value) -> Result<(), String> {
    if ![signing::KUBELET_CLIENT, signing::KUBELET_SERVING].contains(&text(request, &["spec", "signerName"]))
    {
        return Ok(());
    }
    let pem =
        STANDARD.decode(text(request, &["spec", "request"])).ok().and_then(|pem| String::from_utf8(pem).ok());
    let Some(parsed) = pem.and_then(|pem| aro_pki::SigningRequest::parse(&pem).ok()) else {
        return Err("unable to parse csr: PEM block type must be CERTIFICATE REQUEST".to_owned());
    };
    let wanted = format!("system:node:{node}");
    if parsed.subject.common_name == wanted {
        return Ok(());
    }
    Err(format!("can only create a node CSR with CN={wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_claim_only_the_status_about_its_size_may_change() {
        let claim = |capacity: &str, phase: &str| json!({"metadata": {"resourceVersion": capacity}, "status": {"capacity": {"storage": capacity}, "phase": phase}});
        assert!(claim_status("n", &claim("2", "Bound"), &claim("1", "Bound")).is_ok());
        assert!(claim_status("n", &claim("2", "Lost"), &claim("1", "Bound")).is_err());
    }
}
