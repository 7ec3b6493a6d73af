//! Converts ManifestWorks to the engine's works, and back.

use std::fmt::Write as _;
use std::sync::Arc;

use aro_crds::work::v1::{ManifestWork, ManifestWorkStatus};
use aro_work_engine::Work;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Keeps a ManifestWork until everything of it is deleted.
pub(crate) const FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

/// The engine's work for a ManifestWork, with its last reported status.
pub(crate) fn work_of(object: &ManifestWork) -> Work {
    let spec = &object.spec;
    Work {
        name: object.name_any(),
        generation: generation(object),
        labels: object.labels().clone(),
        manifests: Arc::new(spec.workload.manifests.iter().map(|manifest| manifest.0.clone()).collect()),
        configs: spec.manifest_configs.clone(),
        delete_option: spec.delete_option.clone(),
        executor: spec.executor.clone(),
        prior: object.status.clone(),
    }
}

pub(crate) fn generation(object: &ManifestWork) -> i64 {
    object.metadata.generation.unwrap_or_default()
}

pub(crate) fn is_leaving(object: &ManifestWork) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

pub(crate) fn has_finalizer(object: &ManifestWork) -> bool {
    object.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}

/// A patch that sets or removes our finalizer, for this version of the object only.
pub(crate) fn finalizer_patch(object: &ManifestWork, on: bool) -> Value {
    let mut finalizers: Vec<&str> =
        object.finalizers().iter().map(String::as_str).filter(|finalizer| *finalizer != FINALIZER).collect();
    if on {
        finalizers.push(FINALIZER);
    }
    json!({"metadata": {
        "uid": object.uid(), "resourceVersion": object.resource_version(), "finalizers": finalizers,
    }})
}

/// A patch of the whole status, for this object only.
pub(crate) fn status_patch(object: &ManifestWork, status: &ManifestWorkStatus) -> Value {
    // Empty lists are included: a merge patch keeps what it leaves out.
    json!({
        "metadata": {"uid": object.uid()},
        "status": {
            "conditions": status.conditions,
            "resourceStatus": {"manifests": status.resource_status.manifests},
        },
    })
}

/// The name of a hub in records: hex SHA-256 of its address, or of its configured name.
pub(crate) fn hub_hash(hub: &str) -> String {
    Sha256::digest(hub).iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> ManifestWork {
        serde_json::from_value(json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"name": "w", "namespace": "local-cluster", "uid": "u", "resourceVersion": "7", "generation": 3,
                "labels": {"a": "b"}, "finalizers": ["theirs"]},
            "spec": {
                "workload": {"manifests": [{"kind": "ConfigMap"}]},
                "deleteOption": {"propagationPolicy": "Orphan"},
                "manifestConfigs": [{"resourceIdentifier": {"resource": "configmaps", "name": "m"}}],
                "executor": {"subject": {"type": "ServiceAccount"}},
            },
            "status": {"conditions": []},
        }))
        .unwrap()
    }

    #[test]
    fn work_carries_all_fields_of_its_manifest_work() {
        let work = work_of(&object());
        assert_eq!((work.name.as_str(), work.generation, work.labels["a"].as_str()), ("w", 3, "b"));
        assert_eq!(*work.manifests, [json!({"kind": "ConfigMap"})]);
        assert_eq!(work.configs.len(), 1);
        assert!(work.delete_option.is_some() && work.executor.is_some() && work.prior.is_some());
    }

    #[test]
    fn finalizers_of_others_stay() {
        let on = finalizer_patch(&object(), true);
        assert_eq!(on["metadata"]["finalizers"], json!(["theirs", FINALIZER]));
        assert_eq!(on["metadata"]["resourceVersion"], "7");
        let mut with = object();
        with.metadata.finalizers = Some(vec![FINALIZER.to_owned(), "theirs".to_owned()]);
        assert!(has_finalizer(&with) && !has_finalizer(&object()));
        assert_eq!(finalizer_patch(&with, false)["metadata"]["finalizers"], json!(["theirs"]));
    }

    #[test]
    fn status_patch_is_complete() {
        let patch = status_patch(&object(), &ManifestWorkStatus::default());
        assert_eq!(patch["status"], json!({"conditions": [], "resourceStatus": {"manifests": []}}));
    }

    #[test]
    fn hub_names_match_upstream() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hub_hash(""), empty);
        assert_eq!(hub_hash("https://hub:6443").len(), 64);
    }
}
