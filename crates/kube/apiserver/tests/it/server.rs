//! A whole server over TLS, a node that is only pretended, and kubectl.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use aro_fixtures::wait;
use aro_kube_apiserver::kubeconfig::{Entry, render};
use aro_kube_apiserver::tls::ByServerName;
use aro_kube_apiserver::{Cluster, Clusters, Observer};
use aro_kube_node_api::{LogOptions, NodeApi, NodeError, Pipe, PodIdentity};
use aro_runtime::{Listener, Metrics, Scope, SystemClock};
use aro_web::{BodyLimits, ServeOptions, serve_after};
use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::support::body_limits;

/// What a server allows its clients.
pub struct ServerLimits {
    pub serve: ServeOptions,
    pub body: BodyLimits,
    pub body_share: u64,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self { serve: ServeOptions::named("kube"), body: body_limits(1 << 20), body_share: 16 << 20 }
    }
}

pub struct Server {
    pub address: SocketAddr,
    pub cluster: Arc<Cluster>,
    pub clusters: Clusters,
    pub scope: Scope,
    pub kubeconfig: PathBuf,
    pub node: Arc<FakeNode>,
    _dir: tempfile::TempDir,
}

impl Server {
    pub async fn start() -> Result<Self> {
        Self::start_with(ServerLimits::default()).await
    }

    pub async fn start_with(limits: ServerLimits) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let scope = Scope::root("test");
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), "kube.listen").await?;
        let address = listener.local_addr();
        let objects = dir.path().join("objects");
        let clusters = Clusters::open(&objects, false, 1000, "kube.localhost", SystemClock::shared())?;
        clusters.start_internal_controllers(&aro_control::ReconcileMetrics::default(), &scope);
        let cluster = clusters.ensure("one").await?;
        let observer = Observer::new(&Metrics::new());
        let handshake = ByServerName {
            clusters: clusters.clone(),
            default: None,
            body: limits.body,
            body_share: limits.body_share,
            observer,
        };
        serve_after(listener, handshake, &scope, limits.serve);
        let admin = cluster.keys.admin(cluster.now())?;
        let entry = Entry {
            cluster: "one",
            server: address,
            server_name: &clusters.host("one"),
            authority: cluster.keys.authority.certificate(),
            user: &admin,
        };
        let kubeconfig = dir.path().join("kubeconfig.yaml");
        std::fs::write(&kubeconfig, render(&[entry]).expose())?;
        let node = Arc::new(FakeNode::default());
        cluster.nodes.add("n", node.clone());
        Ok(Self { address, cluster, clusters, scope, kubeconfig, node, _dir: dir })
    }

    pub async fn client(&self) -> Result<kube::Client> {
        Ok(aro_kube::of_kubeconfig(&self.kubeconfig, None).await?)
    }

    /// A pod that runs on the pretended node, as far as anybody can tell.
    pub async fn pod(&self, name: &str, containers: &[&str], node: Option<&str>) -> Result<()> {
        let client = self.client().await?;
        let accounts: kube::Api<k8s_openapi::api::core::v1::ServiceAccount> =
            kube::Api::default_namespaced(client.clone());
        wait::until("the account of pods", || async { Ok(accounts.get_opt("default").await?) }).await?;
        let containers: Vec<Value> =
            containers.iter().map(|name| json!({"name": name, "image": "x"})).collect();
        let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": containers}});
        if let Some(node) = node {
            pod["spec"]["nodeName"] = json!(node);
        }
        let pods: kube::Api<k8s_openapi::api::core::v1::Pod> = kube::Api::default_namespaced(client);
        let pod = pods.create(&kube::api::PostParams::default(), &serde_json::from_value(pod)?).await?;
        let status =
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        let name = pod.metadata.name.unwrap_or_default();
        pods.patch_status(&name, &kube::api::PatchParams::default(), &kube::api::Patch::Merge(&status))
            .await?;
        Ok(())
    }

    pub async fn end(self) -> Result<()> {
        self.clusters.end_watches();
        let closed = self.scope.close(Duration::from_secs(10)).await;
        self.clusters.close();
        Ok(closed?)
    }
}

/// A node that has logs of its own invention, and forwards to real ports of this machine.
#[derive(Default)]
pub struct FakeNode {
    /// Which real port is behind a pod's port.
    pub ports: Mutex<HashMap<u16, u16>>,
    /// What was asked for.
    pub asked: Mutex<Vec<(String, String, LogOptions)>>,
    /// Why logs are refused.
    pub refusal: Mutex<Option<NodeError>>,
    /// Followed logs and connections that are open.
    pub open: Arc<AtomicUsize>,
}

/// Counts itself.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl FakeNode {
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl NodeApi for FakeNode {
    async fn logs(
        &self,
        pod: &PodIdentity,
        container: &str,
        options: &LogOptions,
    ) -> Result<BoxStream<'static, Bytes>, NodeError> {
        self.asked.lock().push((pod.name.clone(), container.to_owned(), options.clone()));
        if let Some(refusal) = self.refusal.lock().clone() {
            return Err(refusal);
        }
        let lines = futures::stream::iter((0..3).map(|line| Bytes::from(format!("line {line}\n"))));
        if !options.follow {
            return Ok(lines.boxed());
        }
        let counted = Counted::new(&self.open);
        let forever = futures::stream::pending().inspect(move |_| {
            let _ = &counted;
        });
        Ok(lines.chain(forever).boxed())
    }

    async fn connect(&self, _pod: &PodIdentity, port: u16) -> Result<Box<dyn Pipe>, NodeError> {
        let real = self.ports.lock().get(&port).copied();
        let Some(real) = real else {
            return Err(NodeError::BadRequest(format!("port {port} is closed")));
        };
        let connected = TcpStream::connect(("127.0.0.1", real)).await;
        let stream = connected.map_err(|error| NodeError::Unavailable(error.to_string()))?;
        Ok(Box::new(CountedPipe { stream, _counted: Counted::new(&self.open) }))
    }
}

struct CountedPipe {
    stream: TcpStream,
    _counted: Counted,
}

impl tokio::io::AsyncRead for CountedPipe {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl tokio::io::AsyncWrite for CountedPipe {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        std::pin::Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

pub use aro_prerequisites::kubectls;

pub struct Kubectl {
    pub program: PathBuf,
    pub kubeconfig: PathBuf,
    /// Over WebSockets, or over SPDY as old ones do.
    pub websockets: bool,
    /// How much it tells about what it does.
    pub verbosity: u8,
}

impl Kubectl {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments)
            .env("KUBECTL_PORT_FORWARD_WEBSOCKETS", if self.websockets { "true" } else { "false" })
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs it; its exit code, and what it wrote.
    pub async fn run(&self, arguments: &[&str]) -> Result<(i32, String, String)> {
        let output = tokio::time::timeout(wait::DEADLINE, self.command(arguments).output()).await??;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr)))
    }

    pub fn start(&self, arguments: &[&str]) -> Result<Child> {
        Ok(self.command(arguments).spawn()?)
    }

    /// Forwards ports of a pod, to free ones of this machine; returns when it listens.
    pub async fn forward(&self, pod: &str, ports: &[u16]) -> Result<Forward> {
        let mut arguments = vec![
            "port-forward".to_owned(),
            format!("pod/{pod}"),
            "--address=127.0.0.1".to_owned(),
            format!("-v={}", self.verbosity),
        ];
        arguments.extend(ports.iter().map(|port| format!(":{port}")));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut child = self.start(&arguments)?;
        let stdout = child.stdout.take().context("stdout")?;
        let mut lines = BufReader::new(stdout).lines();
        let mut local = Vec::new();
        while local.len() < ports.len() {
            let line = tokio::time::timeout(wait::DEADLINE, lines.next_line()).await??;
            let Some(line) = line else { bail!("kubectl port-forward ended: {}", self.stderr(child).await) };
            let port =
                line.strip_prefix("Forwarding from 127.0.0.1:").and_then(|rest| rest.split(' ').next());
            local.push(port.with_context(|| line.clone())?.parse()?);
        }
        Ok(Forward { child, local, _lines: lines })
    }

    async fn stderr(&self, child: Child) -> String {
        let output = child.wait_with_output().await;
        output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default()
    }
}

pub struct Forward {
    pub child: Child,
    pub local: Vec<u16>,
    /// A closed pipe would end kubectl.
    _lines: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
}

/// All kubectls, in both ways of forwarding.
pub fn ways(kubeconfig: &Path) -> Vec<Kubectl> {
    let all = kubectls().into_iter().flat_map(|program| [(program.clone(), true), (program, false)]);
    all.map(|(program, websockets)| Kubectl {
        program,
        kubeconfig: kubeconfig.to_owned(),
        websockets,
        verbosity: 0,
    })
    .collect()
}
