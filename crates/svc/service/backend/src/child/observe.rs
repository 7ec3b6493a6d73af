//! What a decision about a node pool or external auth needs.

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::openshift_version::Release;
use aro_arm::hcp::service_provider::ServiceProviderCluster;
use aro_rp_store::Claim;
use aro_store::Typed;

use super::Child;
use crate::act::{call_context, deadline, operation_of};
use crate::change::OperationSeen;
use crate::error::WorkError;
use crate::key::Key;
use crate::kind::Kind as _;
use crate::shared::{Shared, Timing, service_id};

/// The counterpart in Clusters Service.
#[derive(Debug, Clone, PartialEq)]
pub enum Service<T> {
    /// The cluster is not known to exist there.
    NoCluster,
    /// The cluster has none under the resource's name.
    Absent,
    /// It is there.
    Present(T),
    /// Clusters Service does not answer, and the operation's deadline has passed.
    Unknown(String),
}

/// Everything that a decision about a child needs.
#[derive(Debug, Clone)]
pub struct Seen<T: Child> {
    /// The resource; `None` if it is gone.
    pub child: Option<Typed<T>>,
    /// Its cluster.
    pub cluster: Option<Typed<Cluster>>,
    /// The operation that holds it.
    pub operation: Option<OperationSeen>,
    /// The document beside it.
    pub provider: Option<Typed<T::Provider>>,
    /// The counterpart.
    pub service: Service<T::Observed>,
    /// The release of the control plane, where the resource names none.
    pub release: Option<Release>,
    /// The upgrade that was asked for last, if one is due.
    pub latest_upgrade: Option<String>,
    /// What it holds; read during a deletion.
    pub claims: Vec<Typed<Claim>>,
    /// What the operation was last found to wait for.
    pub noted: Option<String>,
    /// Times that decide.
    pub timing: Timing,
}

impl<T: Child> Seen<T> {
    /// Reads it.
    pub async fn read(shared: &Shared, key: &Key) -> Result<Self, WorkError> {
        let documents = &shared.documents;
        let mut seen = Self {
            child: documents.find::<T>(&key.0).await?,
            cluster: None,
            operation: None,
            provider: None,
            service: Service::NoCluster,
            release: None,
            latest_upgrade: None,
            claims: Vec::new(),
            noted: shared.notes.last(&key.0),
            timing: shared.timing,
        };
        let Some(child) = seen.child.as_ref().map(|child| child.value.clone()) else { return Ok(seen) };
        seen.cluster = documents.find::<Cluster>(&key.cluster()).await?;
        seen.operation = operation_of(shared, &key.0, child.service()).await?;
        if let Some(id) = T::provider_id(&key.0) {
            seen.provider = documents.find::<T::Provider>(&id).await?;
        }
        seen.read_service(shared, &child).await?;
        let cluster = seen.cluster.as_ref().map(|cluster| &cluster.value);
        if child.service().deletion_timestamp.is_some() || cluster.is_none() {
            for (kind, what) in child.claims(cluster) {
                let claim = Claim::new(kind, &what, key.0.clone());
                let claim = claim.id(key.0.subscription().unwrap_or_default());
                seen.claims.extend(documents.find::<Claim>(&claim).await?);
            }
        }
        if let (Some(id), Service::Absent) = (Cluster::provider_id(&key.cluster()), &seen.service) {
            let provider = documents.find::<ServiceProviderCluster>(&id).await?;
            seen.release =
                provider.and_then(|provider| provider.value.spec.control_plane_version.desired_version);
        }
        Ok(seen)
    }

    async fn read_service(&mut self, shared: &Shared, child: &T) -> Result<(), WorkError> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        let id = match &cluster.value.service.cluster_service_id {
            Some(_) => service_id(&cluster.value),
            None => None,
        };
        let Some(id) = id else { return Ok(()) };
        let calls = shared.clusters_service.in_context(call_context(self.operation.as_ref()));
        match child.find(&calls, &id).await {
            Ok(None) => self.service = Service::Absent,
            Ok(Some(observed)) => {
                if child.upgrade(&observed).is_some() {
                    self.latest_upgrade = child.latest_upgrade(&calls, &id).await?;
                }
                self.service = Service::Present(observed);
            }
            Err(error) if self.is_late(shared, child) => {
                self.service = Service::Unknown(aro_base::chain(&error).to_string());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn is_late(&self, shared: &Shared, child: &T) -> bool {
        let operation = self.operation.as_ref().map(|operation| &operation.stored.value);
        let limit = operation
            .and_then(|operation| deadline(operation, child.service(), shared.timing.update_deadline));
        limit.is_some_and(|limit| shared.clock.now() >= limit)
    }
}
