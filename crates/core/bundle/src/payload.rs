//! The payloads of events: a bundle's manifests, and their status.

use std::sync::Arc;

use aro_crds::work::v1::{
    DeleteOption, ManifestCondition, ManifestConfigOption, ManifestWorkExecutor, ManifestWorkStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The desired state of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestBundle {
    /// The objects in apply order. Shared with the engine that applies them, since they are most of a bundle.
    #[serde(default, deserialize_with = "or_default")]
    pub manifests: Arc<Vec<Value>>,
    /// What deletion of the bundle does with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<DeleteOption>,
    /// Update strategies and feedback rules of single objects.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub manifest_configs: Vec<ManifestConfigOption>,
    /// The identity that applies them. The wire has this spelling.
    #[serde(rename = "executer", default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ManifestWorkExecutor>,
}

/// The status of a bundle.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleStatus {
    /// The desired state; only in events to a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_bundle: Option<Box<RawValue>>,
    /// Conditions of the whole bundle.
    #[serde(default, deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// The status of its objects.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub resource_status: Vec<ManifestCondition>,
}

impl BundleStatus {
    /// Whether it reports that everything is deleted.
    pub fn is_deleted(&self) -> bool {
        let deleted = crate::condition::DELETED;
        self.conditions.iter().any(|one| one.type_ == deleted && one.status == "True")
    }
}

impl From<ManifestWorkStatus> for BundleStatus {
    fn from(status: ManifestWorkStatus) -> Self {
        Self {
            manifest_bundle: None,
            conditions: status.conditions,
            resource_status: status.resource_status.manifests,
        }
    }
}

/// Go encodes a nil list as `null`.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_lists_are_empty() {
        let status: BundleStatus = serde_json::from_str(r#"{"conditions":null}"#).unwrap();
        assert!(status.conditions.is_empty() && status.resource_status.is_empty());
        let bundle: ManifestBundle =
            serde_json::from_str(r#"{"manifests":null,"manifestConfigs":null}"#).unwrap();
        assert_eq!(bundle, ManifestBundle::default());
    }

    #[test]
    fn executor_keeps_the_spelling_of_the_wire() {
        let text = r#"{"manifests":[],"executer":{"subject":{"type":"ServiceAccount","serviceAccount":{"namespace":"a","name":"b"}}}}"#;
        let bundle: ManifestBundle = serde_json::from_str(text).unwrap();
        assert!(bundle.executor.is_some());
        assert_eq!(serde_json::to_string(&bundle).unwrap(), text);
    }
}
