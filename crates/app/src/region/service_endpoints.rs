//! The ready pods behind a Service of an embedded cluster, and connections to them through their nodes.

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

/// How long a forwarded connection waits for a ready pod.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two lookups of ready pods.
const LOOKUP_PAUSE: Duration = Duration::from_millis(25);

/// What is reported while no pod is ready.
const NO_ENDPOINTS: &str = "has no ready endpoints";

/// The endpoints of one Service.
pub(crate) struct ServiceEndpoints {
    cluster: Arc<Cluster>,
    client: Client,
    namespace: String,
    service: String,
    /// The name of the Service port; a Service without such a name has its first port used.
    port: &'static str,
}

/// A ready pod of a Service.
struct Endpoint {
    node: String,
    pod: PodIdentity,
    port: u16,
}

impl ServiceEndpoints {
    pub fn of(cluster: &Arc<Cluster>, client: &Client, namespace: &str, service: &str) -> Self {
        Self {
            cluster: cluster.clone(),
            client: client.clone(),
            namespace: namespace.to_owned(),
            service: service.to_owned(),
            port: "http",
        }
    }

    /// The same for the port of a name.
    pub fn on_port(self, port: &'static str) -> Self {
        Self { port, ..self }
    }

    pub fn of_service(cluster: &Arc<Cluster>, client: &Client, service: &Service) -> Self {
        Self::of(cluster, client, &service.namespace().unwrap_or_default(), &service.name_any())
    }

    /// Why no pod accepts connections now; `None` if one does, or if the Deployment is scaled to zero.
    pub async fn unavailable(&self) -> Result<Option<String>, kube::Error> {
        let ready = self.ready().await?;
        if ready.is_empty() && self.is_scaled_to_zero().await? {
            return Ok(None);
        }
        let mut reason = NO_ENDPOINTS.to_owned();
        for endpoint in ready {
            match self.connect(&endpoint).await {
                Ok(_) => return Ok(None),
                Err(error) => reason = error,
            }
        }
        Ok(Some(self.describe(&reason)))
    }

    fn describe(&self, reason: &str) -> String {
        format!("service {}/{} {reason}", self.namespace, self.service)
    }

    /// The loopback address of a port of a ready pod.
    pub async fn address(&self, port: u16) -> Result<SocketAddr, String> {
        let ready = self.ready().await.map_err(|error| error.to_string())?;
        let mut reason = self.describe(NO_ENDPOINTS);
        for endpoint in ready {
            match self.node(&endpoint)?.address(&endpoint.pod, port).await {
                Ok(address) => return Ok(address),
                Err(error) => reason = error.to_string(),
            }
        }
        Err(reason)
    }

    fn node(&self, endpoint: &Endpoint) -> Result<Arc<dyn NodeApi>, String> {
        let node = self.cluster.nodes.get(&endpoint.node);
        node.ok_or_else(|| format!("node {} is not in this process", endpoint.node))
    }

    /// Forwards one connection to a ready pod; waits for one while pods restart.
    pub async fn forward(&self, from: TcpStream) {
        let deadline = Instant::now() + READY_TIMEOUT;
        let mut reason = NO_ENDPOINTS.to_owned();
        while Instant::now() < deadline {
            match self.ready().await {
                Ok(ready) => {
                    for endpoint in ready {
                        match self.connect(&endpoint).await {
                            Ok(to) => return copy_both_ways(from, to).await,
                            Err(error) => reason = error,
                        }
                    }
                }
                Err(error) => reason = error.to_string(),
            }
            tokio::time::sleep(LOOKUP_PAUSE).await;
        }
        tracing::warn!(service = self.service, reason, "connection to a debug port dropped");
    }

    async fn connect(&self, endpoint: &Endpoint) -> Result<Box<dyn Pipe>, String> {
        let node = self.node(endpoint)?;
        node.connect(&endpoint.pod, endpoint.port).await.map_err(|error| error.to_string())
    }

    /// The ready endpoints, from the Service's EndpointSlices.
    async fn ready(&self) -> Result<Vec<Endpoint>, kube::Error> {
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), &self.namespace);
        let ours = ListParams::default().labels(&format!("kubernetes.io/service-name={}", self.service));
        let mut endpoints = Vec::new();
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
                endpoints.push(Endpoint { node, pod, port });
            }
        }
        Ok(endpoints)
    }

    /// Whether the Service's Deployment has zero replicas.
    async fn is_scaled_to_zero(&self) -> Result<bool, kube::Error> {
        let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
            Api::namespaced(self.client.clone(), &self.namespace);
        let deployment = deployments.get_opt(&self.service).await?;
        let replicas = deployment.and_then(|deployment| deployment.spec?.replicas);
        Ok(replicas == Some(0))
    }
}

/// Copies bytes both ways until the pod has sent everything, or either side is gone.
async fn copy_both_ways(mut from: TcpStream, to: Box<dyn Pipe>) {
    let (mut client_read, mut client_write) = from.split();
    let (mut pod_read, mut pod_write) = tokio::io::split(to);
    let requests = async {
        let copied = tokio::io::copy(&mut client_read, &mut pod_write).await;
        // The client has sent everything; the pod may still answer.
        copied.is_ok() && pod_write.shutdown().await.is_ok()
    };
    let responses = async {
        let _ = tokio::io::copy(&mut pod_read, &mut client_write).await;
        let _ = client_write.shutdown().await;
    };
    tokio::pin!(requests, responses);
    tokio::select! {
        half_closed = &mut requests => {
            if half_closed {
                responses.await;
            }
        }
        () = &mut responses => {}
    }
}
