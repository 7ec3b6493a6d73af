//! The local cloud as a role.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aro_arm_server::{ArmServer, Options};
use aro_azure_local_data_plane::{BlobStore, KeyVaultStore, blob_router, keyvault_router, website_router};
use aro_azure_local_directory::{
    Directory, DirectorySettings, Endpoints, graph_router, identity_router, login_router,
};
use aro_azure_local_engine::{Cloud, ForwardedType, Options as CloudOptions, routes};
use aro_base::chain;
use aro_control::ReconcileMetrics;
use aro_runtime::{BuildError, ByteSize, Checked, Component, Fault, Role, RunError, Scope, TaskKind};
use aro_store::UnreadableDocuments;
use aro_web::{BodyBudget, BodyLimits, ServeOptions, serve_after};

use crate::accounts::{self, FirstPartyAccount};
use crate::admin::{Admin, AdminAccess};
use crate::arm::Arm;
use crate::bridge::Bridge;
use crate::check_access::{self, CheckAccess};
use crate::config::AzureLocalConfig;
use crate::data_planes::DataPlanes;
use crate::faults::Switchboard;
use crate::forward::{self, Providers};
use crate::front_door::FrontDoor;
use crate::issuer_fetch::{IssuerFetch, Reach};
use crate::ports::AzureLocalPorts;
use crate::tls::{self, TlsHandshake};

/// The local cloud.
pub struct AzureLocal {
    config: Checked<AzureLocalConfig>,
    ports: AzureLocalPorts,
    ready: Component,
}

impl Role for AzureLocal {
    const NAME: &'static str = "azure-local";
    type Config = AzureLocalConfig;
    type Ports = AzureLocalPorts;

    fn build(config: Checked<AzureLocalConfig>, ports: AzureLocalPorts) -> Result<Self, BuildError> {
        let ready = ports.readiness.component(Self::NAME);
        Ok(Self { config, ports, ready })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        let Self { config, ports, ready } = self;
        let dir: PathBuf = config.dir.clone().unwrap_or(ports.dir);
        let acceptor = tls::acceptor(&dir, &ports.clock, &scope).await?;
        let unreadable = UnreadableDocuments::new(&ports.metrics);
        let first_party = first_party(&config, &dir).await?;
        let settings = DirectorySettings {
            identity_caller: Some(first_party.client_id),
            identity_audience: FirstPartyAccount::IDENTITY_AUDIENCE.to_owned(),
            ..DirectorySettings::default()
        };
        let directory = Directory::open(ports.store.clone(), settings, ports.clock.clone(), &unreadable)
            .await
            .map_err(|error| Fault::caused("open the directory", error))?;
        let faults = Arc::new(Switchboard::new(config.fault_seed));
        let options = CloudOptions {
            operation_time: config.operation_time.get(),
            mutation_log: bytes(config.mutation_log),
            forwarded: FORWARDED,
            faults: faults.clone(),
        };
        let vaults = KeyVaultStore::new(&ports.store, &unreadable);
        let blobs = BlobStore::new(&ports.store, ports.clock.clone(), config.blob_budget.get(), &unreadable);
        let providers =
            config.resource_providers.iter().filter_map(|text| forward::parse(text).ok()).collect();
        let providers = Providers::new(providers, ports.resolve, config.forward_timeout.get(), scope.clone());
        let bridge = Arc::new(Bridge {
            directory: directory.clone(),
            vaults: vaults.clone(),
            blobs: blobs.clone(),
            providers: providers.clone(),
        });
        let cloud = Cloud::open(ports.store, ports.clock.clone(), bridge, unreadable, options)
            .await
            .map_err(|error| Fault::caused("open the local cloud", error))?;
        accounts::ensure(&config, &directory, &cloud, &dir, first_party, &ports.clock).await?;
        cloud.start(&ReconcileMetrics::new(&ports.metrics), &scope);

        let bodies = BodyLimits {
            max: bytes(config.max_body),
            discard: 0,
            timeout: config.body_timeout.get(),
            budget: BodyBudget::of_bytes(config.body_budget.get()),
        };
        let server_options = Options { name: "azure_local", body: bodies.clone() };
        let engine = ArmServer::new(Arc::new(cloud.clone()), routes(), &ports.metrics, &server_options)
            .map_err(|error| Fault::caused("register the routes", error))?;
        let planes = Arc::new(DataPlanes {
            verifier: directory.verifier(),
            cloud: cloud.clone(),
            clock: ports.clock.clone(),
        });
        let login_host = directory.settings().login_host.clone();
        let blob_bodies = BodyLimits {
            max: bytes(config.max_blob),
            budget: BodyBudget::of_bytes(config.max_blob.get().saturating_mul(2)),
            ..bodies.clone()
        };
        let (clock, host) = (ports.clock.clone(), login_host.clone());
        let vault =
            keyvault_router(vaults, planes.clone(), planes.clone(), bodies.clone(), clock.clone(), host);
        let website = website_router(blobs.clone(), planes.clone(), clock.clone());
        let blob = blob_router(blobs.clone(), planes.clone(), planes, blob_bodies, clock, login_host);
        maintain(directory.clone(), blobs, &scope);
        let reach = Reach {
            own: ports.listener.local_addr(),
            proxy: config.proxy,
            internet: config.fetch_from_internet,
        };
        let fetch = IssuerFetch::new(reach, dir.join(tls::CA), scope.clone()).await?;
        let check_access = check_access::router(CheckAccess {
            verifier: directory.verifier(),
            cloud: cloud.clone(),
            clock: ports.clock.clone(),
            bodies: bodies.clone(),
        });
        let endpoints = Endpoints::new(directory.clone(), bodies, Arc::new(fetch));
        providers.announce(cloud.subscriptions(), &scope);
        let access = AdminAccess::generate(ports.listener.local_addr());
        write_access(&access, &dir).await?;
        let admin = Admin::new(access, faults.clone(), cloud.clone());
        let arm = Arm {
            verifier: directory.verifier(),
            directory,
            cloud,
            engine: engine.into_router(),
            providers,
            clock: ports.clock,
            faults: faults.clone(),
        };
        let door = FrontDoor {
            arm: arm.into_router(),
            login: login_router(endpoints.clone()),
            graph: graph_router(endpoints.clone()),
            identity: identity_router(endpoints),
            vault,
            blob,
            website,
            check_access,
            admin,
            faults,
        };
        let handshake = TlsHandshake { acceptor, service: door.into_router() };
        serve_after(ports.listener, handshake, &scope, ServeOptions::named("azure-local"));
        ready.ready();
        scope.cancelled().await;
        // What remains after a crash is replaced by the next start.
        if let Err(error) = AdminAccess::remove(&dir) {
            tracing::debug!(%error, "access to the administration not removed");
        }
        Ok(())
    }
}

/// The account of the first-party application, which the directory's settings name.
async fn first_party(config: &AzureLocalConfig, dir: &Path) -> Result<FirstPartyAccount, RunError> {
    let tenant = accounts::guid(&config.service_tenant)?;
    let dir = dir.to_owned();
    accounts::off_runtime(move || FirstPartyAccount::ensure(&dir, tenant)).await
}

/// Lets operators of this machine find the administration.
async fn write_access(access: &AdminAccess, dir: &Path) -> Result<(), RunError> {
    const WHAT: &str = "write the access to the local cloud's administration";
    let (access, dir) = (access.clone(), dir.to_owned());
    let written = tokio::task::spawn_blocking(move || access.write(&dir)).await;
    written.map_err(|error| Fault::caused(WHAT, error))?.map_err(|error| Fault::caused(WHAT, error))
}

/// How often keys are rotated, if they are due, and unused blob chunks are removed.
const MAINTENANCE: Duration = Duration::from_mins(5);

/// Keeps the directory's keys and the blobs' chunks in order.
fn maintain(directory: Directory, blobs: BlobStore, scope: &Scope) {
    let own = directory.clone();
    scope.spawn(TaskKind::Helper, "identity-keys", async move {
        let ended = own.prepare_keys().await;
        ended.map_err(|error| Fault::caused("prepare keys of identities", error))
    });
    scope.spawn(TaskKind::Helper, "maintain", async move {
        loop {
            tokio::time::sleep(MAINTENANCE).await;
            if let Err(error) = directory.maintain().await {
                tracing::warn!(error = %chain(&error), "maintenance of the directory failed; retrying later");
            }
            if let Err(error) = blobs.maintain().await {
                tracing::warn!(error = %chain(&error), "maintenance of blobs failed; retrying later");
            }
        }
        #[expect(unreachable_code, reason = "names the error type of a loop that never ends")]
        Ok::<_, Fault>(())
    });
}

/// The api-versions of the hosted cluster provider.
const HCP: &[&str] =
    &["2024-06-10-preview", "2025-12-23-preview", "2026-06-30-preview", "2026-09-01-preview", "2026-10-01"];

/// The types of the providers that the service consists of.
const FORWARDED: &[ForwardedType] = &[
    ForwardedType {
        namespace: "Microsoft.RedHatOpenShift",
        kind: "hcpOpenShiftClusters",
        full: "Microsoft.RedHatOpenShift/hcpOpenShiftClusters",
        versions: HCP,
    },
    ForwardedType {
        namespace: "Microsoft.RedHatOpenShift",
        kind: "hcpOpenShiftClusters/nodePools",
        full: "Microsoft.RedHatOpenShift/hcpOpenShiftClusters/nodePools",
        versions: HCP,
    },
    ForwardedType {
        namespace: "Microsoft.RedHatOpenShift",
        kind: "hcpOpenShiftClusters/externalAuths",
        full: "Microsoft.RedHatOpenShift/hcpOpenShiftClusters/externalAuths",
        versions: HCP,
    },
];

fn bytes(size: ByteSize) -> usize {
    usize::try_from(size.get()).unwrap_or(usize::MAX)
}
