//! The kinds of documents and their types. A type's schema version and expiry are set here and nowhere else.

use std::time::Duration;

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::operation::Operation;
use aro_arm::hcp::service_provider::{ServiceProviderCluster, ServiceProviderNodePool};
use aro_arm::hcp::{CLUSTER_TYPE, EXTERNAL_AUTH_TYPE, NODE_POOL_TYPE};
use aro_arm::subscription::Subscription;
use aro_store::Kind;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::claim::Claim;
use crate::outbox::{Cascade, OutboxEntry};

/// How long an operation can be read after its last change.
pub const OPERATION_TTL: Duration = Duration::from_hours(7 * 24);

/// A value that the resource provider stores.
pub trait RpDocument: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// How its documents are written and read.
    const KIND: Kind<Self>;
}

impl RpDocument for Cluster {
    const KIND: Kind<Self> = Kind::new(CLUSTER_TYPE);
}

impl RpDocument for NodePool {
    const KIND: Kind<Self> = Kind::new(NODE_POOL_TYPE);
}

impl RpDocument for ExternalAuth {
    const KIND: Kind<Self> = Kind::new(EXTERNAL_AUTH_TYPE);
}

impl RpDocument for ServiceProviderCluster {
    const KIND: Kind<Self> =
        Kind::new("Microsoft.RedHatOpenShift/hcpOpenShiftClusters/serviceProviderClusters");
}

impl RpDocument for ServiceProviderNodePool {
    const KIND: Kind<Self> =
        Kind::new("Microsoft.RedHatOpenShift/hcpOpenShiftClusters/nodePools/serviceProviderNodePools");
}

/// The state of a subscription.
impl RpDocument for Subscription {
    const KIND: Kind<Self> = Kind::new("Microsoft.Resources/subscriptions");
}

/// An asynchronous operation.
impl RpDocument for Operation {
    const KIND: Kind<Self> =
        Kind::new("Microsoft.RedHatOpenShift/hcpOperationStatuses").expiring(OPERATION_TTL);
}

/// An effect that Clusters Service has not received yet.
impl RpDocument for OutboxEntry {
    const KIND: Kind<Self> = Kind::new("Microsoft.RedHatOpenShift/outbox");
}

/// A deletion that did not fit one batch.
impl RpDocument for Cascade {
    const KIND: Kind<Self> = Kind::new("Microsoft.RedHatOpenShift/cascades");
}

/// An exclusive right of use. It is read by its key only.
impl RpDocument for Claim {
    const KIND: Kind<Self> = Kind::new("Microsoft.RedHatOpenShift/claims").by_key_only();
}
