//! Secrets out of a vault: `secrets-store.csi.x-k8s.io` and `secret-sync.x-k8s.io`.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which objects of which vault are mounted, or synchronized.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "secrets-store.csi.x-k8s.io",
    version = "v1",
    kind = "SecretProviderClass",
    plural = "secretproviderclasses",
    singular = "secretproviderclass",
    namespaced,
    doc = "Objects of a vault, for pods and for secrets.",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct SecretProviderClassSpec {
    /// The kind of vault, e.g. `azure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What the provider reads.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

/// A secret that follows objects of a vault.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "secret-sync.x-k8s.io",
    version = "v1alpha1",
    kind = "SecretSync",
    plural = "secretsyncs",
    singular = "secretsync",
    namespaced,
    doc = "A secret that follows objects of a vault.",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct SecretSyncSpec {
    /// The SecretProviderClass in the same namespace.
    pub secret_provider_class_name: String,
    /// On whose behalf the vault is read.
    pub service_account_name: String,
    /// The secret; it has the name of this object.
    #[serde(default)]
    pub secret_object: SecretObject,
    /// Changed to synchronize at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_synchronization: Option<String>,
}

/// A secret as it is to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretObject {
    /// Its type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<SecretEntry>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// An entry of a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretEntry {
    /// The object's path, as the SecretProviderClass names it.
    pub source_path: String,
    /// The key in the secret.
    pub target_key: String,
}
