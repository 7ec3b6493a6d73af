//! Releases and preflight by Clusters Service.

use std::collections::BTreeMap;

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::openshift_version::{Line, Release as ArmRelease};
use aro_arm::{ArmError, Code};
use aro_peers::translate::cluster::{Create, create_body, target_of};
use aro_peers::{CallError, ClustersService, Refusal as Stated, Versions};
use async_trait::async_trait;

use crate::ports::{Asked, PortError, Preflight, Refusal, Release, VersionCatalogue};

/// The channel group whose releases are listed when a release is in several.
const LISTED_FIRST: &str = aro_ocm::STABLE;

/// What Clusters Service states when no provision shard can take a cluster.
const NO_SHARD: &str = "Unable to find shard";

/// The releases that Clusters Service offers.
#[derive(Clone)]
pub struct OfferedReleases {
    versions: Versions,
}

impl OfferedReleases {
    /// Those of this Clusters Service.
    pub fn new(client: &ClustersService) -> Self {
        Self { versions: Versions::new(client) }
    }
}

#[async_trait]
impl VersionCatalogue for OfferedReleases {
    /// Each release once, sorted as text. One that is in several channel groups is listed with the most stable.
    async fn releases(&self) -> Result<Vec<Release>, PortError> {
        let catalogue = self.versions.get().await?;
        let mut listed: BTreeMap<String, Release> = BTreeMap::new();
        for offered in catalogue.releases() {
            let release = Release {
                version: offered.release.to_string(),
                channel_group: offered.channel_group.clone(),
                enabled: offered.enabled,
            };
            if release.channel_group == LISTED_FIRST || !listed.contains_key(&release.version) {
                listed.insert(release.version.clone(), release);
            }
        }
        Ok(listed.into_values().collect())
    }
}

/// Asks Clusters Service by a create that it only checks.
pub struct DryRun {
    client: ClustersService,
    releases: OfferedReleases,
}

impl DryRun {
    /// Asks this Clusters Service.
    pub fn new(client: ClustersService, releases: OfferedReleases) -> Self {
        Self { client, releases }
    }

    /// The release that the backend will select, so that both ask for the same.
    async fn release(&self, cluster: &Cluster) -> Result<ArmRelease, Refusal> {
        if let Some(pin) = &cluster.hosting.experimental_features.control_plane_exact_version {
            return ArmRelease::parse(pin).ok_or_else(|| not_offered(cluster));
        }
        let catalogue =
            self.releases.versions.get().await.map_err(|error| Refusal::Unreachable(error.into()))?;
        let version = &cluster.properties.version;
        let line = Line::parse(&version.id);
        let selected = line.and_then(|line| catalogue.select(&version.channel_group, line));
        selected.ok_or_else(|| not_offered(cluster))
    }
}

fn not_offered(cluster: &Cluster) -> Refusal {
    let version = &cluster.properties.version;
    let message = format!(
        "OpenShift version '{}' is not offered in channel group '{}'",
        version.id, version.channel_group
    );
    Refusal::Refused(ArmError::new(Code::InvalidRequestContent, message).with_target("properties.version.id"))
}

#[async_trait]
impl Preflight for DryRun {
    async fn would_accept(&self, asked: &Asked<'_>) -> Result<(), Refusal> {
        let release = self.release(asked.cluster).await?;
        let create = Create { id: None, tenant: asked.tenant, release: &release };
        let body = create_body(asked.cluster, &create);
        let client = self.client.in_context(asked.context.clone());
        client.check_cluster(&body).await.map_err(|error| refusal(error, asked.cluster))
    }
}

/// What the caller reads.
fn refusal(error: CallError, cluster: &Cluster) -> Refusal {
    let restricted = || {
        let message = "Capacity is currently restricted, please try again later";
        Refusal::Refused(ArmError::new(Code::ServiceUnavailable, message))
    };
    match &error {
        CallError::Unavailable { reason, .. } if reason.contains(NO_SHARD) => restricted(),
        CallError::NotFound { refusal, .. } if refusal.reason.contains(NO_SHARD) => restricted(),
        CallError::Conflict { refusal, .. } => Refusal::Refused(
            ArmError::new(Code::Conflict, refusal.reason.clone()).with_target(cluster.id.as_str()),
        ),
        CallError::Refused { refusal, .. } | CallError::NotFound { refusal, .. } => {
            Refusal::Refused(refused(refusal))
        }
        _ => Refusal::Unreachable(error.into()),
    }
}

/// The reason with its target; a list where Clusters Service names several problems.
fn refused(refusal: &Stated) -> ArmError {
    let error = |reason: &str, field: &str| {
        let error = ArmError::new(Code::InvalidRequestContent, reason);
        match target_of(field) {
            Some(target) => error.with_target(target),
            None => error,
        }
    };
    match refusal.details.as_slice() {
        [] => error(&refusal.reason, ""),
        [one] => error(&one.reason, &one.field),
        several => {
            let message = format!("{} errors occurred", several.len());
            let details = several.iter().map(|detail| error(&detail.reason, &detail.field)).collect();
            ArmError { details, ..ArmError::new(Code::MultipleErrorsOccurred, message) }
        }
    }
}
