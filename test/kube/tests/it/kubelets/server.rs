//! An API server without anybody who acts on it: ours, or a real one.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use aro_fixtures::wait;
use aro_kube_e2e::inside::{self, CLUSTER};
use aro_kube_e2e::real::{Real, binaries};
use aro_kube_kubelet::{Kubelet, KubeletOptions, NodeSpec};
use aro_runtime::{Phase, Scope, SystemClock};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::image::TestImages;

/// An API server, and where it is.
pub struct Server {
    pub client: Client,
    /// How its administrator reaches it.
    pub config: Config,
    scope: Scope,
    made: AtomicUsize,
    data: TempDir,
    _real: Option<Real>,
}

/// A kubelet with one node.
pub struct Node {
    pub name: String,
    scope: Scope,
}

impl Node {
    /// Stops it; its pods stay as they are.
    pub async fn stop(&self) -> Result<()> {
        self.scope.close(GRACE).await.ok().context("the kubelet ended in time")
    }
}

/// How long tasks may take to end.
const GRACE: Duration = Duration::from_secs(10);

impl Server {
    /// Ours, in this process, reached over TLS as from anywhere.
    async fn ours() -> Result<Self> {
        let (data, scope) = (tempfile::tempdir()?, Scope::root("server"));
        inside::start(data.path(), &scope).await?;
        let kubeconfig = Kubeconfig::read_from(data.path().join("kubeconfig.yaml"))?;
        Self::at(kubeconfig, Some(CLUSTER), scope, data, None).await
    }

    /// A real one. `None`: there is none here, which is said aloud.
    async fn real() -> Result<Option<Self>> {
        let Some(binaries) = tokio::task::spawn_blocking(binaries).await?? else {
            aro_prerequisites::skip("no Go toolchain: nothing runs on a real API server");
            return Ok(None);
        };
        let real = Real::start(&binaries).await?;
        let kubeconfig = Kubeconfig::read_from(real.kubeconfig())?;
        Self::at(kubeconfig, None, Scope::root("server"), tempfile::tempdir()?, Some(real)).await.map(Some)
    }

    async fn at(
        kubeconfig: Kubeconfig,
        context: Option<&str>,
        scope: Scope,
        data: TempDir,
        real: Option<Real>,
    ) -> Result<Self> {
        let options =
            KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        let client = Client::try_from(config.clone())?;
        Ok(Self { client, config, scope, made: AtomicUsize::new(0), data, _real: real })
    }

    /// A new namespace in which pods can be made.
    pub async fn namespace(&self, prefix: &str) -> Result<Place> {
        let name = format!("{prefix}-{}", self.made.fetch_add(1, Ordering::Relaxed));
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": &name}}))?;
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await?;
        let place = Place { client: self.client.clone(), namespace: name };
        let (accounts, maps): (Api<ServiceAccount>, Api<ConfigMap>) = (place.api(), place.api());
        wait::until("the default account", || async { Ok(accounts.get_opt("default").await?) }).await?;
        wait::until("the root certificate", || async { Ok(maps.get_opt("kube-root-ca.crt").await?) }).await?;
        Ok(place)
    }

    /// A kubelet with a node of this name, speaking as an administrator.
    pub async fn kubelet(&self, node: &str, images: &TestImages) -> Node {
        self.kubelet_as(self.client.clone(), node, images).await
    }

    /// The same, speaking as whoever the client is.
    pub async fn kubelet_as(&self, client: Client, node: &str, images: &TestImages) -> Node {
        let scope = self.scope.child(Phase::Roles, node);
        // The same node has the same address when it comes back.
        let number = node.bytes().fold(0_u8, u8::wrapping_add);
        let spec = NodeSpec::roomy(node, Ipv4Addr::new(10, 0, 0, number));
        let dir = self.data.path().join("pods").join(node);
        let mut options = KubeletOptions::new(vec![spec], SystemClock::shared(), dir);
        options.images = Arc::new(images.clone());
        options.first_pause = Duration::from_millis(20);
        options.refresh = Duration::from_millis(200);
        let kubelet = Kubelet::start(client, options, &scope);
        kubelet.registered().await;
        Node { name: node.to_owned(), scope }
    }

    /// The directories of pods of a node.
    pub fn pod_dirs(&self, node: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.data.path().join("pods").join(node));
        let entries = entries.into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

/// A namespace.
pub struct Place {
    client: Client,
    pub namespace: String,
}

impl Place {
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Makes an object out of JSON.
    pub async fn make<K>(&self, object: Value) -> Result<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::Serialize
            + serde::de::DeserializeOwned,
    {
        Ok(self.api().create(&PostParams::default(), &serde_json::from_value(object)?).await?)
    }

    /// Makes a pod on a node, with this script and whatever else is in its spec.
    pub async fn pod(&self, name: &str, node: &Node, script: &Value, more: Value) -> Result<Pod> {
        let mut spec = json!({"nodeName": node.name, "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "x"}]});
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        let annotations = match script {
            Value::Object(scripts) if scripts.keys().any(|key| key.contains('/')) => scripts
                .iter()
                .map(|(key, script)| (key.clone(), json!(script.to_string())))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            script => json!({"aro.dev/simulate": script.to_string()}),
        };
        self.make(json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec})).await
    }

    /// Waits until a pod, as JSON, is as it should be.
    pub async fn until(&self, name: &str, what: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
        let pods: Api<Pod> = self.api();
        let last = std::sync::Mutex::new(Value::Null);
        let found = wait::until(&format!("{name}: {what}"), || async {
            let pod = pods.get_opt(name).await?.map(serde_json::to_value).transpose()?.unwrap_or_default();
            if is(&pod) {
                return Ok(Some(pod));
            }
            *last.lock().map_err(|_| anyhow::anyhow!("a poisoned lock"))? = pod["status"].clone();
            Ok(None)
        })
        .await;
        found.with_context(|| {
            format!("its status: {:#}", last.lock().map(|last| last.clone()).unwrap_or_default())
        })
    }

    pub async fn until_ready(&self, name: &str) -> Result<Value> {
        self.until(name, "ready", |pod| condition(pod, "Ready") == "True").await
    }

    pub async fn until_gone(&self, name: &str) -> Result<()> {
        self.until(name, "gone", Value::is_null).await.map(drop)
    }
}

/// The status of a condition of a pod.
pub fn condition<'a>(pod: &'a Value, kind: &str) -> &'a str {
    let conditions = pod["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|one| one["type"] == kind);
    found.and_then(|one| one["status"].as_str()).unwrap_or_default()
}

pub async fn on_ours(scenarios: impl AsyncFn(&Server) -> Result<()>) -> Result<()> {
    let server = Server::ours().await?;
    scenarios(&server).await.context("on ours")?;
    server.scope.close(GRACE).await.ok().context("everything ended in time")
}

pub async fn on_real(scenarios: impl AsyncFn(&Server) -> Result<()>) -> Result<()> {
    let Some(server) = Server::real().await? else { return Ok(()) };
    scenarios(&server).await.context("on a real API server")?;
    server.scope.close(GRACE).await.ok().context("everything ended in time")
}
