//! A record as it is read and kept: without the managed fields, which would be most of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;

use aro_crds::work::v1::{AppliedManifestWork, AppliedManifestWorkSpec, AppliedManifestWorkStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::{Deserialize, Deserializer, Serialize};

/// One record. What is not looked at here is not in its metadata, so it is never written back as a whole.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(crate) struct Record(pub(super) AppliedManifestWork);

impl Deref for Record {
    type Target = AppliedManifestWork;

    fn deref(&self) -> &AppliedManifestWork {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Parts {
            metadata: Metadata,
            spec: AppliedManifestWorkSpec,
            #[serde(default)]
            status: Option<AppliedManifestWorkStatus>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        #[derive(Default)]
        struct Metadata {
            name: Option<String>,
            uid: Option<String>,
            resource_version: Option<String>,
            deletion_timestamp: Option<Time>,
            finalizers: Option<Vec<String>>,
            labels: Option<BTreeMap<String, String>>,
            annotations: Option<BTreeMap<String, String>>,
        }
        let Parts { metadata, spec, status } = Parts::deserialize(deserializer)?;
        let metadata = ObjectMeta {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            deletion_timestamp: metadata.deletion_timestamp,
            finalizers: metadata.finalizers,
            labels: metadata.labels,
            annotations: metadata.annotations,
            ..ObjectMeta::default()
        };
        Ok(Self(AppliedManifestWork { metadata, spec, status }))
    }
}

impl Resource for Record {
    type DynamicType = ();
    type Scope = <AppliedManifestWork as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        AppliedManifestWork::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        AppliedManifestWork::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        AppliedManifestWork::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        AppliedManifestWork::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.0.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_is_read_with_all_that_is_decided_by_and_without_managed_fields() {
        let record: Record = serde_json::from_value(json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
            "metadata": {
                "name": "h-w", "uid": "u", "resourceVersion": "7", "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z",
                "finalizers": ["f"], "labels": {"a": "b"}, "annotations": {"c": "d"},
                "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}],
            },
            "spec": {"hubHash": "h", "agentID": "a", "manifestWorkName": "w"},
            "status": {"appliedResources": [
                {"group": "", "version": "v1", "resource": "configmaps", "name": "x", "namespace": "n", "uid": "y"},
            ]},
        }))
        .unwrap();
        assert_eq!(record.spec.manifest_work_name, "w");
        assert_eq!(record.status.as_ref().unwrap().applied_resources.len(), 1);
        let meta = &record.metadata;
        assert_eq!((meta.uid.as_deref(), meta.resource_version.as_deref()), (Some("u"), Some("7")));
        assert!(meta.deletion_timestamp.is_some() && meta.managed_fields.is_none());
        assert_eq!(meta.finalizers.as_deref(), Some(&["f".to_owned()][..]));
        assert!(meta.labels.is_some() && meta.annotations.is_some());
    }
}
