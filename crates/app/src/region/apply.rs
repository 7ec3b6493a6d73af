//! Applying manifests.

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::Value;

/// Who applies.
const MANAGER: &str = "aro-region";

/// Applies manifests in order, each to what is there.
pub(super) async fn all(client: &Client, manifests: &[Value]) -> Result<(), kube::Error> {
    for manifest in manifests {
        let text = |path: &str| manifest.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
        let api: Api<DynamicObject> = match text("/metadata/namespace") {
            "" => Api::all_with(client.clone(), &resource),
            namespace => Api::namespaced_with(client.clone(), namespace, &resource),
        };
        api.patch(text("/metadata/name"), &PatchParams::apply(MANAGER).force(), &Patch::Apply(manifest))
            .await?;
    }
    Ok(())
}
