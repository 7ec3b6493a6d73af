//! What is asked of a pod's node: logs, and connections to ports.
//!
//! The flow: find the pod and its node, and ask the node if its kubelet lives in this process ([`Cluster::nodes`]).
//! Logs are streamed as they come. Forwarding ports takes over the client's connection: `portforward` agrees on a
//! protocol, [`tunnel`] (SPDY, bare or inside a WebSocket) or [`channels`] (a WebSocket with numbered channels) carries
//! bytes, and [`forward`] is one connection to one port.
//!
//! Invariants: everything of one client's connection runs in that connection's task, so that nothing is left when it
//! ends; nothing is buffered: a slow reader slows the writer down.
//!
//! [`Cluster::nodes`]: crate::cluster::Cluster::nodes

mod channels;
mod container;
mod forward;
mod logs;
mod portforward;
mod protocol;
mod tunnel;

use std::sync::Arc;

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::{Details, Status};
use aro_kube_node_api::{NodeApi, NodeError, PodIdentity};
use serde_json::Value;

pub use logs::logs;
pub use portforward::portforward;

use crate::rest::Call;

/// What a call is about.
fn pod_of(call: &Call) -> Result<Value, Status> {
    call.watch_cache.get(&call.key()).map(|stored| stored.value()).ok_or_else(|| call.not_found())
}

fn node_name(pod: &Value) -> &str {
    meta::get(pod, &["spec", "nodeName"]).and_then(Value::as_str).unwrap_or_default()
}

fn identity(pod: &Value) -> PodIdentity {
    PodIdentity {
        namespace: meta::namespace(pod).to_owned(),
        name: meta::name(pod).to_owned(),
        uid: meta::uid(pod).to_owned(),
    }
}

/// How to ask a pod's node. `what` cannot be done without it.
fn node_of(call: &Call, pod: &Value, what: &str) -> Result<Arc<dyn NodeApi>, Status> {
    let node = node_name(pod);
    call.cluster.nodes.get(node).ok_or_else(|| {
        Status::unavailable(format!(
            "node {node:?} of pod {:?} has no kubelet in this process, so {what}; run that node's kubelet in this \
             process, or ask on the node itself",
            meta::name(pod)
        ))
    })
}

/// A node's refusal, as clients see it.
fn refused(error: NodeError, pod: &PodIdentity) -> Status {
    match error {
        NodeError::BadRequest(why) => Status::bad_request(why),
        NodeError::NotFound(why) => Status::new(404, "NotFound", why).with_details(Details {
            name: pod.name.clone(),
            kind: "pods/log".to_owned(),
            ..Details::default()
        }),
        NodeError::Unavailable(why) => Status::unavailable(why),
    }
}

/// What is not possible, and what to do instead.
pub fn not_possible(resource: &str, subresource: &str) -> Status {
    let instead = match (resource, subresource) {
        ("pods", "exec") => {
            "containers are not OS processes in this server, so this is not supported; see their logs with `kubectl logs`, and reach \
             their ports with `kubectl port-forward`"
        }
        ("pods", "attach") => {
            "there is no terminal to attach to; follow what a pod writes with `kubectl logs --follow`"
        }
        ("pods" | "services", "proxy") => {
            "this server does not relay requests; reach the port with `kubectl port-forward` and send them there"
        }
        ("nodes", "proxy") => {
            "this server does not relay requests to kubelets; use `kubectl logs` and `kubectl port-forward`"
        }
        _ => "it is not implemented yet",
    };
    let message = format!("this server does not serve {resource}/{subresource}: {instead}");
    Status::new(501, "NotImplemented", message)
}
