//! `HostedControlPlane`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    AvailabilityPolicy, ClusterVersionStatus, ControlPlaneVersionStatus, Dns, Endpoint, ImageContentSource,
    Members, Networking, PublishedService, Reference,
};
use crate::schema::conditions;

/// The desired state of a control plane; the hosted cluster's, with references to the copies in this namespace.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
    kind = "HostedControlPlane",
    plural = "hostedcontrolplanes",
    singular = "hostedcontrolplane",
    shortname = "hcp",
    shortname = "hcps",
    category = "cluster-api",
    namespaced,
    status = "HostedControlPlaneStatus",
    doc = "A control plane in its namespace.",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct HostedControlPlaneSpec {
    /// The release.
    pub release_image: String,
    /// The release of the components on this cluster, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_release_image: Option<String>,
    /// The cluster's id.
    #[serde(rename = "clusterID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The prefix of the names of cloud resources.
    #[serde(rename = "infraID")]
    pub infra_id: String,
    /// The platform of the nodes.
    pub platform: Members,
    /// A further public name of the API server.
    #[serde(rename = "kubeAPIServerDNSName", default, skip_serializing_if = "Option::is_none")]
    pub kube_api_server_dns_name: Option<String>,
    /// The replicas of the control plane.
    #[serde(default)]
    pub controller_availability_policy: AvailabilityPolicy,
    /// The cluster's domain.
    pub dns: Dns,
    /// Its networks.
    #[serde(default)]
    pub networking: Networking,
    /// Its etcd.
    pub etcd: Members,
    /// How the services of the control plane are published.
    pub services: Vec<PublishedService>,
    /// The secret with the pull secret.
    pub pull_secret: Reference,
    /// The secret with the SSH key of nodes.
    pub ssh_key: Reference,
    /// The issuer of service account tokens.
    #[serde(rename = "issuerURL")]
    pub issuer_url: String,
    /// The secret with the key that signs service account tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_signing_key: Option<Reference>,
    /// Mirrors of image repositories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_content_sources: Vec<ImageContentSource>,
    /// How secrets are encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_encryption: Option<Members>,
    /// Until when the operator leaves the control plane alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<String>,
    /// Labels of the pods of the control plane.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Members that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

/// The observed state of a control plane.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct HostedControlPlaneStatus {
    /// Whether the API server answers.
    #[serde(default)]
    pub ready: bool,
    /// Whether it ever did.
    #[serde(default)]
    pub initialized: bool,
    /// Whether something else than machines of the cluster runs the control plane: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_managed_control_plane: Option<bool>,
    /// What is true of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// Where the API server is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<Endpoint>,
    /// The release of the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_status: Option<ClusterVersionStatus>,
    /// The release of the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_version: Option<ControlPlaneVersionStatus>,
    /// The secret with the kubeconfig of the administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeconfigReference>,
    /// The secret with the password of `kubeadmin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeadmin_password: Option<Reference>,
    /// Nodes of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_count: Option<i32>,
    /// Members that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

/// A secret with a kubeconfig.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KubeconfigReference {
    /// The secret.
    pub name: String,
    /// The key in it.
    pub key: String,
}
