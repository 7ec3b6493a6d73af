//! A frontend, a client of it, and a backend that completes operations on request of a test.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Result;
use aro_arm::hcp::version::ApiVersion;
use aro_base::{ManualClock, Timestamp};
use aro_fixtures::{CompletingBackend, Names, Reply, TestClient, cluster_body, node_pool_body};
use aro_frontend::{AcceptAll, BuiltInCatalogue, Frontend, FrontendConfig, FrontendPorts};
use aro_runtime::{Listener, Metrics, Readiness, Role as _, Section as _};
use aro_store::SharedStore;
use aro_store::fault::{FaultStore, Faults};
use aro_store_sqlite::{SqliteOptions, SqliteStore};

pub const GA: ApiVersion = ApiVersion::V2026_10_01;

/// `path?api-version=…`.
pub fn at(path: &str) -> String {
    format!("{path}?api-version={GA}")
}

/// The path of a link in an answer.
pub fn path_of(link: &str) -> String {
    link.split_once("://")
        .and_then(|(_, rest)| rest.split_once('/'))
        .map(|(_, path)| format!("/{path}"))
        .unwrap()
}

pub struct Fixture {
    pub arm: TestClient,
    pub names: Names,
    pub backend: CompletingBackend,
    pub clock: Arc<ManualClock>,
    pub metrics: Metrics,
    /// The store without faults.
    pub store: SharedStore,
    /// Faults of the store as the frontend sees it.
    pub faults: Faults,
    _directory: tempfile::TempDir,
}

impl Fixture {
    /// A frontend with one registered subscription.
    pub async fn start() -> Result<Self> {
        let clock = ManualClock::at(Timestamp::from_second(1_800_000_000)?);
        let directory = tempfile::tempdir()?;
        let store: SharedStore = SqliteStore::open(SqliteOptions::new(directory.path()), clock.clone())?;
        let (faulty, faults) = FaultStore::wrap(store.clone(), 1);
        let metrics = Metrics::new();
        let ports = FrontendPorts {
            location: "uksouth".to_owned(),
            listener: Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), "frontend.listen").await?,
            store: faulty,
            clock: clock.clone(),
            catalogue: Arc::new(BuiltInCatalogue),
            preflight: Arc::new(AcceptAll),
            metrics: metrics.clone(),
            readiness: Readiness::new(),
        };
        let frontend = Frontend::build(FrontendConfig::default().check()?, ports)?;
        let arm = TestClient::in_process(frontend.router());
        let names = Names::default();
        arm.register(&names.subscription).await?;
        let backend = CompletingBackend::new(store.clone(), clock.clone());
        Ok(Self { arm, names, backend, clock, metrics, store, faults, _directory: directory })
    }

    /// A frontend with one ready cluster.
    pub async fn with_cluster(name: &str) -> Result<Self> {
        let fixture = Self::start().await?;
        fixture.put_cluster(name).await?;
        fixture.backend.complete_all().await?;
        Ok(fixture)
    }

    pub async fn put_cluster(&self, name: &str) -> Result<Reply> {
        let body = cluster_body(&self.names, name, GA);
        self.arm.put(&at(&self.names.cluster(name)), &body).await?.expect(201)
    }

    pub async fn put_node_pool(&self, cluster: &str, name: &str) -> Result<Reply> {
        self.arm.put(&at(&self.names.node_pool(cluster, name)), &node_pool_body(GA)).await?.expect(201)
    }
}
