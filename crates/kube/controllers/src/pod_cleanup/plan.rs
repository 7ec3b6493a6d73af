//! Which pods go. Pure.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;

use crate::pods::is_finished;

/// Finished pods that are kept for people to look at.
pub const MOST_FINISHED: usize = 12_500;
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The finished pods above a number: those that were evicted first, then the oldest.
pub fn surplus(pods: Vec<Arc<Pod>>, most: usize) -> Vec<Arc<Pod>> {
    let mut finished: Vec<Arc<Pod>> = pods.into_iter().filter(|pod| is_finished(pod)).collect();
    let count = finished.len().saturating_sub(most);
    if count == 0 {
        return Vec::new();
    }
    finished.sort_by_cached_key(|pod| {
        let evicted = pod.status.as_ref().is_some_and(|status| status.reason.as_deref() == Some("Evicted"));
        (!evicted, pod.metadata.creation_timestamp.as_ref().map(|made| made.0), pod.name_any())
    });
    finished.truncate(count);
    finished
}

/// Whether a node is out of service: it is not ready, and has the taint.
pub fn is_out_of_service(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let marked = taints.into_iter().any(|taint| taint.key == OUT_OF_SERVICE);
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready =
        conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    marked && !ready
}
