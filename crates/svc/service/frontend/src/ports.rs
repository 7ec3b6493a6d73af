//! What the frontend needs from outside, by trait.

use std::sync::Arc;
use std::time::Duration;

use aro_arm::ArmError;
use aro_arm::hcp::cluster::Cluster;
use aro_base::SharedClock;
use aro_store::SharedStore;
use async_trait::async_trait;

/// An OpenShift release on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// `x.y.z`.
    pub version: String,
    pub channel_group: String,
    pub enabled: bool,
}

/// The releases on offer: from Clusters Service in a region, from the built-in list until then.
#[async_trait]
pub trait VersionCatalogue: Send + Sync + 'static {
    async fn releases(&self) -> Result<Vec<Release>, PortError>;
}

/// Asks Clusters Service whether it would take a cluster, before anything is stored.
#[async_trait]
pub trait Preflight: Send + Sync + 'static {
    async fn would_accept(&self, cluster: &Cluster) -> Result<(), Refusal>;
}

/// Why a cluster is not taken.
#[derive(Debug)]
pub enum Refusal {
    /// Clusters Service refuses; the caller reads the reason.
    Refused(ArmError),
    /// Clusters Service did not answer.
    Unreachable(PortError),
}

/// A failure behind a port.
pub type PortError = Box<dyn std::error::Error + Send + Sync>;

/// How long the preflight may take before the answer is 503.
pub const PREFLIGHT_DEADLINE: Duration = Duration::from_secs(2);

/// Accepts every cluster: there is no Clusters Service yet that could refuse one.
#[derive(Debug, Clone, Copy)]
pub struct AcceptAll;

#[async_trait]
impl Preflight for AcceptAll {
    async fn would_accept(&self, _: &Cluster) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Everything handed to the frontend when it is built.
pub struct FrontendPorts {
    pub listener: aro_runtime::Listener,
    pub store: SharedStore,
    pub clock: SharedClock,
    pub catalogue: Arc<dyn VersionCatalogue>,
    pub preflight: Arc<dyn Preflight>,
    pub metrics: aro_runtime::Metrics,
    pub readiness: aro_runtime::Readiness,
}
