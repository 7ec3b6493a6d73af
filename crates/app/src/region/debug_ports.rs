//! `aro up --debug-ports`: loopback ports that lead to listeners in pods, as `kubectl port-forward` does.

use aro_kube_apiserver::Clusters;
use aro_role::{ListenerDescriptor, RegionCluster, RoleDescriptor, SERVICE_CLUSTER};
use aro_runtime::{Fault, Listener, Phase, Scope, TaskKind};
use tokio::sync::watch;

use super::{ServiceEndpoints, admin_client, started};

/// A port of a Service on the service cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DebugPort {
    namespace: &'static str,
    service: &'static str,
    port: &'static str,
}

impl DebugPort {
    /// The port of a listener; `None` if its role does not run on the service cluster.
    pub fn of(role: &RoleDescriptor, listener: &ListenerDescriptor) -> Option<Self> {
        let deployment = (role.deployment)(&RegionCluster { name: SERVICE_CLUSTER, all: &[] })?;
        Some(Self { namespace: deployment.namespace, service: deployment.name, port: listener.name })
    }
}

/// Forwards connections on a loopback port to a ready pod of the Service.
pub(crate) fn open_debug_port(
    listener: Listener,
    clusters: watch::Receiver<Option<Clusters>>,
    DebugPort { namespace, service, port }: DebugPort,
    scope: &Scope,
) {
    let (accepting, requests) =
        (scope.child(Phase::Listeners, service), scope.child(Phase::Requests, service));
    let stop = accepting.clone();
    accepting.spawn(TaskKind::Listener, "accept", async move {
        let clusters = started(clusters).await?;
        let Some(cluster) = clusters.get(SERVICE_CLUSTER) else {
            return Err(Fault::new("debug ports need the service cluster"));
        };
        let client = admin_client(&cluster);
        let socket = listener.into_inner();
        loop {
            let (stream, _) = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                accepted = aro_net::accept(&socket) => accepted,
            };
            let endpoints = ServiceEndpoints::of(&cluster, &client, namespace, service).on_port(port);
            // The connection stays open when the region stops: the pod drains its requests and closes it.
            requests.spawn(TaskKind::Connection, "forward", async move {
                endpoints.forward(stream).await;
                Ok::<_, Fault>(())
            });
        }
    });
}
