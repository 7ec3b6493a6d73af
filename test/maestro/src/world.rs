//! A cluster for tests: our API server in this process, or a real one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use aro_fixtures::wait;
use aro_kube::of_kubeconfig;
use aro_kube_apiserver::ClusterService;
use aro_kube_apiserver::identity::user::User;
use aro_kube_e2e::inside;
use aro_kube_e2e::real::{Real, binaries};
use aro_runtime::Scope;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A cluster with the definitions of works.
pub struct World {
    /// The administrator's client.
    pub client: Client,
    /// `ours` or `real`, for names.
    pub kind: &'static str,
    /// Owns the tasks.
    pub scope: Scope,
    made: AtomicUsize,
    _data: TempDir,
    _real: Option<Real>,
}

/// The deadline for tasks to end.
const GRACE: Duration = Duration::from_secs(10);

impl World {
    /// Our API server, in this process.
    pub async fn ours() -> Result<Self> {
        let (data, scope) = (tempfile::tempdir()?, Scope::root("world"));
        let cluster = inside::start(data.path(), &scope).await?;
        let client = aro_kube::of_service(ClusterService::in_process(cluster, User::admin()));
        Self::furnish("ours", client, scope, data, None).await
    }

    /// A real API server. `None`, with a log line, if there is none.
    pub async fn real() -> Result<Option<Self>> {
        let Some(binaries) = tokio::task::spawn_blocking(binaries).await?? else {
            aro_prerequisites::skip("no Go toolchain: nothing runs on a real API server");
            return Ok(None);
        };
        let real = Real::start(&binaries).await?;
        let client = of_kubeconfig(&real.kubeconfig(), None).await?;
        let (data, scope) = (tempfile::tempdir()?, Scope::root("world"));
        Self::furnish("real", client, scope, data, Some(real)).await.map(Some)
    }

    async fn furnish(
        kind: &'static str,
        client: Client,
        scope: Scope,
        data: TempDir,
        real: Option<Real>,
    ) -> Result<Self> {
        let world = Self { client, kind, scope, made: AtomicUsize::new(0), _data: data, _real: real };
        let api: Api<CustomResourceDefinition> = Api::all(world.client.clone());
        for definition in aro_crds::definitions() {
            api.create(&PostParams::default(), definition.object()).await?;
        }
        for definition in aro_crds::definitions() {
            wait::until("the definition is served", || async {
                let found = api.get(definition.name()).await?;
                let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
                let served = |name: &str| conditions.iter().any(|c| c.type_ == name && c.status == "True");
                Ok((served("Established") && served("NamesAccepted")).then_some(()))
            })
            .await?;
        }
        Ok(world)
    }

    /// Stops it.
    pub async fn stop(self) -> Result<()> {
        self.scope.close(GRACE).await.ok().context("everything ended in time")
    }

    /// A unique name.
    pub fn word(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.made.fetch_add(1, Ordering::Relaxed))
    }

    /// A new namespace.
    pub async fn namespace(&self, prefix: &str) -> Result<String> {
        let name = self.word(prefix);
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": &name}}))?;
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await?;
        Ok(name)
    }

    /// Objects of any kind in a namespace; cluster-scoped if it is empty.
    pub fn objects(&self, api_version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }

    /// The configmaps of a namespace.
    pub fn config_maps(&self, namespace: &str) -> Api<DynamicObject> {
        self.objects("v1", "ConfigMap", namespace)
    }
}

/// A configmap with one member `a`.
pub fn config_map(namespace: &str, name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": {"a": value}})
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
