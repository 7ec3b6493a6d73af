//! A region as what it is: objects in its clusters.
//!
//! The flow: once Kubernetes answers, the region's manifests are applied to the service cluster and the management
//! clusters; their controllers and kubelets start the roles. The region is ready when every Deployment is, and every
//! Service answers.
//!
//! What is applied belongs to the region; what it leaves out (the number of replicas, say) belongs to whoever sets it,
//! and survives a restart.

mod apply;
mod certificates;
mod door;
mod manifests;

use std::path::PathBuf;
use std::time::Duration;

use aro_base::{SharedClock, chain};
use aro_kube_apiserver::{Cluster, ClusterService, Clusters, User};
use aro_runtime::{Component, Fault, Listener, Phase, Scope, TaskKind};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use std::sync::Arc;
use tokio::sync::watch;

use certificates::{Authorities, CertificatesError};
pub(crate) use door::Door;
pub(crate) use manifests::SERVICE_CLUSTER;
use manifests::{FRONTEND, MAESTRO};

/// How often is looked whether the region has come up, while it does.
const LOOK: Duration = Duration::from_millis(15);

/// Brings the region up, and says so; then looks after its certificates.
pub(crate) fn bring_up(
    clusters: watch::Receiver<Option<Clusters>>,
    dir: PathBuf,
    clock: SharedClock,
    ready: Component,
    scope: &Scope,
) {
    let own = scope.child(Phase::Reconcilers, "region");
    let inside = own.clone();
    own.spawn(TaskKind::Worker, "bring-up", async move {
        let clusters = started(clusters).await?;
        let stamp = clock.clone();
        let failed = "make the region's authorities";
        let authorities = tokio::task::spawn_blocking(move || Authorities::load(&dir, &stamp)).await;
        let authorities = authorities.map_err(|error| Fault::caused(failed, error))?;
        let authorities = authorities.map_err(|error| Fault::caused(failed, error))?;
        let mut parts = Vec::new();
        for (name, manifests) in manifests::all(&clusters.names()) {
            let Some(cluster) = clusters.get(&name) else { continue };
            let client = client(&cluster);
            let applied = async {
                apply::all(&client, &manifests.first).await?;
                certify(&name, &client, &authorities, &clock).await?;
                apply::all(&client, &manifests.roles).await.map_err(CertificatesError::from)
            };
            applied.await.map_err(|error| {
                Fault::caused(format!("apply the manifests of the cluster {name}"), error)
            })?;
            parts.push((cluster, client));
        }
        loop {
            match missing(&parts).await {
                Ok(None) => break ready.ready(),
                Ok(Some(why)) => ready.not_ready(why),
                Err(error) => ready.not_ready(chain(&error).to_string()),
            }
            tokio::time::sleep(LOOK).await;
        }
        inside.spawn(TaskKind::Helper, "certificates", async move {
            loop {
                tokio::time::sleep(certificates::LOOK).await;
                for (cluster, client) in &parts {
                    if let Err(error) = certify(cluster.name(), client, &authorities, &clock).await {
                        tracing::warn!(cluster = cluster.name(), error = %chain(&error), "certificates were not looked after; trying again later");
                    }
                }
            }
            #[expect(unreachable_code, reason = "names the error type of a loop that never ends")]
            Ok::<_, Fault>(())
        });
        Ok::<_, Fault>(())
    });
}

/// Issues what the pods of a cluster need.
async fn certify(
    cluster: &str,
    client: &Client,
    authorities: &Authorities,
    clock: &SharedClock,
) -> Result<(), CertificatesError> {
    let wanted = match cluster {
        SERVICE_CLUSTER => certificates::of_service_cluster(),
        name if manifests::is_management(name) => certificates::of_management_cluster(name),
        _ => return Ok(()),
    };
    certificates::ensure(client, authorities, &wanted, clock.now()).await
}

async fn started(mut clusters: watch::Receiver<Option<Clusters>>) -> Result<Clusters, Fault> {
    let started = clusters.wait_for(Option::is_some).await;
    started
        .ok()
        .and_then(|clusters| clusters.clone())
        .ok_or_else(|| Fault::new("embedded Kubernetes did not start"))
}

/// A client that may do everything, in this process.
pub(crate) fn client(cluster: &Arc<Cluster>) -> Client {
    let user = User::authenticated("system:aro:region".to_owned(), vec!["system:masters".to_owned()]);
    aro_kube::of_service(ClusterService::in_process(cluster.clone(), user))
}

/// What is still missing, in words.
async fn missing(parts: &[(Arc<Cluster>, Client)]) -> Result<Option<String>, kube::Error> {
    let ours = ListParams::default().labels(manifests::LABEL);
    for (cluster, client) in parts {
        let deployments: Api<Deployment> = Api::all(client.clone());
        for deployment in deployments.list(&ours).await? {
            if let Some(why) = lacks(&deployment) {
                let trouble = trouble(client, &deployment).await?;
                let place =
                    format!("{}/{}", deployment.namespace().unwrap_or_default(), deployment.name_any());
                return Ok(Some(format!("{place}: {why}{trouble}")));
            }
        }
        let services: Api<Service> = Api::all(client.clone());
        for service in services.list(&ours).await? {
            let door = Door::to(cluster, client, &service);
            if let Some(why) = door.closed().await? {
                return Ok(Some(why));
            }
        }
    }
    Ok(None)
}

fn lacks(deployment: &Deployment) -> Option<String> {
    let status = deployment.status.clone().unwrap_or_default();
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let seen = status.observed_generation >= deployment.metadata.generation;
    let available = status.available_replicas.unwrap_or_default();
    (!seen || available < wanted).then(|| format!("{available} of {wanted} pods are available"))
}

/// What its containers complain about, if they do.
async fn trouble(client: &Client, deployment: &Deployment) -> Result<String, kube::Error> {
    let namespace = deployment.namespace().unwrap_or_default();
    let labels = deployment.spec.as_ref().and_then(|spec| spec.selector.match_labels.as_ref());
    let labels: Vec<String> =
        labels.into_iter().flatten().map(|(name, value)| format!("{name}={value}")).collect();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    for pod in pods.list(&ListParams::default().labels(&labels.join(","))).await? {
        for container in pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten()) {
            let last = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
            let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref());
            let said = last.and_then(|last| last.message.clone()).or_else(|| waiting?.message.clone());
            if let Some(said) = said {
                return Ok(format!("; its container {} says: {said}", container.name));
            }
        }
    }
    Ok(String::new())
}

/// A port of a Service that a region may open on loopback.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DebugPort {
    service: (&'static str, &'static str),
    port: &'static str,
}

impl DebugPort {
    /// The ARM API.
    pub const FRONTEND: Self = Self { service: FRONTEND, port: "http" };
    /// Maestro's REST API.
    pub const MAESTRO: Self = Self { service: MAESTRO, port: "http" };
    /// Maestro's door for sources.
    pub const MAESTRO_GRPC: Self = Self { service: MAESTRO, port: "grpc" };
}

/// Opens a port on loopback that leads to a Service of the region, as `kubectl port-forward` does.
pub(crate) fn open(
    listener: Listener,
    clusters: watch::Receiver<Option<Clusters>>,
    DebugPort { service: (namespace, service), port }: DebugPort,
    scope: &Scope,
) {
    let (accepting, requests) =
        (scope.child(Phase::Listeners, service), scope.child(Phase::Requests, service));
    let stop = accepting.clone();
    accepting.spawn(TaskKind::Listener, "accept", async move {
        let clusters = started(clusters).await?;
        let Some(cluster) = clusters.get(manifests::SERVICE_CLUSTER) else {
            return Err(Fault::new("there is no service cluster to open a port of"));
        };
        let client = client(&cluster);
        let socket = listener.into_inner();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                accepted = socket.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                // Out of files, mostly: others may end soon.
                tokio::time::sleep(LOOK).await;
                continue;
            };
            let door = Door::named(&cluster, &client, namespace, service).at(port);
            // Told to stop, the pod finishes what it is asked and closes the connection; cutting it here would be rude.
            requests.spawn(TaskKind::Connection, "forward", async move {
                door.forward(stream).await;
                Ok::<_, Fault>(())
            });
        }
    });
}
