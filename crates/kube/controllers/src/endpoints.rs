//! Endpoints: behind which addresses a Service is.
//!
//! What it is not: it routes nothing, and leaves the status of load balancers to others.
//!
//! Invariants:
//! * Work for a change of a pod is bounded by the Services that select it, found by an index, and the pods of its
//!   namespace; how many Services there are elsewhere does not matter.
//! * Changes within a short while are one write for each slice.

mod desired;
mod legacy;
mod plan;

use std::sync::Arc;
use std::time::Duration;

use aro_control::{Outcome, Queue, Reconcile};
use aro_kube::informer::{Cache, Change, ObjectKey, key_of};
use aro_runtime::{Fault, Scope};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, PostParams};

use crate::caches::{BY_NODE, BY_SELECTOR, BY_SERVICE, Caches};
use crate::context::{Context, is_conflict, is_missing, refused};
use crate::pods;
use desired::Backend;

const ZONE: &str = "topology.kubernetes.io/zone";
/// How long changes of pods are collected; this much more for each slice a Service has.
const COLLECT: Duration = Duration::from_millis(20);
const COLLECT_PER_SLICE: Duration = Duration::from_millis(2);
const AT_ONCE: usize = 32;

struct Controller {
    context: Context,
}

pub fn start(context: &Context, scope: &Scope) {
    let queue = Queue::new();
    let caches = &context.caches;
    let (of_pods, of_nodes) = (caches.clone(), caches.clone());
    context
        .runner(Controller { context: context.clone() }, &queue)
        .with_source(caches.services.objects())
        .with_source(caches.pods.mapped(move |change, queue| enqueue_for_pod(change, &of_pods, queue)))
        .with_source(caches.nodes.mapped(move |change, queue| enqueue_for_node(change, &of_nodes, queue)))
        .with_source(caches.endpoint_slices.mapped(enqueue_for_slice))
        .with_source(caches.endpoints.mapped(|change, queue| {
            if legacy::is_managed(change.object()) && !is_own_echo(change) {
                queue.add(key_of(&**change.object()));
            }
        }))
        .start(scope);
}

fn enqueue_for_slice(change: &Change<EndpointSlice>, queue: &Queue<ObjectKey>) {
    let slice = change.object();
    let labels = slice.labels();
    if let Some(service) = labels.get(plan::SERVICE_NAME)
        && labels.get(plan::MANAGED_BY).is_some_and(|manager| manager == plan::MANAGER)
        && !is_own_echo(change)
    {
        queue.add(ObjectKey::new(slice.namespace().unwrap_or_default(), service.clone()));
    }
}

/// Whether the watch only repeats what is cached already, as it does with own writes.
fn is_own_echo<K: kube::Resource>(change: &Change<K>) -> bool {
    match (change.before(), change.now()) {
        (Some(before), Some(now)) => before.meta().resource_version == now.meta().resource_version,
        _ => false,
    }
}

fn enqueue_for_pod(change: &Change<Pod>, caches: &Caches, queue: &Queue<ObjectKey>) {
    let (before, now) = (change.before(), change.now());
    if let (Some(before), Some(now)) = (before, now)
        && looks_the_same(before, now)
    {
        return;
    }
    for pod in [before, now].into_iter().flatten() {
        enqueue_services_of(pod, caches, queue);
    }
}

/// The zone of a node is part of its pods' endpoints.
fn enqueue_for_node(change: &Change<Node>, caches: &Caches, queue: &Queue<ObjectKey>) {
    let zone = |node: &Arc<Node>| node.labels().get(ZONE).cloned();
    if change.before().map(zone) == change.now().map(zone) {
        return;
    }
    for pod in caches.pods.cache().by(BY_NODE, &change.object().name_any()) {
        enqueue_services_of(&pod, caches, queue);
    }
}

fn enqueue_services_of(pod: &Pod, caches: &Caches, queue: &Queue<ObjectKey>) {
    for service in services_of(caches.services.cache(), pod) {
        let key = key_of(&*service);
        let slices = caches.endpoint_slices.cache().by(BY_SERVICE, &key.to_string()).len();
        let more = COLLECT_PER_SLICE.saturating_mul(u32::try_from(slices).unwrap_or(u32::MAX));
        queue.add_after(key, COLLECT + more.min(Duration::from_millis(500)));
    }
}

/// Whether nothing changed that endpoints contain. An own write that the watch repeats was not enqueued before.
fn looks_the_same(before: &Pod, now: &Pod) -> bool {
    let addresses = |pod: &Pod| {
        pod.status.as_ref().map(|status| (status.pod_ip.clone(), status.pod_ips.clone())).unwrap_or_default()
    };
    let unseen = before.metadata.resource_version == now.metadata.resource_version;
    !unseen
        && before.metadata.labels == now.metadata.labels
        && pods::is_terminating(before) == pods::is_terminating(now)
        && pods::is_finished(before) == pods::is_finished(now)
        && pods::is_ready(before) == pods::is_ready(now)
        && pods::node_name(before) == pods::node_name(now)
        && addresses(before) == addresses(now)
}

/// The Services that select a pod.
fn services_of(services: &Cache<Service>, pod: &Pod) -> Vec<Arc<Service>> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let words = pod.labels().iter().map(|(key, value)| format!("{namespace}/{key}={value}"));
    let found = words.flat_map(|word| services.by(BY_SELECTOR, &word));
    found.filter(|service| selects(service, pod)).collect()
}

/// Whether a Service selects a pod. One without a selector selects nothing.
fn selects(service: &Service, pod: &Pod) -> bool {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let labels = pod.labels();
    selector.is_some_and(|selector| {
        !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    })
}

impl Reconcile for Controller {
    type Key = ObjectKey;
    type Error = Fault;
    const NAME: &'static str = "endpoints";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Fault> {
        let caches = &self.context.caches;
        caches.synced().await;
        let known = caches.endpoints.cache().get(key);
        let Some(service) = caches.services.cache().get(key) else {
            // Slices go by their owner; this one has none.
            if let Some(known) = known.filter(|known| legacy::is_managed(known)) {
                self.delete_legacy(&known).await?;
            }
            return Ok(Outcome::Settled);
        };
        let spec = service.spec.as_ref();
        let selects =
            spec.and_then(|spec| spec.selector.as_ref()).is_some_and(|selector| !selector.is_empty());
        let external = spec.and_then(|spec| spec.type_.as_deref()) == Some("ExternalName");
        if !selects || external || service.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Settled);
        }
        let backends = self.backends(&service);
        let slices = caches.endpoint_slices.cache().by(BY_SERVICE, &key.to_string());
        let managed = |slice: &Arc<EndpointSlice>| {
            slice.labels().get(plan::MANAGED_BY).is_some_and(|manager| manager == plan::MANAGER)
        };
        let slices: Vec<_> = slices.into_iter().filter(managed).collect();
        let plan = plan::plan(&service, &backends, &slices);
        let legacy = legacy::wanted(&service, &backends, known.as_deref());
        let written = tokio::join!(self.write(&key.namespace, plan), self.write_legacy(key, legacy));
        match (written.0, written.1) {
            (Err(fault), _) | (_, Err(fault)) if !is_ending(&fault) => Err(fault),
            _ => Ok(Outcome::Settled),
        }
    }
}

/// Whether the namespace is going away, and everything in it with it.
fn is_ending(fault: &Fault) -> bool {
    let source = std::error::Error::source(fault).and_then(|source| source.downcast_ref::<kube::Error>());
    matches!(source, Some(kube::Error::Api(status)) if status.code == 403 && status.message.contains("being terminated"))
}

impl Controller {
    /// The pods behind a Service. One on a node that is not there is none, unless the Service publishes unready pods.
    fn backends(&self, service: &Service) -> Vec<Backend> {
        let caches = &self.context.caches;
        let unready_too = desired::publishes_unready(service);
        let pods = caches.pods.cache().in_namespace(&service.namespace().unwrap_or_default()).into_iter();
        pods.filter(|pod| selects(service, pod))
            .filter_map(|pod| {
                let node = caches.nodes.cache().get(&ObjectKey::new("", pods::node_name(&pod)));
                let zone = node.as_ref().and_then(|node| node.labels().get(ZONE).cloned());
                (node.is_some() || unready_too).then_some(Backend { pod, zone })
            })
            .collect()
    }

    async fn write(&self, namespace: &str, plan: plan::Plan) -> Result<(), Fault> {
        enum Write {
            Create(EndpointSlice),
            Update(EndpointSlice),
            Delete(Arc<EndpointSlice>),
        }
        let writes = plan.create.into_iter().map(Write::Create);
        let writes = writes.chain(plan.update.into_iter().map(Write::Update));
        let writes: Vec<Write> = writes.chain(plan.delete.into_iter().map(Write::Delete)).collect();
        let api = self.context.api::<EndpointSlice>(namespace);
        let cache = self.context.caches.endpoint_slices.cache();
        let write = async |write: Write| match write {
            Write::Create(slice) => {
                let made = api.create(&PostParams::default(), &slice).await;
                cache.wrote(made.map_err(refused("create an endpoint slice"))?);
                Ok(())
            }
            Write::Update(slice) => {
                let key = key_of(&slice);
                match api.replace(&key.name, &PostParams::default(), &slice).await {
                    Ok(written) => drop(cache.wrote(written)),
                    Err(error) => {
                        if is_missing(&error) {
                            cache.removed(&key, &slice.uid().unwrap_or_default());
                        }
                        return Err(refused(format!("update the endpoint slice {key}"))(error));
                    }
                }
                Ok(())
            }
            Write::Delete(slice) => {
                let key = key_of(&*slice);
                match api.delete(&key.name, &DeleteParams::default()).await {
                    Ok(_) => cache.removed(&key, &slice.uid().unwrap_or_default()),
                    Err(error) if is_missing(&error) => cache.removed(&key, &slice.uid().unwrap_or_default()),
                    Err(error) => return Err(refused(format!("delete the endpoint slice {key}"))(error)),
                }
                Ok(())
            }
        };
        let written: Vec<Result<(), Fault>> =
            stream::iter(writes).map(write).buffer_unordered(AT_ONCE).collect().await;
        written.into_iter().collect()
    }

    async fn write_legacy(&self, key: &ObjectKey, wanted: Option<Endpoints>) -> Result<(), Fault> {
        let Some(wanted) = wanted else { return Ok(()) };
        let api = self.context.api::<Endpoints>(&key.namespace);
        let written = if wanted.metadata.resource_version.is_some() {
            api.replace(&key.name, &PostParams::default(), &wanted).await
        } else {
            api.create(&PostParams::default(), &wanted).await
        };
        let cache = self.context.caches.endpoints.cache();
        match written {
            Ok(written) => {
                cache.wrote(written);
                Ok(())
            }
            Err(error) => {
                // Created or changed by another client, and the watch is late: read it.
                if is_conflict(&error)
                    && let Ok(Some(found)) = api.get_opt(&key.name).await
                {
                    cache.wrote(found);
                }
                Err(refused(format!("write the endpoints {key}"))(error))
            }
        }
    }

    async fn delete_legacy(&self, known: &Endpoints) -> Result<(), Fault> {
        let key = key_of(known);
        let api = self.context.api::<Endpoints>(&key.namespace);
        match api.delete(&key.name, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(refused(format!("delete the endpoints {key}"))(error)),
        }
        self.context.caches.endpoints.cache().removed(&key, &known.uid().unwrap_or_default());
        Ok(())
    }
}
