//! Certificate signing requests: admission, what is approved by itself, and signing.
//!
//! The built-in signers issue from the cluster's own authority. Requests for other signers are left to the controller that runs
//! them: they write `status.certificate` themselves.

pub mod admission;

use std::sync::Arc;

use aro_base::{SignedDuration, chain};
use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::Status;
use aro_pki::{SigningRequest, Usage, Validity};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::authorize::{Attributes, authorize};
use super::user::User;
use crate::cluster::{Cluster, rfc3339};
use crate::internal_controllers::{SIGNING_REQUESTS, modify};

pub const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
pub const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";

const YEAR: i64 = 365 * 24 * 3600;

fn condition<'a>(csr: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = meta::get(csr, &["status", "conditions"]).and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

/// What is to be done about a request now.
enum Act {
    Nothing,
    Approve(&'static str),
    Sign(Usage),
    Fail(String),
}

/// Approves what needs no human, and signs what is approved.
pub async fn settle(cluster: &Arc<Cluster>, name: &str) -> Result<(), Status> {
    let watch_cache = cluster.store.watch_cache(SIGNING_REQUESTS);
    let Some(stored) = cluster.store.latest(&watch_cache, name) else { return Ok(()) };
    let csr = stored.value();
    let text = |path: &[&str]| meta::get(&csr, path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let pem =
        STANDARD.decode(text(&["spec", "request"])).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(Ok(request)) = pem.map(|pem| SigningRequest::parse(&pem)) else { return Ok(()) };
    match decide(cluster, &csr, &request) {
        Act::Nothing => Ok(()),
        Act::Approve(message) => {
            let now = rfc3339(cluster.now());
            let approved = json!({"type": "Approved", "status": "True", "reason": "AutoApproved", "message": message,
                "lastUpdateTime": now, "lastTransitionTime": now});
            modify(cluster, &watch_cache, name, |live| add_condition(live, "Approved", &approved)).await
        }
        Act::Fail(message) => {
            let now = rfc3339(cluster.now());
            let failed = json!({"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": message,
                "lastUpdateTime": now, "lastTransitionTime": now});
            modify(cluster, &watch_cache, name, |live| add_condition(live, "Failed", &failed)).await
        }
        Act::Sign(usage) => {
            let asked =
                meta::get(&csr, &["spec", "expirationSeconds"]).and_then(Value::as_i64).unwrap_or(YEAR);
            let validity =
                Validity::from_now(cluster.now(), SignedDuration::from_secs(asked.clamp(600, YEAR)));
            let signed = cluster.keys.authority.sign(&request, usage, validity);
            let certificate = signed.map_err(|error| Status::internal(chain(&error)))?;
            modify(cluster, &watch_cache, name, |live| {
                let mut new = live.clone();
                meta::set(&mut new, &["status", "certificate"], json!(STANDARD.encode(&certificate)));
                Some(new)
            })
            .await
        }
    }
}

fn add_condition(live: &Value, kind: &str, wanted: &Value) -> Option<Value> {
    if condition(live, kind).is_some() {
        return None;
    }
    let mut conditions =
        meta::get(live, &["status", "conditions"]).and_then(Value::as_array).cloned().unwrap_or_default();
    conditions.push(wanted.clone());
    let mut new = live.clone();
    meta::set(&mut new, &["status", "conditions"], json!(conditions));
    Some(new)
}

fn decide(cluster: &Arc<Cluster>, csr: &Value, request: &SigningRequest) -> Act {
    let signer = meta::get(csr, &["spec", "signerName"]).and_then(Value::as_str).unwrap_or_default();
    let signed = meta::get(csr, &["status", "certificate"])
        .and_then(Value::as_str)
        .is_some_and(|text| !text.is_empty());
    if signed || condition(csr, "Denied").is_some() || condition(csr, "Failed").is_some() {
        return Act::Nothing;
    }
    let usages = meta::get(csr, &["spec", "usages"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let usages: Vec<&str> = usages.iter().filter_map(Value::as_str).collect();
    let problem = match signer {
        CLIENT => client_problem(&usages),
        KUBELET_CLIENT => kubelet_client_problem(request, &usages),
        KUBELET_SERVING => kubelet_serving_problem(request, &usages),
        // Of another signer.
        _ => return Act::Nothing,
    };
    if condition(csr, "Approved").is_some() {
        return match problem {
            Some(problem) => Act::Fail(problem),
            None if signer == KUBELET_SERVING => Act::Sign(Usage::Server),
            None => Act::Sign(Usage::Client),
        };
    }
    if signer == KUBELET_CLIENT && problem.is_none() {
        return approves_node(cluster, csr, request);
    }
    Act::Nothing
}

/// A node may get its first certificate, and renew its own, if roles say so.
fn approves_node(cluster: &Arc<Cluster>, csr: &Value, request: &SigningRequest) -> Act {
    let text =
        |name: &str| meta::get(csr, &["spec", name]).and_then(Value::as_str).unwrap_or_default().to_owned();
    let groups = meta::get(csr, &["spec", "groups"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let groups = groups.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let user =
        User { name: text("username"), uid: text("uid"), groups, extra: std::collections::BTreeMap::new() };
    let may = |subresource: &str| {
        let asked = Attributes {
            verb: "create",
            group: "certificates.k8s.io",
            version: "v1",
            resource: "certificatesigningrequests",
            subresource,
            ..Attributes::default()
        };
        authorize(cluster, &user, &asked).allowed
    };
    if user.name == request.subject.common_name && may("selfnodeclient") {
        return Act::Approve("Auto approving self kubelet client certificate after SubjectAccessReview.");
    }
    if may("nodeclient") {
        return Act::Approve("Auto approving kubelet client certificate after SubjectAccessReview.");
    }
    Act::Nothing
}

fn client_problem(usages: &[&str]) -> Option<String> {
    let known = ["client auth", "digital signature", "key encipherment"];
    let fine = usages.contains(&"client auth") && usages.iter().all(|usage| known.contains(usage));
    (!fine).then(|| "usages did not match kubernetes.io/kube-apiserver-client requirements".to_owned())
}

fn is_node(request: &SigningRequest) -> bool {
    request.subject.organizations == ["system:nodes"]
        && request.subject.common_name.starts_with("system:node:")
}

fn kubelet_client_problem(request: &SigningRequest, usages: &[&str]) -> Option<String> {
    if !is_node(request) {
        return Some("subject organization is not system:nodes, or subject common name does not begin with system:node:".to_owned());
    }
    if !request.dns_names.is_empty() || !request.addresses.is_empty() || !request.others.is_empty() {
        return Some("subject alternative names are not allowed".to_owned());
    }
    let known = ["client auth", "digital signature", "key encipherment"];
    let fine = usages.contains(&"client auth") && usages.iter().all(|usage| known.contains(usage));
    (!fine)
        .then(|| "usages did not match kubernetes.io/kube-apiserver-client-kubelet requirements".to_owned())
}

fn kubelet_serving_problem(request: &SigningRequest, usages: &[&str]) -> Option<String> {
    if !is_node(request) {
        return Some("subject organization is not system:nodes, or subject common name does not begin with system:node:".to_owned());
    }
    if request.dns_names.is_empty() && request.addresses.is_empty() {
        return Some("at least one DNS or IP subjectAltName is required".to_owned());
    }
    if !request.others.is_empty() {
        return Some("email and URI subject alternative names are not allowed".to_owned());
    }
    let known = ["server auth", "digital signature", "key encipherment"];
    let fine = usages.contains(&"server auth") && usages.iter().all(|usage| known.contains(usage));
    (!fine).then(|| "usages did not match kubernetes.io/kubelet-serving requirements".to_owned())
}
