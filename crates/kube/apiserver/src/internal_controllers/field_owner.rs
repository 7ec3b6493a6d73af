//! Field ownership of what the server's own controllers write.

use std::sync::LazyLock;

use aro_kube_apimachinery::apply::{self, Context, Set};
use aro_kube_apimachinery::meta;
use serde_json::Value;

use crate::cluster::{Cluster, rfc3339};

/// The manager's name, as upstream's controllers inside the API server have it.
const MANAGER: &str = "kube-apiserver";

/// Tracks a change of status: writes `metadata.managedFields` of `new`.
pub(super) fn track_status(cluster: &Cluster, live: &Value, new: &mut Value) {
    // Through `/status` only status has an owner.
    static RESET: LazyLock<Set> = LazyLock::new(|| Set::of_names([&["spec"][..], &["metadata"][..]]));
    let types = cluster.types();
    let Some(served) = types.of_kind(meta::api_version(live), meta::kind(live)) else { return };
    let api_version = served.resource.api_version();
    let typed_for = |other: &str| types.in_version(served, other).map(|served| served.typed());
    let context = Context {
        manager: MANAGER,
        api_version: &api_version,
        kind: &served.resource.gvk.kind,
        subresource: "status",
        time: &rfc3339(cluster.now()),
        force: false,
        typed: served.typed(),
        reset: &RESET,
        typed_for: &typed_for,
    };
    apply::update(Some(live), new, &context);
}
