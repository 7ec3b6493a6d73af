//! What the frontend needs from outside, by trait.

use std::sync::Arc;
use std::time::Duration;

use aro_arm::ArmError;
use aro_arm::hcp::cluster::Cluster;
use aro_base::SharedClock;
use aro_peers::CallContext;
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

/// The releases on offer: from Clusters Service in a region, from the built-in list without one.
#[async_trait]
pub trait VersionCatalogue: Send + Sync + 'static {
    async fn releases(&self) -> Result<Vec<Release>, PortError>;
}

/// Asks Clusters Service whether it would take a cluster, before anything is stored.
#[async_trait]
pub trait Preflight: Send + Sync + 'static {
    async fn would_accept(&self, asked: &Asked<'_>) -> Result<(), Refusal>;
}

/// A cluster that a caller wants to create.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    pub cluster: &'a Cluster,
    /// The tenant of its subscription.
    pub tenant: &'a str,
    /// The ids by which the question joins the request's trace.
    pub context: CallContext,
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

/// Accepts every cluster: for a frontend without Clusters Service.
#[derive(Debug, Clone, Copy)]
pub struct AcceptAll;

#[async_trait]
impl Preflight for AcceptAll {
    async fn would_accept(&self, _: &Asked<'_>) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Everything handed to the frontend when it is built.
pub struct FrontendPorts {
    /// The Azure region, where the configuration names none.
    pub location: String,
    pub listener: aro_runtime::Listener,
    pub store: SharedStore,
    pub clock: SharedClock,
    pub catalogue: Arc<dyn VersionCatalogue>,
    pub preflight: Arc<dyn Preflight>,
    pub metrics: aro_runtime::Metrics,
    pub readiness: aro_runtime::Readiness,
}
