//! Tokens a node asks for: only for pods on it, and only for whom those pods need one.

use aro_kube_apimachinery::status::Status;
use aro_kube_apimachinery::{GroupResource, meta};
use serde_json::Value;

use super::{refuse, text};
use crate::identity::authorize::{Attributes, authorize};
use crate::identity::nodes::node_of;
use crate::rest::Call;

/// Looks at a request for a token.
pub fn admit(call: &Call, review: &Value) -> Result<(), Status> {
    let Some(node) = node_of(&call.user) else { return Ok(()) };
    let reference = |name: &str| text(review, &["spec", "boundObjectRef", name]);
    let pod_name = reference("name");
    if (reference("apiVersion"), reference("kind")) != ("v1", "Pod") || pod_name.is_empty() {
        return refuse(call, &call.name, "node requested token not bound to a pod");
    }
    let uid = reference("uid");
    if uid.is_empty() {
        return refuse(call, &call.name, "node requested token with a pod binding without a uid");
    }
    let found = call.cluster.store.watch_cache("pods").get(&format!("{}/{pod_name}", call.namespace));
    let Some(pod) = found.map(|stored| stored.value()) else {
        return Err(Status::not_found(&GroupResource::new("", "pods"), pod_name));
    };
    if meta::uid(&pod) != uid {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return refuse(call, &call.name, why);
    }
    if text(&pod, &["spec", "nodeName"]) != node {
        return refuse(call, &call.name, "node requested token bound to a pod scheduled on a different node");
    }
    let audiences =
        meta::get(review, &["spec", "audiences"]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let audience = match audiences {
        [] => "",
        [one] => one.as_str().unwrap_or_default(),
        _ => return refuse(call, &call.name, "node may only request 0 or 1 audiences"),
    };
    if pod_wants(call, &pod, audience) || may_ask_for(call, audience) {
        return Ok(());
    }
    let why = format!(
        "audience {audience:?} not found in pod spec volume, {} is not authorized to request tokens for this audience",
        call.user.name
    );
    refuse(call, &call.name, why)
}

fn may_ask_for(call: &Call, audience: &str) -> bool {
    let asked = Attributes {
        verb: "request-serviceaccounts-token-audience",
        version: "v1",
        resource: audience,
        namespace: &call.namespace,
        name: &call.name,
        ..Attributes::default()
    };
    authorize(&call.cluster, &call.user, &asked).allowed
}

/// Whether a pod's volumes need a token for an audience: projected ones, or ones of drivers that ask for it.
fn pod_wants(call: &Call, pod: &Value, audience: &str) -> bool {
    let object =
        |watch_cache: &str, key: &str| Some(call.cluster.store.watch_cache(watch_cache).get(key)?.value());
    let driver_of_claim = |claim: &str| {
        let claim = object("persistentvolumeclaims", &format!("{}/{claim}", call.namespace))?;
        let volume = object("persistentvolumes", text(&claim, &["spec", "volumeName"]))?;
        Some(text(&volume, &["spec", "csi", "driver"]).to_owned())
    };
    let list = |value: &Value, path: &[&str]| {
        meta::get(value, path).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    list(pod, &["spec", "volumes"]).iter().any(|volume| {
        let projected = list(volume, &["projected", "sources"]).iter().any(|source| {
            source.get("serviceAccountToken").is_some_and(|token| text(token, &["audience"]) == audience)
        });
        let claim = match text(volume, &["persistentVolumeClaim", "claimName"]) {
            "" if volume.get("ephemeral").is_some() => {
                format!("{}-{}", meta::name(pod), text(volume, &["name"]))
            }
            claim => claim.to_owned(),
        };
        let driver = match text(volume, &["csi", "driver"]) {
            "" => driver_of_claim(&claim).unwrap_or_default(),
            driver => driver.to_owned(),
        };
        let driver = object("csidrivers.storage.k8s.io", &driver);
        let asks = driver.is_some_and(|driver| {
            list(&driver, &["spec", "tokenRequests"])
                .iter()
                .any(|request| text(request, &["audience"]) == audience)
        });
        projected || asks
    })
}
