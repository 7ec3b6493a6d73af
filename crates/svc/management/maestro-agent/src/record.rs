//! What the agent remembers of one work, in memory and in the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use aro_base::Timestamp;
use aro_bundle::ManifestBundle;
use aro_crds::work::v1::ManifestWorkStatus;
use aro_work_engine::Work;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The label that names where a work comes from.
const ORIGINAL_SOURCE: &str = "cloudevents.open-cluster-management.io/originalsource";
const DATA_TYPE: &str = "cloudevents.open-cluster-management.io/datatype";
const FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

/// One work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The bundle's id.
    pub id: String,
    /// The name of the work on this cluster.
    pub name: String,
    /// Who sent the spec: whom reports are for.
    pub source: String,
    /// Which version of the bundle.
    pub version: i32,
    /// The work's metadata as it came.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// Trace ids as they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracing: Option<String>,
    /// The digest of the spec's data.
    pub hash: String,
    /// What is wanted. Shared: records are copied whenever something is said or written of them.
    pub spec: Arc<ManifestBundle>,
    /// It is to go.
    #[serde(default)]
    pub deleting: bool,
    /// Nothing of it is left; only the report of that is.
    #[serde(default)]
    pub gone: bool,
    /// When this version came.
    pub received: Timestamp,
    /// What was last seen of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
}

/// How a work was last seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    /// Which version of the bundle that was.
    pub version: i32,
    pub status: ManifestWorkStatus,
    /// The digest of the status.
    pub hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Timestamp>,
    pub observed: Timestamp,
    /// The last sequence id it was sent with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<String>,
    /// The broker has acknowledged it.
    #[serde(default)]
    pub sent: bool,
}

impl Record {
    /// What the engine is given.
    pub fn work(&self) -> Work {
        Work {
            name: self.name.clone(),
            generation: self.version.into(),
            labels: self.labels(),
            manifests: self.spec.manifests.clone(),
            configs: self.spec.manifest_configs.clone(),
            delete_option: self.spec.delete_option.clone(),
            executor: self.spec.executor.clone(),
            prior: self.seen.as_ref().map(|seen| seen.status.clone()),
        }
    }

    fn labels(&self) -> BTreeMap<String, String> {
        let labels = self.metadata.get("labels").and_then(Value::as_object).into_iter().flatten();
        let texts = labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        texts.chain([(ORIGINAL_SOURCE.to_owned(), self.source.clone())]).collect()
    }

    /// The metadata as it goes back: as the original's work in the agent would have it.
    pub fn echo(&self, consumer: &str) -> String {
        let mut echo = self.metadata.clone();
        // These belong to the place where the work was made.
        for name in ["resourceVersion", "managedFields", "selfLink", "creationTimestamp", "deletionTimestamp"]
        {
            echo.remove(name);
        }
        echo.insert("name".to_owned(), json!(self.name));
        echo.insert("namespace".to_owned(), json!(consumer));
        echo.insert("uid".to_owned(), json!(self.id));
        echo.insert("generation".to_owned(), json!(self.version));
        echo.insert("labels".to_owned(), json!(self.labels()));
        let mut annotations = echo.get("annotations").and_then(Value::as_object).cloned().unwrap_or_default();
        annotations.insert(DATA_TYPE.to_owned(), json!(aro_bundle::DATA_TYPE));
        echo.insert("annotations".to_owned(), Value::Object(annotations));
        if !self.gone {
            echo.insert("finalizers".to_owned(), json!([FINALIZER]));
        }
        Value::Object(echo).to_string()
    }
}

#[cfg(test)]
pub(crate) fn sample(id: &str, version: i32) -> Record {
    Record {
        id: id.to_owned(),
        name: id.to_owned(),
        source: "maestro".to_owned(),
        version,
        metadata: Map::new(),
        tracing: None,
        hash: format!("hash of {version}"),
        spec: Arc::new(ManifestBundle {
            manifests: Arc::new(vec![json!({"kind": "ConfigMap"})]),
            ..ManifestBundle::default()
        }),
        deleting: false,
        gone: false,
        received: Timestamp::UNIX_EPOCH,
        seen: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_goes_back_as_the_original_agent_would_send_it() {
        let mut record = sample("55c61e54-a3f6-563d-9fec-b1fe297bdfdb", 1);
        record.metadata =
            json!({"name": "x", "resourceVersion": "7", "labels": {"app": "y"}, "creationTimestamp": null})
                .as_object()
                .cloned()
                .unwrap_or_default();
        let echo: Value = serde_json::from_str(&record.echo("c1")).unwrap();
        assert_eq!(
            echo,
            json!({
                "name": "55c61e54-a3f6-563d-9fec-b1fe297bdfdb",
                "namespace": "c1",
                "uid": "55c61e54-a3f6-563d-9fec-b1fe297bdfdb",
                "generation": 1,
                "labels": {"app": "y", "cloudevents.open-cluster-management.io/originalsource": "maestro"},
                "annotations": {"cloudevents.open-cluster-management.io/datatype": aro_bundle::DATA_TYPE},
                "finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"],
            })
        );
    }
}
