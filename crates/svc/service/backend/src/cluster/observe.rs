//! What a decision about a cluster needs.

use aro_arm::ResourceId;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::openshift_version::{Line, Release};
use aro_arm::hcp::service_provider::ServiceProviderCluster;
use aro_arm::subscription::Subscription;
use aro_ocm::{Cluster as OcmCluster, ClusterId, ClusterState, InflightCheck};
use aro_peers::CallError;
use aro_rp_store::{Claim, ClaimKind};
use aro_store::Typed;
use serde_json::Value;
use uuid::Uuid;

use super::update::running_versions;
use crate::act::{call_context, children, deadline, operation_of};
use crate::change::OperationSeen;
use crate::error::WorkError;
use crate::kind::Kind as _;
use crate::shared::{Shared, Timing, service_id};

/// The code of a cluster that failed by its inflight checks.
pub(super) const CHECKS_FAILED: &str = "OCM4001";

/// The cluster in Clusters Service.
#[derive(Debug, Clone, PartialEq)]
pub enum Service {
    /// No id is chosen yet.
    Unnamed,
    /// There is none under the chosen id.
    Absent,
    /// It is there; the second form is for comparisons.
    Present(Box<OcmCluster>, Value),
    /// Clusters Service does not answer, and the operation's deadline has passed.
    Unknown(String),
}

/// Everything that a decision about a cluster needs.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The resource; `None` if it is gone.
    pub cluster: Option<Typed<Cluster>>,
    /// The operation that holds it.
    pub operation: Option<OperationSeen>,
    /// The service's own document.
    pub provider: Option<Typed<ServiceProviderCluster>>,
    /// The cluster in Clusters Service.
    pub service: Service,
    /// Its checks, if they failed.
    pub checks: Vec<InflightCheck>,
    /// The tenant of the subscription.
    pub tenant: String,
    /// The release that the catalogue offers for the requested version.
    pub selected: Option<Release>,
    /// An id that no cluster has yet.
    pub fresh_id: ClusterId,
    /// Whether children are left; read during a deletion.
    pub has_children: bool,
    /// What the cluster holds; read at the end of a deletion.
    pub claims: Vec<Typed<Claim>>,
    /// The upgrade that was asked for last, if the desired release does not run.
    pub latest_upgrade: Option<String>,
    /// What the operation was last found to wait for.
    pub noted: Option<String>,
    /// Times that decide.
    pub timing: Timing,
}

impl Seen {
    /// Reads it.
    pub async fn read(shared: &Shared, id: &ResourceId) -> Result<Self, WorkError> {
        let now = shared.clock.now();
        let mut seen = Self {
            cluster: shared.documents.find::<Cluster>(id).await?,
            operation: None,
            provider: None,
            service: Service::Unnamed,
            checks: Vec::new(),
            tenant: String::new(),
            selected: None,
            fresh_id: ClusterId::mint(now, *Uuid::new_v4().as_bytes()),
            has_children: false,
            claims: Vec::new(),
            latest_upgrade: None,
            noted: shared.notes.last(id),
            timing: shared.timing,
        };
        let Some(cluster) = seen.cluster.as_ref().map(|cluster| cluster.value.clone()) else {
            return Ok(seen);
        };
        seen.operation = operation_of(shared, id, &cluster.service).await?;
        if let Some(provider) = Cluster::provider_id(id) {
            seen.provider = shared.documents.find::<ServiceProviderCluster>(&provider).await?;
        }
        seen.read_service(shared, &cluster).await?;
        if cluster.service.deletion_timestamp.is_some() {
            seen.read_remains(shared, &cluster).await?;
        } else {
            seen.read_versions(shared, &cluster).await?;
        }
        Ok(seen)
    }

    async fn read_service(&mut self, shared: &Shared, cluster: &Cluster) -> Result<(), WorkError> {
        let Some(id) = service_id(cluster) else { return Ok(()) };
        let calls = shared.clusters_service.in_context(call_context(self.operation.as_ref()));
        self.service = match calls.find_cluster(&id).await {
            Ok(None) => Service::Absent,
            Ok(Some(found)) => {
                if failed_checks(&found) {
                    self.checks = calls.inflight_checks(&id).await?;
                }
                let value = serde_json::to_value(&found).unwrap_or_default();
                Service::Present(Box::new(found), value)
            }
            Err(error) if self.is_late(shared, cluster) => {
                Service::Unknown(aro_base::chain(&error).to_string())
            }
            Err(error) => return Err(error.into()),
        };
        Ok(())
    }

    fn is_late(&self, shared: &Shared, cluster: &Cluster) -> bool {
        let operation = self.operation.as_ref().map(|operation| &operation.stored.value);
        let limit = operation
            .and_then(|operation| deadline(operation, &cluster.service, shared.timing.update_deadline));
        limit.is_some_and(|limit| shared.clock.now() >= limit)
    }

    /// For a deletion: what has to go first, and what goes with it.
    async fn read_remains(&mut self, shared: &Shared, cluster: &Cluster) -> Result<(), WorkError> {
        if !matches!(self.service, Service::Unnamed | Service::Absent) {
            return Ok(());
        }
        self.has_children = !children::<NodePool>(shared, &cluster.id).await?.is_empty()
            || !children::<ExternalAuth>(shared, &cluster.id).await?.is_empty();
        if !self.has_children {
            for (kind, what) in claimed(cluster) {
                let claim = Claim::new(kind, &what, cluster.id.clone());
                let claim = claim.id(cluster.id.subscription().unwrap_or_default());
                self.claims.extend(shared.documents.find::<Claim>(&claim).await?);
            }
        }
        Ok(())
    }

    /// For a create or an update: the tenant, the release on offer, the upgrade under way.
    async fn read_versions(&mut self, shared: &Shared, cluster: &Cluster) -> Result<(), WorkError> {
        if self.operation.is_none() && !matches!(self.service, Service::Present(..)) {
            return Ok(());
        }
        if !matches!(self.service, Service::Present(..)) {
            self.tenant = tenant(shared, &cluster.id, self.operation.as_ref()).await?;
        }
        let version = &cluster.properties.version;
        match shared.versions.get().await {
            Ok(catalogue) => {
                let line = Line::parse(&version.id);
                self.selected = line.and_then(|line| catalogue.select(&version.channel_group, line));
            }
            // What is chosen already does not need the catalogue.
            Err(_) if self.desired().is_some() => {}
            Err(error) => return self.without_catalogue(shared, cluster, error),
        }
        let Service::Present(found, _) = &self.service else { return Ok(()) };
        let Some(desired) = self.desired() else { return Ok(()) };
        let running = running_versions(found);
        if running.is_empty() || running.contains(&desired) {
            return Ok(());
        }
        if let Some(id) = service_id(cluster) {
            let calls = shared.clusters_service.in_context(call_context(self.operation.as_ref()));
            self.latest_upgrade = calls.latest_upgrade(&id).await?.and_then(|policy| policy.version);
        }
        Ok(())
    }

    fn without_catalogue(
        &mut self,
        shared: &Shared,
        cluster: &Cluster,
        error: CallError,
    ) -> Result<(), WorkError> {
        if self.is_late(shared, cluster) {
            self.service = Service::Unknown(aro_base::chain(&error).to_string());
            return Ok(());
        }
        Err(error.into())
    }

    /// The release that the control plane shall have, as far as it is chosen.
    pub fn desired(&self) -> Option<Release> {
        self.provider.as_ref()?.value.spec.control_plane_version.desired_version.clone()
    }
}

/// What only one cluster may use.
fn claimed(cluster: &Cluster) -> Vec<(ClaimKind, String)> {
    let platform = &cluster.properties.platform;
    let ids = [
        (ClaimKind::Subnet, &platform.subnet_id),
        (ClaimKind::NetworkSecurityGroup, &platform.network_security_group_id),
    ];
    let mut claimed = vec![(ClaimKind::ManagedResourceGroup, platform.managed_resource_group.clone())];
    claimed.extend(ids.into_iter().filter_map(|(kind, id)| Some((kind, id.as_ref()?.to_string()))));
    claimed
}

fn failed_checks(found: &OcmCluster) -> bool {
    let status = found.status.as_ref();
    let state = status.and_then(|status| status.state).or(found.state);
    state == Some(ClusterState::Error)
        && status.and_then(|status| status.provision_error_code.as_deref()) == Some(CHECKS_FAILED)
}

/// The tenant of a resource's subscription: as ARM notified it, else of the operation's caller.
pub(super) async fn tenant(
    shared: &Shared,
    id: &ResourceId,
    operation: Option<&OperationSeen>,
) -> Result<String, WorkError> {
    let subscription = ResourceId::of_subscription(id.subscription().unwrap_or_default());
    let stored = shared.documents.find::<Subscription>(&subscription).await?;
    let notified =
        stored.and_then(|stored| stored.value.properties).and_then(|properties| properties.tenant_id);
    let of_caller = || operation.map(|operation| operation.stored.value.tenant_id.clone());
    Ok(notified.filter(|tenant| !tenant.is_empty()).or_else(of_caller).unwrap_or_default())
}
