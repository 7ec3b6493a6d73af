//! What is published.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// What bundles hold.
#[derive(Debug, Clone)]
pub enum Workload {
    /// Three config maps, 4.2 kB in all; of each something is reported.
    ConfigMaps,
    /// Templates of upstream's load test, all of them in each bundle.
    Templates(Vec<String>),
}

impl Workload {
    /// Upstream's two kinds of bundles, by name; none if its templates are not at hand.
    pub fn upstream(dir: &Path) -> Vec<(&'static str, Self)> {
        let read = |files: &[&str]| {
            let texts = files.iter().map(|file| std::fs::read_to_string(dir.join(file)));
            texts.collect::<Result<Vec<_>, _>>().ok().map(Self::Templates)
        };
        let kinds = [
            ("a ManagedCluster", read(&["managedcluster.yaml"])),
            ("two ManifestWorks", read(&["manifestwork.namespace.yaml", "manifestwork.hypershift.yaml"])),
        ];
        kinds.into_iter().filter_map(|(name, kind)| Some((name, kind?))).collect()
    }

    /// The bundle of a name for a consumer.
    pub fn bundle(&self, consumer: &str, name: &str) -> Result<Value> {
        match self {
            Self::ConfigMaps => Ok(config_maps(name)),
            Self::Templates(templates) => {
                let manifests = templates.iter().map(|template| {
                    let text = filled(template, consumer, name);
                    serde_saphyr::from_str::<Value>(&text).context("read a template of a workload")
                });
                Ok(json!({"manifests": manifests.collect::<Result<Vec<_>>>()?}))
            }
        }
    }
}

/// A template with its names; whatever else it asks for is some text.
fn filled(template: &str, consumer: &str, name: &str) -> String {
    let text = template.replace("{{ .Name }}", name).replace("{{ .ClusterName }}", consumer);
    let mut parts = text.split("{{");
    let first = parts.next().unwrap_or_default().to_owned();
    // Some of it is data of Secrets, so it is valid there, too.
    parts.fold(first, |text, part| {
        format!("{text}dGV4dA=={}", part.split_once("}}").map_or("", |(_, rest)| rest))
    })
}

/// The name of the config map whose change is reported.
pub fn reported(name: &str) -> String {
    format!("{name}-0")
}

/// The namespace of the config maps.
pub const NAMESPACE: &str = "default";

fn config_maps(name: &str) -> Value {
    let names = (0..3).map(|number| format!("{name}-{number}"));
    let manifests: Vec<Value> = names
        .clone()
        .map(|name| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": "load"}},
                "data": {"value": name, "text": "x".repeat(960)},
            })
        })
        .collect();
    let configs: Vec<Value> = names
        .map(|name| {
            json!({
                "resourceIdentifier": {
                    "group": "", "resource": "configmaps", "name": name, "namespace": NAMESPACE,
                },
                "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [
                    {"name": "value", "path": ".data.value"}, {"name": "reported", "path": ".data.reported"},
                ]}],
                "updateStrategy": {"type": "ServerSideApply"},
            })
        })
        .collect();
    json!({"manifests": manifests, "manifestConfigs": configs})
}
