//! The record of one work: its desired state and its last status, in memory and in the store.
//!
//! Serialized names are those of stored documents and do not follow the fields' names.

use std::collections::BTreeMap;
use std::sync::Arc;

use aro_base::Timestamp;
use aro_bundle::ManifestBundle;
use aro_crds::work::v1::ManifestWorkStatus;
use aro_work_engine::Work;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The label with the source of a work.
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
    /// The source of the spec, which its reports are addressed to.
    pub source: String,
    /// The resource version of the bundle.
    pub version: i32,
    /// The work's metadata as received.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// Trace ids as received.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "tracing")]
    pub log_tracing: Option<String>,
    /// The digest of the spec's data.
    pub hash: String,
    /// The desired state. Shared, since every report and every write copies the record.
    pub spec: Arc<ManifestBundle>,
    /// The work is being deleted.
    #[serde(default)]
    pub deleting: bool,
    /// Nothing of the work is left on the cluster; the broker has not acknowledged that report yet.
    #[serde(default, rename = "gone")]
    pub deleted: bool,
    /// When this version was received.
    #[serde(rename = "received")]
    pub received_at: Timestamp,
    /// The last status the engine reported.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "seen")]
    pub observed: Option<ObservedStatus>,
}

/// A status that the engine reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedStatus {
    /// The resource version it belongs to.
    pub version: i32,
    pub status: ManifestWorkStatus,
    /// The digest of the status.
    pub hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "applied")]
    pub applied_at: Option<Timestamp>,
    #[serde(rename = "observed")]
    pub observed_at: Timestamp,
    /// The last sequence id it was published with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<String>,
    /// The broker has acknowledged it.
    #[serde(default, rename = "sent")]
    pub acked: bool,
}

impl Record {
    /// Whether a report is due that the broker has not acknowledged.
    pub fn has_unacked_report(&self) -> bool {
        self.deleted || self.observed.as_ref().is_some_and(|observed| !observed.acked)
    }

    /// The work as the engine applies it.
    pub fn work(&self) -> Work {
        Work {
            name: self.name.clone(),
            generation: self.version.into(),
            labels: self.labels(),
            manifests: self.spec.manifests.clone(),
            configs: self.spec.manifest_configs.clone(),
            delete_option: self.spec.delete_option.clone(),
            executor: self.spec.executor.clone(),
            prior: self.observed.as_ref().map(|observed| observed.status.clone()),
        }
    }

    fn labels(&self) -> BTreeMap<String, String> {
        let labels = self.metadata.get("labels").and_then(Value::as_object).into_iter().flatten();
        let texts = labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        texts.chain([(ORIGINAL_SOURCE.to_owned(), self.source.clone())]).collect()
    }

    /// The metadata a status event carries: that of the work as the original agent keeps it.
    pub fn status_metadata(&self, consumer: &str) -> String {
        let mut metadata = self.metadata.clone();
        // These fields belong to the API server that holds the source's work.
        for name in ["resourceVersion", "managedFields", "selfLink", "creationTimestamp", "deletionTimestamp"]
        {
            metadata.remove(name);
        }
        metadata.insert("name".to_owned(), json!(self.name));
        metadata.insert("namespace".to_owned(), json!(consumer));
        metadata.insert("uid".to_owned(), json!(self.id));
        metadata.insert("generation".to_owned(), json!(self.version));
        metadata.insert("labels".to_owned(), json!(self.labels()));
        let mut annotations =
            metadata.get("annotations").and_then(Value::as_object).cloned().unwrap_or_default();
        annotations.insert(DATA_TYPE.to_owned(), json!(aro_bundle::DATA_TYPE));
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
        if !self.deleted {
            metadata.insert("finalizers".to_owned(), json!([FINALIZER]));
        }
        Value::Object(metadata).to_string()
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
        log_tracing: None,
        hash: format!("hash of {version}"),
        spec: Arc::new(ManifestBundle {
            manifests: Arc::new(vec![json!({"kind": "ConfigMap"})]),
            ..ManifestBundle::default()
        }),
        deleting: false,
        deleted: false,
        received_at: Timestamp::UNIX_EPOCH,
        observed: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_metadata_matches_the_original_agent() {
        let mut record = sample("55c61e54-a3f6-563d-9fec-b1fe297bdfdb", 1);
        record.metadata =
            json!({"name": "x", "resourceVersion": "7", "labels": {"app": "y"}, "creationTimestamp": null})
                .as_object()
                .cloned()
                .unwrap_or_default();
        let echo: Value = serde_json::from_str(&record.status_metadata("c1")).unwrap();
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
