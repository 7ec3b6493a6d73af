//! What the API server asks of our nodes.

use aro_base::Timestamp;
use aro_kube::informer::ObjectKey;
use aro_kube_node_api::{LogOptions, NodeApi, NodeError, Pipe, PodIdentity};
use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;

use crate::kubelet::Shared;
use crate::logs::pretended;
use crate::pod::View;

#[async_trait]
impl NodeApi for Shared {
    async fn logs(
        &self,
        pod: &PodIdentity,
        container: &str,
        options: &LogOptions,
    ) -> Result<BoxStream<'static, Bytes>, NodeError> {
        let object = self.find(pod)?;
        if let Some(view) = self.view(pod, container) {
            let log = if options.previous { view.previous } else { view.log.or(view.previous) };
            let Some(log) = log else { return Err(no_previous(pod, container)) };
            return Ok(log.read(options));
        }
        let Some(status) = container_status(&object, container) else {
            return Err(waiting(pod, container, "ContainerCreating"));
        };
        let lines = told(status, options.previous).ok_or_else(|| {
            if options.previous {
                return no_previous(pod, container);
            }
            let reason = status.state.as_ref().and_then(|state| state.waiting.as_ref()?.reason.as_deref());
            waiting(pod, container, reason.unwrap_or("ContainerCreating"))
        })?;
        let running = status.state.as_ref().is_some_and(|state| state.running.is_some());
        let options =
            LogOptions { follow: options.follow && running && !options.previous, ..options.clone() };
        Ok(pretended(&lines, &options, &self.clock))
    }

    async fn address(&self, pod: &PodIdentity, port: u16) -> Result<SocketAddr, NodeError> {
        self.find(pod)?;
        let slot = self.slot_of(pod);
        let views =
            slot.map(|slot| slot.views.lock().values().cloned().collect::<Vec<View>>()).unwrap_or_default();
        if views.is_empty() {
            let why = format!(
                "pod {}/{} is simulated: nothing runs in it that could listen on port {port}",
                pod.namespace, pod.name
            );
            return Err(NodeError::BadRequest(why));
        }
        views.iter().find_map(|view| view.ports.get(&port).copied()).ok_or_else(|| {
            let known: Vec<String> =
                views.iter().flat_map(|view| view.ports.keys()).map(u16::to_string).collect();
            let known = if known.is_empty() { "none now".to_owned() } else { known.join(", ") };
            NodeError::BadRequest(format!(
                "nothing in pod {}/{} listens on port {port}; its ports are: {known}",
                pod.namespace, pod.name
            ))
        })
    }

    async fn connect(&self, pod: &PodIdentity, port: u16) -> Result<Box<dyn Pipe>, NodeError> {
        let address = self.address(pod, port).await?;
        let stream = TcpStream::connect(address).await;
        let stream = stream.map_err(|error| {
            NodeError::Unavailable(format!("connect to port {port} of pod {}: {error}", pod.name))
        })?;
        // Small messages go both ways.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY was refused");
        }
        Ok(Box::new(stream))
    }
}

impl Shared {
    fn find(&self, pod: &PodIdentity) -> Result<Arc<Pod>, NodeError> {
        let key = ObjectKey::new(&*pod.namespace, &*pod.name);
        let known =
            self.pods.cache().get(&key).filter(|known| known.metadata.uid.as_deref() == Some(&*pod.uid));
        known.ok_or_else(|| NodeError::NotFound(format!("pod \"{}\" is not on this node", pod.name)))
    }

    fn slot_of(&self, pod: &PodIdentity) -> Option<Arc<crate::pod::Slot>> {
        let key = ObjectKey::new(&*pod.namespace, &*pod.name);
        self.slots.lock().get(&key).filter(|slot| slot.uid == pod.uid).cloned()
    }

    fn view(&self, pod: &PodIdentity, container: &str) -> Option<View> {
        self.slot_of(pod)?.views.lock().get(container).cloned()
    }
}

fn no_previous(pod: &PodIdentity, container: &str) -> NodeError {
    NodeError::BadRequest(format!(
        "previous terminated container \"{container}\" in pod \"{}\" not found",
        pod.name
    ))
}

fn waiting(pod: &PodIdentity, container: &str, reason: &str) -> NodeError {
    NodeError::BadRequest(format!(
        "container \"{container}\" in pod \"{}\" is waiting to start: {reason}",
        pod.name
    ))
}

fn container_status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let all =
        status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
    { all }.find(|known| known.name == container)
}

/// What there is to say about a run that only pretends.
fn told(status: &ContainerStatus, previous: bool) -> Option<Vec<(Timestamp, String)>> {
    let state = if previous { status.last_state.as_ref()? } else { status.state.as_ref()? };
    let ended = state.terminated.as_ref();
    // A container that waits to start again shows its last run.
    let ended =
        ended.or_else(|| status.last_state.as_ref()?.terminated.as_ref().filter(|_| state.waiting.is_some()));
    let began = state.running.as_ref().and_then(|running| running.started_at.as_ref());
    let began = began.or_else(|| ended?.started_at.as_ref().or(ended?.finished_at.as_ref()))?.0;
    let mut lines = vec![(
        began,
        format!("simulated: {} has no program here; nothing runs in this container", status.image),
    )];
    if let Some(ended) = ended {
        let at = ended.finished_at.as_ref().map_or(began, |time| time.0);
        lines.push((at, format!("simulated: ended with code {}", ended.exit_code)));
    }
    Some(lines)
}
