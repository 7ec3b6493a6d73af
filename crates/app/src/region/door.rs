//! The way to a Service of the region from this process: one of its ready pods, asked for by its node.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aro_kube_apiserver::Cluster;
use aro_kube_node_api::{NodeApi, Pipe, PodIdentity};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// How long a connection waits for somebody who answers it.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(25);

/// The way to one Service.
pub(crate) struct Door {
    cluster: Arc<Cluster>,
    client: Client,
    namespace: String,
    service: String,
    /// The name of the port that is meant, of several.
    port: &'static str,
}

/// A pod behind a Service.
struct Behind {
    node: String,
    pod: PodIdentity,
    port: u16,
}

impl Door {
    pub fn named(cluster: &Arc<Cluster>, client: &Client, namespace: &str, service: &str) -> Self {
        Self {
            cluster: cluster.clone(),
            client: client.clone(),
            namespace: namespace.to_owned(),
            service: service.to_owned(),
            // The one that people can look at.
            port: "http",
        }
    }

    /// The same to the port of a name.
    pub fn at(self, port: &'static str) -> Self {
        Self { port, ..self }
    }

    pub fn to(cluster: &Arc<Cluster>, client: &Client, service: &Service) -> Self {
        Self::named(cluster, client, &service.namespace().unwrap_or_default(), &service.name_any())
    }

    /// Why nobody gets through now. Nobody being there to answer is fine if nobody is wanted.
    pub async fn closed(&self) -> Result<Option<String>, kube::Error> {
        let behind = self.behind().await?;
        let wanted = self.wanted().await?;
        if behind.is_empty() && !wanted {
            return Ok(None);
        }
        let mut why = "nobody is ready to answer".to_owned();
        for one in behind {
            match self.reach(&one).await {
                Ok(_) => return Ok(None),
                Err(error) => why = error,
            }
        }
        Ok(Some(format!("svc/{} in {}: {why}", self.service, self.namespace)))
    }

    /// Where a port of a ready pod really is.
    pub async fn address(&self, port: u16) -> Result<SocketAddr, String> {
        let behind = self.behind().await.map_err(|error| error.to_string())?;
        let mut why = format!("nobody is ready behind svc/{} in {}", self.service, self.namespace);
        for one in behind {
            match self.node(&one)?.address(&one.pod, port).await {
                Ok(address) => return Ok(address),
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }

    fn node(&self, one: &Behind) -> Result<Arc<dyn NodeApi>, String> {
        self.cluster.nodes.get(&one.node).ok_or_else(|| format!("the node {} is not here", one.node))
    }

    /// Carries one connection to a pod and back. A pod that is just being started again is waited for.
    pub async fn forward(&self, from: TcpStream) {
        let deadline = Instant::now() + PATIENCE;
        let mut why = "nobody is ready".to_owned();
        while Instant::now() < deadline {
            match self.behind().await {
                Ok(behind) => {
                    for one in behind {
                        match self.reach(&one).await {
                            Ok(to) => return carry(from, to).await,
                            Err(error) => why = error,
                        }
                    }
                }
                Err(error) => why = error.to_string(),
            }
            tokio::time::sleep(PAUSE).await;
        }
        tracing::warn!(service = self.service, why, "a debug port found nobody behind it");
    }

    async fn reach(&self, one: &Behind) -> Result<Box<dyn Pipe>, String> {
        self.node(one)?.connect(&one.pod, one.port).await.map_err(|error| error.to_string())
    }

    async fn behind(&self) -> Result<Vec<Behind>, kube::Error> {
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), &self.namespace);
        let ours = ListParams::default().labels(&format!("kubernetes.io/service-name={}", self.service));
        let mut behind = Vec::new();
        for slice in slices.list(&ours).await? {
            let ports: Vec<_> = slice.ports.iter().flatten().collect();
            let port = ports.iter().find(|port| port.name.as_deref() == Some(self.port)).or(ports.first());
            let port = port.and_then(|port| u16::try_from(port.port?).ok());
            let Some(port) = port else { continue };
            for endpoint in slice.endpoints.into_iter().flatten() {
                let ready =
                    endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true);
                let (Some(pod), Some(node), true) = (endpoint.target_ref, endpoint.node_name, ready) else {
                    continue;
                };
                let pod = PodIdentity {
                    namespace: pod.namespace.unwrap_or_default(),
                    name: pod.name.unwrap_or_default(),
                    uid: pod.uid.unwrap_or_default(),
                };
                behind.push(Behind { node, pod, port });
            }
        }
        Ok(behind)
    }

    /// Whether any pod is wanted behind the Service.
    async fn wanted(&self) -> Result<bool, kube::Error> {
        let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
            Api::namespaced(self.client.clone(), &self.namespace);
        let deployment = deployments.get_opt(&self.service).await?;
        let replicas = deployment.and_then(|deployment| deployment.spec?.replicas);
        Ok(replicas.is_none_or(|replicas| replicas > 0))
    }
}

/// Carries bytes both ways until the pod has said all it has to say, or either side is gone.
async fn carry(mut from: TcpStream, to: Box<dyn Pipe>) {
    let (mut client_says, mut client_hears) = from.split();
    let (mut pod_says, mut pod_hears) = tokio::io::split(to);
    let there = async {
        let copied = tokio::io::copy(&mut client_says, &mut pod_hears).await;
        // It has heard all there is; it may still answer.
        copied.is_ok() && pod_hears.shutdown().await.is_ok()
    };
    let back = async {
        let _ = tokio::io::copy(&mut pod_says, &mut client_hears).await;
        let _ = client_hears.shutdown().await;
    };
    tokio::pin!(there, back);
    tokio::select! {
        well = &mut there => {
            if well {
                back.await;
            }
        }
        () = &mut back => {}
    }
}
