//! The ManagedCluster, by which the multicluster engine adopts a hosted cluster.

use aro_ocm::{ClusterId, names};
use serde_json::json;

use super::work::plain_bundle;
use super::{Bundle, Context};

/// Names the object among those of the cluster: its own name is that of the cluster's main work. No node pool has a name of this
/// length.
pub(super) fn object(id: &ClusterId) -> String {
    format!("{id}-00-managed-cluster")
}

pub(super) fn bundle(cx: &Context<'_>, generation: u64) -> Bundle {
    let mut labels = cx.labels();
    for (key, value) in [
        ("name", cx.id.as_str()),
        ("cloud", "Azure"),
        ("vendor", "OpenShift"),
        ("cluster.open-cluster-management.io/clusterset", names::MANAGED_CLUSTER_SET),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    let mut annotations = cx.annotations(generation);
    for (key, value) in [
        ("import.open-cluster-management.io/klusterlet-deploy-mode", "Hosted"),
        ("import.open-cluster-management.io/hosting-cluster-name", names::LOCAL_CLUSTER),
        ("open-cluster-management/created-via", "other"),
        ("addon.open-cluster-management.io/enable-hosted-mode-addons", "true"),
    ] {
        annotations.insert(key.to_owned(), value.to_owned());
    }
    let manifest = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": { "name": cx.id, "labels": labels, "annotations": annotations },
        "spec": { "hubAcceptsClient": true, "leaseDurationSeconds": 60 },
    });
    plain_bundle(cx, object(cx.id), "managedclusters", manifest)
}
