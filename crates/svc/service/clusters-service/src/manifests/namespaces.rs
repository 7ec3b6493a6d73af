//! The namespaces of a cluster, in a work of their own: it is removed last.

use aro_ocm::names;
use serde_json::{Value, json};

use super::work::{Part, work_bundle};
use super::{Bundle, Context};

/// The namespace of the inputs of ingress policies, which all clusters share.
pub(super) const POLICIES: &str = "open-cluster-management-policies";

pub(super) fn bundle(cx: &Context<'_>, generation: u64) -> Bundle {
    let namespace = |name: String| -> Value {
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": name, "labels": cx.labels() },
        })
    };
    let shared = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": POLICIES } });
    let own = [cx.namespace(), names::klusterlet_namespace(cx.id)];
    let mut parts: Vec<Part> =
        own.into_iter().map(|name| Part::owned("namespaces", namespace(name))).collect();
    parts.push(Part::made_once("namespaces", shared));
    // The namespace that clusters share stays when one of them goes.
    let orphan = json!({ "group": "", "resource": "namespaces", "name": POLICIES, "namespace": "" });
    let delete = json!({
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": { "orphaningRules": [orphan] },
    });
    let mut bundle = work_bundle(cx, names::namespaces_work(cx.id), generation, parts, Some(delete));
    bundle.labels.insert(names::label::CONTAINS_NAMESPACES.to_owned(), "true".to_owned());
    bundle
}
