//! What the API and the pipelines share.

use std::sync::Arc;

use aro_base::SharedClock;
use aro_decisions::Decisions;
use aro_event_service::Target;
use aro_net::Resolve;
use aro_ocm::names::Environment;
use aro_role::CloudAccess;
use aro_runtime::{Checked, Metrics};

use crate::config::ClustersServiceConfig;
use crate::placement::Placement;
use crate::records::Records;
use crate::versions::Versions;

/// What the API and the pipelines share.
pub struct Shared {
    /// The configuration.
    pub config: Checked<ClustersServiceConfig>,
    /// The environment's name.
    pub environment: Environment,
    /// What is stored.
    pub records: Records,
    /// Places clusters on shards, and releases their slots.
    pub placement: Placement,
    /// The releases on offer.
    pub versions: Versions,
    /// The wall clock.
    pub clock: SharedClock,
    /// The metrics registry.
    pub metrics: Metrics,
    /// Resolves Maestro's name.
    pub resolve: Arc<dyn Resolve>,
    /// The cloud. Without it no cluster is provisioned, but for noop ones.
    pub cloud: Option<CloudAccess>,
    /// Maestro's gRPC API.
    pub maestro: Target,
    /// The journal of decisions.
    pub decisions: Decisions,
}
