//! ManifestWorks, and the feedback that is asked for.

use std::collections::BTreeMap;

use aro_crds::work::v1::{
    FeedbackRule, FeedbackScrapeType, FeedbackType, JsonPath, ManifestConfigOption, ResourceIdentifier,
    ServerSideApplyConfig, UpdateStrategy, UpdateStrategyType,
};
use aro_ocm::names::LOCAL_CLUSTER;
use serde_json::{Value, json};

use super::{Bundle, Context, OBJECT, feedback};

/// The field manager of what the work agent applies.
const FIELD_MANAGER: &str = "work-agent";

/// An object inside of a work.
pub(super) struct Part {
    pub(super) manifest: Value,
    pub(super) config: Option<ManifestConfigOption>,
}

impl Part {
    /// An object that the agent owns.
    pub(super) fn owned(resource: &str, manifest: Value) -> Self {
        let config = config(resource, &manifest, &[]);
        Self { manifest, config: Some(config) }
    }

    /// An object that the agent owns and reports of.
    pub(super) fn reported(resource: &str, manifest: Value, paths: &[(String, String)]) -> Self {
        let config = config(resource, &manifest, paths);
        Self { manifest, config: Some(config) }
    }

    /// An object that the agent only reports of.
    pub(super) fn observed(resource: &str, manifest: Value, paths: &[(String, String)]) -> Self {
        let mut config = config(resource, &manifest, paths);
        config.update_strategy =
            Some(UpdateStrategy { kind: UpdateStrategyType::ReadOnly, server_side_apply: None });
        Self { manifest, config: Some(config) }
    }

    /// An object that is made if it is missing, and left alone.
    pub(super) fn made_once(resource: &str, manifest: Value) -> Self {
        let mut config = config(resource, &manifest, &[]);
        config.update_strategy =
            Some(UpdateStrategy { kind: UpdateStrategyType::CreateOnly, server_side_apply: None });
        Self { manifest, config: Some(config) }
    }
}

/// Names an object of a work.
pub(super) fn identifier(resource: &str, manifest: &Value) -> ResourceIdentifier {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let group = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
    ResourceIdentifier {
        group: group.to_owned(),
        resource: resource.to_owned(),
        name: text("/metadata/name").to_owned(),
        namespace: text("/metadata/namespace").to_owned(),
    }
}

fn config(resource: &str, manifest: &Value, paths: &[(String, String)]) -> ManifestConfigOption {
    let path = |(name, path): &(String, String)| JsonPath {
        name: name.clone(),
        version: String::new(),
        path: path.clone(),
    };
    let feedback_rules = match paths {
        [] => Vec::new(),
        paths => {
            let json_paths = paths.iter().map(path).collect();
            vec![FeedbackRule { kind: FeedbackType::JsonPaths, json_paths }]
        }
    };
    ManifestConfigOption {
        resource_identifier: identifier(resource, manifest),
        feedback_rules,
        feedback_scrape_type: FeedbackScrapeType::Watch,
        update_strategy: Some(UpdateStrategy {
            kind: UpdateStrategyType::ServerSideApply,
            server_side_apply: Some(ServerSideApplyConfig {
                force: true,
                field_manager: FIELD_MANAGER.to_owned(),
                ..ServerSideApplyConfig::default()
            }),
        }),
        ..ManifestConfigOption::default()
    }
}

/// A bundle with one ManifestWork for the management cluster's own work agent.
pub(super) fn work_bundle(
    cx: &Context<'_>,
    object: String,
    generation: u64,
    parts: Vec<Part>,
    delete_option: Option<Value>,
) -> Bundle {
    let (mut manifests, mut configs) = (Vec::with_capacity(parts.len()), Vec::with_capacity(parts.len()));
    for part in parts {
        manifests.push(part.manifest);
        configs.extend(part.config);
    }
    let mut spec = json!({ "workload": { "manifests": manifests }, "manifestConfigs": configs });
    if let Some(option) = delete_option {
        spec["deleteOption"] = option;
    }
    let manifest = json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "name": object,
            "namespace": LOCAL_CLUSTER,
            "labels": cx.labels(),
            "annotations": cx.annotations(generation),
        },
        "spec": spec,
    });
    let config = config("manifestworks", &manifest, &feedback::of_work());
    bundle(cx, object, manifest, config)
}

/// A bundle with an object for the Maestro agent itself.
pub(super) fn plain_bundle(cx: &Context<'_>, object: String, resource: &str, manifest: Value) -> Bundle {
    let config = config(resource, &manifest, &feedback::of_work());
    bundle(cx, object, manifest, config)
}

fn bundle(cx: &Context<'_>, object: String, manifest: Value, config: ManifestConfigOption) -> Bundle {
    let mut labels: BTreeMap<String, String> = cx.labels();
    labels.insert(OBJECT.to_owned(), aro_ocm::names::clipped(&object, 63));
    Bundle { id: cx.bundle_id(&object), object, labels, manifest, config }
}
