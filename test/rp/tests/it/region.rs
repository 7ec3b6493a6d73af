//! Frontend and backend over one store and one scripted Clusters Service.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aro_arm::ResourceId;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::operation::Operation;
use aro_arm::hcp::service_provider::ServiceProviderCluster;
use aro_arm::hcp::version::ApiVersion;
use aro_backend::{Backend, BackendConfig, BackendPorts};
use aro_base::{ManualClock, SignedDuration, Timestamp};
use aro_fixtures::wait::until;
use aro_fixtures::{Names, Reply, TestClient, cluster_body};
use aro_frontend::{DryRun, Frontend, FrontendConfig, FrontendPorts, OfferedReleases};
use aro_ocm::Root;
use aro_peers::{ClustersService, ClustersServiceOptions};
use aro_rp_e2e::clusters_service::{Fault, ScriptedClustersService};
use aro_rp_store::{Documents, ListOf, OutboxEntry};
use aro_runtime::{Listener, Metrics, Period, Readiness, Role as _, Scope, Section as _};
use aro_store::fault::{FaultStore, Faults};
use aro_store::{SharedStore, UnreadableDocuments};
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use http::Method;
use serde_json::{Value, json};

pub const GA: ApiVersion = ApiVersion::V2026_10_01;
const GRACE: Duration = Duration::from_secs(15);

pub struct Region {
    pub arm: TestClient,
    pub names: Names,
    pub clock: Arc<ManualClock>,
    pub cs: ScriptedClustersService,
    clusters_service: ClustersService,
    /// The store without faults.
    pub store: SharedStore,
    /// Faults of the store as the backends see it.
    pub faults: Faults,
    faulty: SharedStore,
    pub metrics: Metrics,
    _directory: tempfile::TempDir,
}

/// `path?api-version=…`.
pub fn at(path: &str) -> String {
    format!("{path}?api-version={GA}")
}

impl Region {
    /// A frontend with a registered subscription; backends are started by the test.
    pub async fn start() -> Result<Self> {
        let cs = ScriptedClustersService::default();
        let client = client(&cs);
        Self::over(cs, client).await
    }

    /// The same over another Clusters Service.
    pub async fn over(cs: ScriptedClustersService, clusters_service: ClustersService) -> Result<Self> {
        let clock = ManualClock::at(Timestamp::from_second(1_800_000_000)?);
        let directory = tempfile::tempdir()?;
        let store: SharedStore = SqliteStore::open(SqliteOptions::new(directory.path()), clock.clone())?;
        let (faulty, faults) = FaultStore::wrap(store.clone(), 7);
        let ports = ports(&store, &clock, &clusters_service).await?;
        let frontend = Frontend::build(FrontendConfig::default().check()?, ports)?;
        let arm = TestClient::in_process(frontend.router());
        let names = Names::default();
        arm.register(&names.subscription).await?;
        let metrics = Metrics::new();
        Ok(Self {
            arm,
            names,
            clock,
            cs,
            clusters_service,
            store,
            faults,
            faulty,
            metrics,
            _directory: directory,
        })
    }

    /// The same with one backend.
    pub async fn with_backend() -> Result<(Self, Scope)> {
        let region = Self::start().await?;
        let scope = region.backend().await?;
        Ok((region, scope))
    }

    /// Starts a replica of the backend. It ends with the returned scope. One that cannot reach its store ends at once, and is
    /// started again, as a kubelet does.
    pub async fn backend(&self) -> Result<Scope> {
        loop {
            let (scope, readiness) = (Scope::root("backend"), Readiness::new());
            let config = BackendConfig {
                lease: Period::millis(300),
                shards: 4,
                create_grace: Period::secs(GRACE.as_secs()),
                event_wait: Period::secs(5),
                ..BackendConfig::default()
            };
            let ports = BackendPorts {
                store: self.faulty.clone(),
                clusters_service: self.clusters_service.clone(),
                clock: self.clock.clone(),
                metrics: self.metrics.clone(),
                readiness: readiness.clone(),
            };
            aro_runtime::launch::<Backend>(&scope, config.check()?, ports)?;
            let ready = tokio::time::timeout(Duration::from_secs(10), readiness.differs_from(false));
            tokio::select! {
                ready = ready => {
                    ready?;
                    return Ok(scope);
                }
                _ = scope.failed() => Self::stop(scope).await?,
            }
        }
    }

    /// Runs a second frontend, whose controllers continue deletions. It ends with the returned scope.
    pub async fn frontend_scope(&self) -> Result<Scope> {
        let scope = Scope::root("frontend");
        let config = FrontendConfig::default().check()?;
        aro_runtime::launch::<Frontend>(
            &scope,
            config,
            ports(&self.store, &self.clock, &self.clusters_service).await?,
        )?;
        Ok(scope)
    }

    /// Creates of clusters are on their way until the test releases them; their senders give up.
    pub fn delay_creates(&self) {
        self.cs.fault(Method::POST, "/clusters", std::iter::repeat_n(Fault::Delayed, 50));
    }

    pub fn documents(&self) -> Documents {
        Documents::new(self.store.clone(), UnreadableDocuments::default())
    }

    pub async fn put_cluster(&self, name: &str) -> Result<Reply> {
        let body = cluster_body(&self.names, name, GA);
        self.arm.put(&at(&self.names.cluster(name)), &body).await?.expect(201)
    }

    /// A cluster that is Succeeded.
    pub async fn ready_cluster(&self, name: &str) -> Result<String> {
        self.put_cluster(name).await?;
        let path = self.cluster_in_service(name).await?;
        self.finish_cluster(&path);
        self.state(&self.names.cluster(name), "Succeeded").await?;
        Ok(path)
    }

    /// Waits until Clusters Service has the cluster; returns its path.
    pub async fn cluster_in_service(&self, name: &str) -> Result<String> {
        let collection = format!("{}/clusters", Root::AroHcp.path());
        until("the cluster in Clusters Service", || async {
            let found = self.cs.objects(&collection).into_iter().find(|(_, object)| {
                object["azure"]["resource_name"] == json!(name.to_lowercase()) && object["kind"] == "Cluster"
            });
            Ok(found.map(|(path, _)| path))
        })
        .await
    }

    /// Does what the pipelines of Clusters Service and HyperShift would do.
    pub fn finish_cluster(&self, path: &str) {
        self.cs.change(path, |cluster| {
            let release = cluster["version"]["id"].as_str().unwrap().trim_start_matches("openshift-v").to_owned();
            cluster["state"] = json!("ready");
            cluster["status"] = json!({"state": "ready"});
            cluster["domain_prefix"] = json!("a7p4o0q6e6q3a5d");
            cluster["dns"] = json!({"base_domain": "uuok.uksouth.aroapp-hcp.io"});
            cluster["api"]["url"] = json!("https://api.a7p4o0q6e6q3a5d.uuok.uksouth.aroapp-hcp.io:443");
            cluster["console"] = json!({"url": "https://console.example.com"});
            for identity in cluster["azure"]["operators_authentication"]["managed_identities"]
                ["control_plane_operators_managed_identities"]
                .as_object_mut()
                .unwrap()
                .values_mut()
            {
                identity["client_id"] = json!("client");
                identity["principal_id"] = json!("principal");
            }
            cluster["aro"] = json!({
                "hosted_cluster_namespace": "ocm-test-x", "hcp_namespace": "ocm-test-x-a7p4o0q6e6q3a5d",
                "conditions": [{"type": "Available", "status": "True", "reason": "AsExpected", "message": ""}],
                "version_history": [{"version": release, "state": "Completed"}],
                "control_plane_endpoint": {"host": "api.example.com", "port": 443},
                "serving_ca": "-----BEGIN CERTIFICATE-----", "issuer_url": "https://issuer.example.com/x",
            });
        });
    }

    /// The state of a cluster, as Clusters Service shows it.
    pub fn set_cluster_state(&self, path: &str, state: &str) {
        self.cs.change(path, |cluster| {
            cluster["state"] = json!(state);
            cluster["status"] = json!({"state": state});
        });
    }

    pub fn set_child_state(&self, path: &str, state: &str) {
        self.cs.change(path, |child| child["status"]["state"]["value"] = json!(state));
    }

    /// Waits for the state of a resource; returns its body.
    pub async fn state(&self, path: &str, state: &str) -> Result<Value> {
        let what = format!("{path} to be {state}");
        until(&what, || async {
            let body = self.arm.get(&at(path)).await?.json();
            Ok((body["properties"]["provisioningState"] == state).then_some(body))
        })
        .await
    }

    /// Waits until a resource is gone.
    pub async fn gone(&self, path: &str) -> Result<()> {
        until("the resource to be gone", || async {
            Ok((self.arm.get(&at(path)).await?.status == 404).then_some(()))
        })
        .await
    }

    /// Waits for the end of the operation that an answer names; returns its status.
    pub async fn ended(&self, accepted: &Reply) -> Result<Value> {
        let link = accepted.header("azure-asyncoperation").context("no operation")?;
        let path = link.split_once("://").and_then(|(_, rest)| rest.split_once('/')).context("a URL")?;
        let path = format!("/{}", path.1);
        until("the operation to end", || async {
            let status = self.arm.get(&path).await?.expect(200)?.json();
            let state = status["status"].as_str().unwrap_or_default();
            Ok(matches!(state, "Succeeded" | "Failed" | "Canceled").then(|| status.clone()))
        })
        .await
    }

    pub async fn cluster(&self, name: &str) -> Result<Cluster> {
        let id = ResourceId::parse(&self.names.cluster(name))?;
        Ok(self.documents().find::<Cluster>(&id).await?.context("no cluster")?.value)
    }

    pub async fn provider(&self, name: &str) -> Result<ServiceProviderCluster> {
        let id = ResourceId::parse(&self.names.cluster(name))?.child("serviceProviderClusters", "default");
        Ok(self.documents().find::<ServiceProviderCluster>(&id).await?.context("no document")?.value)
    }

    /// Nothing is owed, and no operation is under way.
    pub async fn settled(&self) -> Result<()> {
        until("nothing to be owed", || async {
            let owed = self.documents().all(&ListOf::<OutboxEntry>::everywhere()).await?.complete()?;
            let operations = self.documents().all(&ListOf::<Operation>::everywhere()).await?.complete()?;
            let under_way = operations.iter().any(|operation| !operation.value.status.is_terminal());
            Ok((owed.is_empty() && !under_way).then_some(()))
        })
        .await
    }

    /// Every document that is left, by type, without operations, their journal and what belongs to the subscription.
    pub async fn left(&self) -> Result<Vec<String>> {
        let query = aro_store::Query::all(aro_rp_store::RESOURCES);
        let mut left = Vec::new();
        let mut page = aro_store::Page::first(100);
        loop {
            let paged = self.store.query(&query, page).await?;
            left.extend(paged.items.iter().map(|document| document.resource_type.clone()));
            match paged.next {
                Some(next) => page = aro_store::Page { size: 100, after: Some(next) },
                None => break,
            }
        }
        left.retain(|kind| {
            !kind.ends_with("hcpOperationStatuses") && kind != "Microsoft.Resources/subscriptions"
        });
        Ok(left)
    }

    pub fn advance(&self, by: Duration) -> Result<()> {
        self.clock.advance(SignedDuration::try_from(by)?);
        Ok(())
    }

    /// Ends a backend.
    pub async fn stop(scope: Scope) -> Result<()> {
        let closed = scope.close(Duration::from_secs(10)).await;
        ensure!(closed.is_ok(), "late: {closed:?}");
        Ok(())
    }
}

async fn ports(
    store: &SharedStore,
    clock: &Arc<ManualClock>,
    clusters_service: &ClustersService,
) -> Result<FrontendPorts> {
    let releases = OfferedReleases::new(clusters_service);
    Ok(FrontendPorts {
        location: "uksouth".to_owned(),
        listener: Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), "frontend.listen").await?,
        store: store.clone(),
        clock: clock.clone(),
        catalogue: Arc::new(releases.clone()),
        preflight: Arc::new(DryRun::new(clusters_service.clone(), releases)),
        metrics: Metrics::new(),
        readiness: Readiness::new(),
    })
}

/// A client of the scripted Clusters Service.
pub fn client(cs: &ScriptedClustersService) -> ClustersService {
    let options = ClustersServiceOptions {
        address: "clusters-service:8000".to_owned(),
        deadline: Duration::from_secs(5),
    };
    ClustersService::over(Arc::new(cs.clone()), &options)
}
