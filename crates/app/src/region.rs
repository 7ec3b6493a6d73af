//! A region as objects of its clusters.
//!
//! The flow: once Kubernetes answers, the region's manifests are applied to the service cluster and the management
//! clusters; their controllers and kubelets start the roles. The region is ready when every Deployment is available and
//! every Service has an endpoint that accepts connections. Meanwhile `cloud_layout` lays the region's resources out in its
//! cloud; that is a component of readiness of its own.
//!
//! Fields that the manifests set belong to the region. Fields that they leave out (the number of replicas) belong to the
//! operator and survive a restart.

mod apply;
mod certificates;
mod cloud_layout;
mod debug_ports;
mod manifests;
mod service_endpoints;
mod shards;

use std::path::PathBuf;
use std::time::Duration;

use aro_base::{SharedClock, chain};
use aro_kube_apiserver::{Cluster, ClusterService, Clusters, User};
use aro_role::PART_OF_REGION;
use aro_runtime::{Component, Fault, Phase, Scope, TaskKind};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use std::sync::Arc;
use tokio::sync::watch;

use certificates::{Authorities, CertificatesError};
pub(crate) use cloud_layout::{CloudResults, RegionCloud, SharedCloud, SharedLayout};
pub(crate) use debug_ports::{DebugPort, open_debug_port};
use manifests::ClusterManifests;
pub(crate) use service_endpoints::ServiceEndpoints;
pub(crate) use shards::register as register_shards;

use crate::Registry;

/// How often readiness is checked while the region starts.
const READINESS_CHECK: Duration = Duration::from_millis(15);

/// A cluster of the region, with what belongs on it.
struct Part {
    cluster: Arc<Cluster>,
    client: Client,
    manifests: ClusterManifests,
}

/// Applies the region's manifests, reports readiness, then renews certificates for as long as the region runs.
pub(crate) fn bring_up(
    (registry, without): (Registry, Vec<String>),
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
        let failed = "load the region's authorities";
        let authorities = tokio::task::spawn_blocking(move || Authorities::load(&dir, &stamp)).await;
        let authorities = authorities.map_err(|error| Fault::caused(failed, error))?;
        let authorities = authorities.map_err(|error| Fault::caused(failed, error))?;
        let mut parts = Vec::new();
        for (name, manifests) in manifests::of_region(registry, &without, &clusters.names()) {
            let Some(cluster) = clusters.get(&name) else { continue };
            let part = Part { client: admin_client(&cluster), cluster, manifests };
            part.apply(&authorities, &clock).await.map_err(|error| {
                Fault::caused(format!("apply the manifests of the cluster {name}"), error)
            })?;
            parts.push(part);
        }
        loop {
            match missing(&parts).await {
                Ok(None) => break ready.ready(),
                Ok(Some(reason)) => ready.not_ready(reason),
                Err(error) => ready.not_ready(chain(&error).to_string()),
            }
            tokio::time::sleep(READINESS_CHECK).await;
        }
        inside.spawn(TaskKind::Helper, "certificates", async move {
            loop {
                tokio::time::sleep(certificates::RENEWAL_CHECK).await;
                for part in &parts {
                    if let Err(error) = part.certify(&authorities, &clock).await {
                        tracing::warn!(cluster = part.cluster.name(), error = %chain(&error), "certificate renewal failed; retrying later");
                    }
                }
            }
            #[expect(unreachable_code, reason = "names the error type of a loop that never ends")]
            Ok::<_, Fault>(())
        });
        Ok::<_, Fault>(())
    });
}

impl Part {
    async fn apply(&self, authorities: &Authorities, clock: &SharedClock) -> Result<(), CertificatesError> {
        apply::all(&self.client, &self.manifests.prerequisites).await?;
        self.certify(authorities, clock).await?;
        Ok(apply::all(&self.client, &self.manifests.workloads).await?)
    }

    /// Issues the certificates that the roles of the cluster mount.
    async fn certify(&self, authorities: &Authorities, clock: &SharedClock) -> Result<(), CertificatesError> {
        certificates::ensure(&self.client, authorities, &self.manifests.certificates, clock.now()).await
    }
}

async fn started(mut clusters: watch::Receiver<Option<Clusters>>) -> Result<Clusters, Fault> {
    let started = clusters.wait_for(Option::is_some).await;
    started
        .ok()
        .and_then(|clusters| clusters.clone())
        .ok_or_else(|| Fault::new("embedded Kubernetes did not start"))
}

/// An in-process client with all permissions.
pub(crate) fn admin_client(cluster: &Arc<Cluster>) -> Client {
    let user = User::authenticated("system:aro:region".to_owned(), vec!["system:masters".to_owned()]);
    aro_kube::of_service(ClusterService::in_process(cluster.clone(), user))
}

/// What the region still waits for.
async fn missing(parts: &[Part]) -> Result<Option<String>, kube::Error> {
    let ours = ListParams::default().labels(PART_OF_REGION);
    for Part { cluster, client, .. } in parts {
        let deployments: Api<Deployment> = Api::all(client.clone());
        for deployment in deployments.list(&ours).await? {
            if let Some(reason) = unavailable(&deployment) {
                let error = container_error(client, &deployment).await?;
                let place =
                    format!("{}/{}", deployment.namespace().unwrap_or_default(), deployment.name_any());
                return Ok(Some(format!("{place}: {reason}{error}")));
            }
        }
        let services: Api<Service> = Api::all(client.clone());
        for service in services.list(&ours).await? {
            let endpoints = ServiceEndpoints::of_service(cluster, client, &service);
            if let Some(reason) = endpoints.unavailable().await? {
                return Ok(Some(reason));
            }
        }
    }
    Ok(None)
}

fn unavailable(deployment: &Deployment) -> Option<String> {
    let status = deployment.status.clone().unwrap_or_default();
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let seen = status.observed_generation >= deployment.metadata.generation;
    let available = status.available_replicas.unwrap_or_default();
    (!seen || available < wanted).then(|| format!("{available} of {wanted} pods are available"))
}

/// The last error of its containers, if there is one.
async fn container_error(client: &Client, deployment: &Deployment) -> Result<String, kube::Error> {
    let namespace = deployment.namespace().unwrap_or_default();
    let labels = deployment.spec.as_ref().and_then(|spec| spec.selector.match_labels.as_ref());
    let labels: Vec<String> =
        labels.into_iter().flatten().map(|(name, value)| format!("{name}={value}")).collect();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    for pod in pods.list(&ListParams::default().labels(&labels.join(","))).await? {
        for container in pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten()) {
            let last = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
            let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref());
            let message = last.and_then(|last| last.message.clone()).or_else(|| waiting?.message.clone());
            if let Some(message) = message {
                return Ok(format!("; container {}: {message}", container.name));
            }
        }
    }
    Ok(String::new())
}
