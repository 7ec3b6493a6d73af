//! The region's resources in its cloud, and what the roles beside the clusters must know of them before they exist.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aro_azure_local::{AzureLocalConfig, CloudAuthority};
use aro_base::{SharedClock, Timestamp, chain};
use aro_net::Backoff;
use aro_region_layout::{AppliedLayout, ApplyError, Clients, Plan, RegionLayout, apply, plan};
use aro_role::{CloudAccess, LayoutSetting, RegionCluster};
use aro_runtime::{Component, ConfigProblems, Fault, Phase, Scope, TaskKind};
use tokio::sync::watch;
use uuid::Uuid;

use crate::AppConfig;
use crate::cloud_access::{self, CloudAccessError};

/// The prefix of management clusters; what follows is the stamp.
const MANAGEMENT: &str = "mgmt-";
/// The longest stamp that names of vaults have room for.
const LONGEST_STAMP: usize = 4;
/// The name of Front Door's certificate in the cloud's directory.
const FRONT_DOOR: &str = "frontdoor";
/// How often that certificate is checked for renewal.
const RENEWAL_CHECK: Duration = Duration::from_hours(1);
/// Between attempts.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(10), Duration::from_secs(10));
/// Attempts that fail because the cloud is still starting, before one is logged.
const QUIET_ATTEMPTS: u32 = 8;

/// The layout as it is known from the last run that completed it.
pub(crate) type SharedLayout = watch::Receiver<Option<Arc<AppliedLayout>>>;

/// The cloud as roles in pods get it, once it has accounts.
pub(crate) type SharedCloud = watch::Receiver<Option<CloudAccess>>;

/// What a region's start finds out about its cloud.
pub(crate) struct CloudResults {
    /// The cloud, once it has accounts.
    pub opened: watch::Sender<Option<CloudAccess>>,
    /// The layout, once it is complete.
    pub laid_out: watch::Sender<Option<Arc<AppliedLayout>>>,
}

/// A region's place in the local cloud.
#[derive(Debug, Clone)]
pub(crate) struct RegionCloud {
    pub layout: RegionLayout,
    /// The directory of the local cloud.
    pub dir: PathBuf,
}

#[derive(Debug, thiserror::Error)]
enum LayoutError {
    #[error("open the cloud")]
    Access(#[from] CloudAccessError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl RegionCloud {
    /// The place of a region; `None` for a program without a local cloud.
    pub fn of(config: &AppConfig, data: &Path) -> Result<Option<Self>, ConfigProblems> {
        if config.registry.find("azure-local").is_none() {
            return Ok(None);
        }
        let cloud = config.loaded.section::<AzureLocalConfig>()?;
        let all = RegionCluster { name: "", all: &config.kube.clusters };
        let stamps = all.management_clusters().filter_map(|name| name.strip_prefix(MANAGEMENT));
        let (stamps, long): (Vec<&str>, Vec<&str>) =
            stamps.partition(|stamp| (1..=LONGEST_STAMP).contains(&stamp.len()));
        if !long.is_empty() {
            tracing::warn!(stamps = ?long, "management clusters with long names have no resources in the cloud");
        }
        // The section is checked: it is a GUID.
        let tenant = Uuid::try_parse(&cloud.service_tenant).unwrap_or_default();
        let params = config.region.params(tenant, stamps.into_iter().map(str::to_owned).collect());
        let dir = cloud.dir.clone().unwrap_or_else(|| data.join("azure-local"));
        Ok(Some(Self { layout: RegionLayout::new(params), dir }))
    }

    /// A value that follows from the layout, as configuration has it.
    pub fn setting(&self, setting: LayoutSetting) -> String {
        match setting {
            LayoutSetting::OidcWebsite => self.layout.oidc_website(),
            LayoutSetting::ServiceSubscriptions => {
                let all = self.layout.subscriptions().into_iter();
                let all: Vec<String> = all.map(|(name, id)| format!("{name}={id}")).collect();
                serde_json::json!(all).to_string()
            }
        }
    }

    /// Issues Front Door's certificate, before Front Door reads it. Blocks on the disk.
    pub fn issue_certificate(&self, now: Timestamp) -> io::Result<()> {
        CloudAuthority::open(&self.dir, now)?.issue(FRONT_DOOR, vec![self.layout.issuer_host()], now)
    }

    fn renew_certificate(&self, now: Timestamp) -> io::Result<bool> {
        CloudAuthority::open(&self.dir, now)?.renew(FRONT_DOOR, vec![self.layout.issuer_host()], now)
    }

    /// Lays the region out, repeated until it is complete; then keeps Front Door's certificate valid.
    pub fn start(
        self,
        azure_local: SocketAddr,
        clock: SharedClock,
        ready: Component,
        results: CloudResults,
        scope: &Scope,
    ) {
        let own = scope.child(Phase::Reconcilers, "cloud-layout");
        let CloudResults { opened, laid_out } = results;
        own.spawn(TaskKind::Helper, "apply", async move {
            let plan = plan(&self.layout);
            let mut attempts = BACKOFF.attempts();
            loop {
                match self.attempt(&plan, azure_local, &clock, &opened).await {
                    Ok(applied) => {
                        let duration_ms = u64::try_from(applied.took.as_millis()).unwrap_or(u64::MAX);
                        tracing::info!(
                            resources = applied.resources,
                            created = applied.written,
                            duration_ms,
                            "cloud layout applied"
                        );
                        laid_out.send_replace(Some(Arc::new(applied)));
                        break ready.ready();
                    }
                    Err(error) => {
                        ready.not_ready(chain(&error).to_string());
                        if attempts.failures() >= QUIET_ATTEMPTS {
                            tracing::warn!(error = %chain(&error), "cloud layout not complete; retrying");
                        }
                        attempts.wait().await;
                    }
                }
            }
            self.keep_certificate(clock).await
        });
    }

    async fn attempt(
        &self,
        plan: &Plan,
        azure_local: SocketAddr,
        clock: &SharedClock,
        opened: &watch::Sender<Option<CloudAccess>>,
    ) -> Result<AppliedLayout, LayoutError> {
        let access = self.access(azure_local, clock).await?;
        let clients = Clients { cloud: access.cloud.clone(), credential: access.service.clone() };
        opened.send_replace(Some(access));
        Ok(apply(plan, &clients).await?)
    }

    /// The cloud with the accounts that it has written.
    async fn access(
        &self,
        azure_local: SocketAddr,
        clock: &SharedClock,
    ) -> Result<CloudAccess, CloudAccessError> {
        let (own, clock) = (self.clone(), clock.clone());
        let opened = tokio::task::spawn_blocking(move || {
            cloud_access::of_local_cloud(&own.dir, azure_local, &own.layout, &clock)
        });
        opened.await.map_err(|error| CloudAccessError::Accounts(io::Error::other(error)))?
    }

    async fn keep_certificate(self, clock: SharedClock) -> Result<(), Fault> {
        loop {
            tokio::time::sleep(RENEWAL_CHECK).await;
            let (own, now) = (self.clone(), clock.now());
            match tokio::task::spawn_blocking(move || own.renew_certificate(now)).await {
                Ok(Ok(true)) => tracing::info!("certificate of Front Door renewed"),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(error = %chain(&error), "certificate renewal failed; retrying later");
                }
                Err(error) => return Err(Fault::caused("renew the certificate of Front Door", error)),
            }
        }
    }
}
