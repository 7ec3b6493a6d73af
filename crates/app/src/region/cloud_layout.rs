//! The region's resources in its cloud, and what the roles beside the clusters must know of them before they exist.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aro_azure_local::{AzureLocalConfig, CloudAuthority, ServiceAccount};
use aro_base::{Secret, SharedClock, Timestamp, chain};
use aro_cloud::{Cloud, CloudConfig, SetupError};
use aro_net::{Backoff, SystemResolve};
use aro_region_layout::{AppliedLayout, ApplyError, Clients, Plan, RegionLayout, apply, plan};
use aro_role::{LayoutSetting, RegionCluster};
use aro_runtime::{Component, ConfigProblems, Fault, Phase, Scope, Section as _, TaskKind};
use tokio::sync::watch;
use uuid::Uuid;

use crate::AppConfig;

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
/// Requests a second for one subscription: the cloud is on this machine and has no quota.
const REQUESTS_PER_SECOND: u32 = 10_000;

/// The layout as it is known from the last run that completed it.
pub(crate) type SharedLayout = watch::Receiver<Option<Arc<AppliedLayout>>>;

/// A region's place in the local cloud.
#[derive(Debug, Clone)]
pub(crate) struct RegionCloud {
    pub layout: RegionLayout,
    /// The directory of the local cloud.
    pub dir: PathBuf,
}

#[derive(Debug, thiserror::Error)]
enum LayoutError {
    #[error("read the service's account")]
    Account(#[source] io::Error),
    #[error("check the configuration of the cloud client")]
    Config(#[source] ConfigProblems),
    #[error("set up the cloud client")]
    Setup(#[source] SetupError),
    #[error(transparent)]
    Apply(ApplyError),
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
        done: watch::Sender<Option<Arc<AppliedLayout>>>,
        scope: &Scope,
    ) {
        let own = scope.child(Phase::Reconcilers, "cloud-layout");
        own.spawn(TaskKind::Helper, "apply", async move {
            let plan = plan(&self.layout);
            let mut attempts = BACKOFF.attempts();
            loop {
                match self.attempt(&plan, azure_local, &clock).await {
                    Ok(applied) => {
                        let duration_ms = u64::try_from(applied.took.as_millis()).unwrap_or(u64::MAX);
                        tracing::info!(
                            resources = applied.resources,
                            created = applied.written,
                            duration_ms,
                            "cloud layout applied"
                        );
                        done.send_replace(Some(Arc::new(applied)));
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
    ) -> Result<AppliedLayout, LayoutError> {
        let dir = self.dir.clone();
        let account = tokio::task::spawn_blocking(move || ServiceAccount::read(&dir)).await;
        let account = account.map_err(io::Error::other).flatten().map_err(LayoutError::Account)?;
        let config = CloudConfig {
            connect_to: Some(azure_local),
            ca_file: Some(self.dir.join(CloudAuthority::CERTIFICATE)),
            requests_per_second: REQUESTS_PER_SECOND,
            ..CloudConfig::default()
        };
        let config = config.check().map_err(LayoutError::Config)?;
        let cloud =
            Cloud::new(&config, Arc::new(SystemResolve), clock.clone()).map_err(LayoutError::Setup)?;
        let (tenant, client) = (account.tenant_id.to_string(), account.client_id.to_string());
        let credential = cloud.client_secret(&tenant, &client, Secret::new(account.client_secret));
        apply(plan, &Clients { cloud, credential }).await.map_err(LayoutError::Apply)
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
