//! `HostedCluster`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    ClusterVersionStatus, ControlPlaneVersionStatus, Dns, Endpoint, Members, Networking, PublishedService,
};
use crate::schema::conditions;

/// The desired state of a hosted cluster.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
    kind = "HostedCluster",
    plural = "hostedclusters",
    singular = "hostedcluster",
    shortname = "hc",
    shortname = "hcs",
    namespaced,
    status = "HostedClusterStatus",
    doc = "A cluster whose control plane runs as pods of this one.",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.version.history[?(@.state==\"Completed\")].version"}"#,
    printcolumn = r#"{"name":"CP Version","type":"string","jsonPath":".status.controlPlaneVersion.history[?(@.state==\"Completed\")].version"}"#,
    printcolumn = r#"{"name":"KubeConfig","type":"string","jsonPath":".status.kubeconfig.name"}"#,
    printcolumn = r#"{"name":"Progress","type":"string","jsonPath":".status.version.history[?(@.state!=\"\")].state"}"#,
    printcolumn = r#"{"name":"Available","type":"string","jsonPath":".status.conditions[?(@.type==\"Available\")].status"}"#,
    printcolumn = r#"{"name":"Progressing","type":"string","jsonPath":".status.conditions[?(@.type==\"Progressing\")].status"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type==\"Available\")].message"}"#,
    printcolumn = r#"{"name":"CP Progress","type":"string","jsonPath":".status.controlPlaneVersion.history[0].state"}"#,
    printcolumn = r#"{"name":"DP Progress","type":"string","jsonPath":".status.version.history[0].state"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct HostedClusterSpec {
    /// The release of the control plane and the nodes.
    pub release: Release,
    /// The release of the components on this cluster, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_release: Option<Release>,
    /// The cluster's id, a UUID.
    #[serde(rename = "clusterID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The prefix of the names of cloud resources.
    #[serde(rename = "infraID", default, skip_serializing_if = "Option::is_none")]
    pub infra_id: Option<String>,
    /// The channel of updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The platform of the nodes.
    pub platform: Members,
    /// A further public name of the API server.
    #[serde(rename = "kubeAPIServerDNSName", default, skip_serializing_if = "Option::is_none")]
    pub kube_api_server_dns_name: Option<String>,
    /// The replicas of the control plane.
    #[serde(default)]
    pub controller_availability_policy: AvailabilityPolicy,
    /// The replicas of the cluster's own infrastructure.
    #[serde(default = "AvailabilityPolicy::single")]
    pub infrastructure_availability_policy: AvailabilityPolicy,
    /// The cluster's domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<Dns>,
    /// Its networks.
    pub networking: Networking,
    /// How the cluster autoscaler decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Members>,
    /// Its etcd.
    pub etcd: Members,
    /// How the services of the control plane are published.
    #[schemars(length(max = 6))]
    pub services: Vec<PublishedService>,
    /// The secret with the pull secret, key `.dockerconfigjson`.
    pub pull_secret: Reference,
    /// The secret with the SSH key of nodes, key `id_rsa.pub`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_key: Option<Reference>,
    /// The issuer of service account tokens.
    #[serde(rename = "issuerURL", default = "in_cluster_issuer")]
    #[schemars(length(max = 255))]
    pub issuer_url: String,
    /// The secret with the key that signs service account tokens, key `key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_signing_key: Option<Reference>,
    /// `OpenShift`'s configuration of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Members>,
    /// Mirrors of image repositories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 255))]
    pub image_content_sources: Vec<ImageContentSource>,
    /// How secrets are encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_encryption: Option<Members>,
    /// Whether only validated cryptography is used.
    #[serde(default)]
    pub fips: bool,
    /// Until when the operator leaves the cluster alone: a time, `true` or `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<String>,
    /// Labels of the pods of the control plane.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The nodes that the pods of the control plane run on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Optional parts of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Members>,
    /// Members that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

fn in_cluster_issuer() -> String {
    "https://kubernetes.default.svc".to_owned()
}

/// A release by its image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Release {
    /// The image.
    #[schemars(length(max = 253), regex(pattern = r"^(\w+\S+)$"))]
    pub image: String,
}

/// An object of the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// How many replicas there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AvailabilityPolicy {
    /// Three, or two.
    #[default]
    HighlyAvailable,
    /// One.
    SingleReplica,
}

impl AvailabilityPolicy {
    fn single() -> Self {
        Self::SingleReplica
    }
}

/// Mirrors of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageContentSource {
    /// The repository.
    pub source: String,
    /// Its mirrors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<String>,
}

/// The observed state of a hosted cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct HostedClusterStatus {
    /// What is true of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// The release of the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<ClusterVersionStatus>,
    /// The release of the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_version: Option<ControlPlaneVersionStatus>,
    /// The secret with the kubeconfig of the administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<Reference>,
    /// The secret with a kubeconfig for the further name of the API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_kubeconfig: Option<Reference>,
    /// The secret with the password of `kubeadmin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeadmin_password: Option<Reference>,
    /// The host of the ignition server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint: Option<String>,
    /// Where the API server is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<Endpoint>,
    /// The callback of identity providers.
    #[serde(rename = "oauthCallbackURLTemplate", default, skip_serializing_if = "Option::is_none")]
    pub oauth_callback_url_template: Option<String>,
    /// The architecture of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_arch: Option<String>,
    /// Members that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}
