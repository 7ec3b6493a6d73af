//! Networks, names and published services.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Members;

/// The cluster's domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct Dns {
    /// The domain below which everything of the cluster is.
    pub base_domain: String,
    /// What comes before it; an empty text for nothing, absent for the cluster's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_domain_prefix: Option<String>,
    /// The public zone.
    #[serde(rename = "publicZoneID", default, skip_serializing_if = "Option::is_none")]
    pub public_zone_id: Option<String>,
    /// The private zone.
    #[serde(rename = "privateZoneID", default, skip_serializing_if = "Option::is_none")]
    pub private_zone_id: Option<String>,
}

/// The cluster's networks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct Networking {
    /// Of machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub machine_network: Vec<Network>,
    /// Of pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub cluster_network: Vec<ClusterNetwork>,
    /// Of services.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub service_network: Vec<Network>,
    /// The network provider.
    #[serde(default = "ovn_kubernetes")]
    pub network_type: String,
    /// How the API server is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server: Option<ApiServerNetworking>,
    /// Members that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

fn ovn_kubernetes() -> String {
    "OVNKubernetes".to_owned()
}

/// A network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Network {
    /// Its addresses.
    pub cidr: String,
}

/// The network of pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNetwork {
    /// Its addresses.
    pub cidr: String,
    /// The prefix of one node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_prefix: Option<i32>,
}

/// How the API server is reached.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ApiServerNetworking {
    /// The address that nodes reach it at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advertise_address: Option<String>,
    /// Its port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// The addresses that may reach it; all, where there is none.
    #[serde(rename = "allowedCIDRBlocks", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    pub allowed_cidr_blocks: Vec<String>,
}

/// How one service of the control plane is published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublishedService {
    /// Which.
    pub service: ServiceName,
    /// How.
    pub service_publishing_strategy: PublishingStrategy,
}

/// The services of a control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceName {
    /// The API server.
    APIServer,
    /// The OAuth server.
    OAuthServer,
    /// Discovery of the token issuer; not published.
    OIDC,
    /// The tunnel to the nodes.
    Konnectivity,
    /// The configuration of new nodes.
    Ignition,
    /// The southbound database of the network; not published.
    OVNSbDb,
}

/// How a service is published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct PublishingStrategy {
    /// The kind of publication.
    #[serde(rename = "type")]
    pub kind: PublishingType,
    /// Details of a load balancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<Members>,
    /// Details of a node port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_port: Option<Members>,
    /// Details of a route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Members>,
}

impl PublishingStrategy {
    /// The host name of the route or load balancer.
    pub fn hostname(&self) -> Option<&str> {
        let details = self.route.as_ref().or(self.load_balancer.as_ref())?;
        details.0.get("hostname")?.as_str()
    }
}

/// The kinds of publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PublishingType {
    /// A load balancer of its own.
    LoadBalancer,
    /// A port of every node.
    NodePort,
    /// A route of the shared ingress.
    Route,
    /// Not at all.
    None,
    /// In a bucket.
    S3,
}
