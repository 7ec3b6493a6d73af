//! A cluster with our workload controllers on it and a kubelet that pretends: on our API server, or on a real one.
//!
//! A scenario is a function of a [`World`] and must not care which one it is. Each works in a namespace of its own
//! ([`World::namespace`]), so that several share a world: starting a real API server takes seconds.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use aro_control::ReconcileMetrics;
use aro_fixtures::wait;
use aro_kube::of_kubeconfig;
use aro_kube_apiserver::ClusterService;
use aro_kube_apiserver::identity::user::User;
use aro_kube_controllers::{Workloads, WorkloadsOptions};
use aro_kube_e2e::inside::{self, CLUSTER};
use aro_kube_e2e::real::{Real, binaries};
use aro_runtime::{Phase, Scope, SystemClock};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::PostParams;
use kube::{Api, Client, Resource};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::Mutex;

use super::kubelet::{KubeletOptions, TestKubelet};
use crate::support::{Kubectl, kubectls};

/// A cluster with controllers and a kubelet.
pub struct World {
    /// Speaks as the cluster's administrator.
    pub client: Client,
    /// `ours` or `real`, for names.
    pub kind: &'static str,
    kubeconfig: PathBuf,
    context: &'static str,
    scope: Scope,
    controllers: Mutex<Option<(Workloads, Scope)>>,
    made: AtomicUsize,
    data: TempDir,
    _real: Option<Real>,
}

/// How long tasks may take to end.
const GRACE: Duration = Duration::from_secs(10);

impl World {
    /// Our API server, in this process; the listener is for kubectl.
    pub async fn ours() -> Result<Self> {
        let (data, scope) = (tempfile::tempdir()?, Scope::root("world"));
        // The world has controllers and nodes of its own.
        let cluster = inside::start(data.path(), &scope).await?;
        let client = aro_kube::of_service(ClusterService::in_process(cluster, User::admin()));
        let kubeconfig = data.path().join("kubeconfig.yaml");
        Self::furnish("ours", client, kubeconfig, CLUSTER, scope, data, None).await
    }

    /// A real API server. `None`: there is none here, which is said aloud.
    pub async fn real() -> Result<Option<Self>> {
        let Some(binaries) = tokio::task::spawn_blocking(binaries).await?? else {
            aro_prerequisites::skip("no Go toolchain: nothing runs on a real API server");
            return Ok(None);
        };
        let real = Real::start(&binaries).await?;
        let kubeconfig = real.kubeconfig();
        let client = of_kubeconfig(&kubeconfig, None).await?;
        let (data, scope) = (tempfile::tempdir()?, Scope::root("world"));
        Self::furnish("real", client, kubeconfig, "real", scope, data, Some(real)).await.map(Some)
    }

    async fn furnish(
        kind: &'static str,
        client: Client,
        kubeconfig: PathBuf,
        context: &'static str,
        scope: Scope,
        data: TempDir,
        real: Option<Real>,
    ) -> Result<Self> {
        let (controllers, made) = (Mutex::new(None), AtomicUsize::new(0));
        let world = Self { client, kind, kubeconfig, context, scope, controllers, made, data, _real: real };
        world.start_controllers().await;
        Ok(world)
    }

    fn options(&self) -> WorkloadsOptions {
        WorkloadsOptions {
            clock: SystemClock::shared(),
            metrics: ReconcileMetrics::default(),
            node_grace: Duration::from_secs(5),
            volumes: Some(self.data.path().join("volumes")),
        }
    }

    /// Starts all controllers, if they do not run, and returns when they know everything.
    pub async fn start_controllers(&self) {
        let mut running = self.controllers.lock().await;
        if running.is_none() {
            let scope = self.scope.child(Phase::Roles, "workloads");
            let workloads = Workloads::start(self.client.clone(), self.options(), &scope);
            workloads.synced().await;
            *running = Some((workloads, scope));
        }
    }

    /// Stops all controllers; the cluster and its kubelets stay.
    pub async fn stop_controllers(&self) -> Result<()> {
        if let Some((_, scope)) = self.controllers.lock().await.take() {
            scope.close(GRACE).await.ok().context("the controllers ended in time")?;
        }
        Ok(())
    }

    /// Ends it all.
    pub async fn stop(self) -> Result<()> {
        self.stop_controllers().await?;
        self.scope.close(GRACE).await.ok().context("everything ended in time")
    }

    /// Starts a kubelet with these nodes; it runs until the world or the kubelet is stopped.
    pub async fn kubelet(&self, options: KubeletOptions) -> Result<TestKubelet> {
        TestKubelet::start(self.client.clone(), options, &self.scope).await
    }

    /// A new namespace in which pods can be made.
    pub async fn namespace(&self, prefix: &str) -> Result<String> {
        let name = format!("{prefix}-{}", self.made.fetch_add(1, Ordering::Relaxed));
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": &name}}))?;
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await?;
        let accounts: Api<ServiceAccount> = self.api(&name);
        wait::until("the default account", || async { Ok(accounts.get_opt("default").await?) }).await?;
        Ok(name)
    }

    /// The objects of one kind in a namespace.
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Every kubectl there is, speaking to this cluster.
    pub fn kubectls(&self) -> Result<Vec<Kubectl>> {
        let new = |program: &PathBuf| Kubectl::new(program, &self.kubeconfig, self.context);
        kubectls().iter().map(new).collect()
    }

    /// The newest kubectl there is.
    pub fn kubectl(&self) -> Result<Kubectl> {
        self.kubectls()?.pop().context("a kubectl")
    }

    /// Where the controllers put volumes.
    #[allow(dead_code, reason = "for scenarios to come")]
    pub fn volumes(&self) -> PathBuf {
        Path::new(self.data.path()).join("volumes")
    }
}

/// Runs scenarios on our API server.
pub async fn on_ours(scenarios: impl AsyncFn(&World) -> Result<()>) -> Result<()> {
    run(World::ours().await?, scenarios).await
}

/// Runs scenarios on a real API server, if there is one.
pub async fn on_real(scenarios: impl AsyncFn(&World) -> Result<()>) -> Result<()> {
    match World::real().await? {
        Some(world) => run(world, scenarios).await,
        None => Ok(()),
    }
}

async fn run(world: World, scenarios: impl AsyncFn(&World) -> Result<()>) -> Result<()> {
    scenarios(&world).await.with_context(|| format!("on {}", world.kind))?;
    world.stop().await
}
