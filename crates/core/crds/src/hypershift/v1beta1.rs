//! Version `v1beta1` of `hypershift.openshift.io`.
//!
//! What the service reads or writes is typed. Everything else is preserved as it is, so that objects that were written for
//! other releases of the operator work, and so is what is below a typed member but not known here.

mod control_plane_component;
mod hosted_cluster;
mod hosted_control_plane;
mod networking;
mod node_pool;
mod status;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use control_plane_component::{
    ComponentResource, ControlPlaneComponent, ControlPlaneComponentSpec, ControlPlaneComponentStatus,
};
pub use hosted_cluster::{
    AvailabilityPolicy, HostedCluster, HostedClusterSpec, HostedClusterStatus, ImageContentSource, Reference,
    Release,
};
pub use hosted_control_plane::{
    HostedControlPlane, HostedControlPlaneSpec, HostedControlPlaneStatus, KubeconfigReference,
};
pub use networking::{
    ApiServerNetworking, ClusterNetwork, Dns, Network, Networking, PublishedService, PublishingStrategy,
    PublishingType, ServiceName,
};
pub use node_pool::{
    Autoscaling, NodePool, NodePoolCondition, NodePoolManagement, NodePoolSpec, NodePoolStatus, Replace,
    Taint, TaintEffect, UpgradeType,
};
pub use status::{
    ClusterVersionStatus, ControlPlaneVersionStatus, Endpoint, ReleaseUpdate, UpdateHistory, UpdateState,
};

/// Members that are passed as they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Members(pub Map<String, Value>);

impl Members {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl JsonSchema for Members {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Members".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}
