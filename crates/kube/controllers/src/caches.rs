//! One shared copy of everything the controllers of a cluster look at.

use aro_kube::informer::{Index, Informer, Kept};
use aro_runtime::Scope;
use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Endpoints, Node, PersistentVolume, PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};

/// Everything the controllers of one cluster look at. Cloning gives other handles to the same copies.
#[derive(Debug, Clone)]
pub struct Caches {
    pub pods: Informer<Pod>,
    pub nodes: Informer<Node>,
    /// Those of nodes only.
    pub leases: Informer<Lease>,
    pub deployments: Informer<Deployment>,
    pub replica_sets: Informer<ReplicaSet>,
    pub stateful_sets: Informer<StatefulSet>,
    pub revisions: Informer<ControllerRevision>,
    pub jobs: Informer<Job>,
    pub services: Informer<Service>,
    pub endpoint_slices: Informer<EndpointSlice>,
    pub endpoints: Informer<Endpoints>,
    pub budgets: Informer<PodDisruptionBudget>,
    pub claims: Informer<PersistentVolumeClaim>,
    pub volumes: Informer<PersistentVolume>,
    pub storage_classes: Informer<StorageClass>,
}

/// Where nodes keep their leases.
pub const NODE_LEASES: &str = "kube-node-lease";
/// The index of pods by the node they are bound to; those bound to none are under the empty word.
pub const BY_NODE: &str = "node";
/// The index of slices by the service they belong to, as `namespace/name`.
pub const BY_SERVICE: &str = "service";

/// The index of pods without a controller by the set whose member they could be by name, as `namespace/name`.
pub const BY_PARENT: &str = "parent";

/// What the name of an orphan says about the set it could belong to.
fn parent_of(pod: &Pod) -> Vec<String> {
    if pod.metadata.owner_references.iter().flatten().any(|owner| owner.controller == Some(true)) {
        return Vec::new();
    }
    let parent = pod.metadata.name.as_deref().and_then(|name| name.rsplit_once('-'));
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    parent.map(|(parent, _)| format!("{namespace}/{parent}")).into_iter().collect()
}

/// The index of pods that a job has not counted yet, by the job, as `namespace/name`.
pub const BY_JOB: &str = "job";

fn job_of(pod: &Pod) -> Vec<String> {
    let tracked =
        pod.metadata.finalizers.iter().flatten().any(|name| name == "batch.kubernetes.io/job-tracking");
    let owner = pod.metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let job = owner.filter(|owner| tracked && owner.kind == "Job");
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    job.map(|job| format!("{namespace}/{}", job.name)).into_iter().collect()
}

/// The index of objects without a controller, by namespace: a controller may adopt them.
pub const ORPHANS: &str = "orphans";

fn orphan_in<K: Resource>(object: &K) -> Vec<String> {
    let controlled =
        object.meta().owner_references.iter().flatten().any(|owner| owner.controller == Some(true));
    if controlled { Vec::new() } else { vec![object.meta().namespace.clone().unwrap_or_default()] }
}

fn node_of(pod: &Pod) -> Vec<String> {
    vec![pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()]
}

fn service_of(slice: &EndpointSlice) -> Vec<String> {
    let labels = slice.metadata.labels.as_ref();
    let service = labels.and_then(|labels| labels.get("kubernetes.io/service-name"));
    let namespace = slice.metadata.namespace.as_deref().unwrap_or_default();
    service.map(|service| format!("{namespace}/{service}")).into_iter().collect()
}

/// The index of Services by the first pair of their selector, as `namespace/key=value`. A Service can only select pods
/// with that label.
pub const BY_SELECTOR: &str = "selector";

fn first_selector_of(service: &Service) -> Vec<String> {
    let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let first = selector.and_then(|selector| selector.first_key_value());
    first.map(|(key, value)| format!("{namespace}/{key}={value}")).into_iter().collect()
}

/// The index of pods by the claims they use, and of volumes by the claim they are for, as `namespace/name`. Volumes that
/// without a claim are under the empty value.
pub const BY_CLAIM: &str = "claim";

fn claims_of(pod: &Pod) -> Vec<String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
    let claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    claims.map(|claim| format!("{namespace}/{}", claim.claim_name)).collect()
}

fn claim_of(volume: &PersistentVolume) -> Vec<String> {
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let word = reference.map(|reference| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        format!("{}/{}", text(&reference.namespace), text(&reference.name))
    });
    vec![word.unwrap_or_default()]
}

impl Default for Caches {
    fn default() -> Self {
        Self {
            pods: Informer::with(&[
                Index { name: BY_NODE, of: node_of },
                Index { name: BY_PARENT, of: parent_of },
                Index { name: BY_CLAIM, of: claims_of },
                Index { name: ORPHANS, of: orphan_in },
                Index { name: BY_JOB, of: job_of },
            ]),
            nodes: Informer::default(),
            leases: Informer::default(),
            deployments: Informer::default(),
            replica_sets: Informer::with(&[Index { name: ORPHANS, of: orphan_in }]),
            stateful_sets: Informer::default(),
            revisions: Informer::default(),
            jobs: Informer::default(),
            services: Informer::with(&[Index { name: BY_SELECTOR, of: first_selector_of }]),
            endpoint_slices: Informer::with(&[Index { name: BY_SERVICE, of: service_of }]),
            endpoints: Informer::default(),
            budgets: Informer::default(),
            claims: Informer::default(),
            volumes: Informer::with(&[Index { name: BY_CLAIM, of: claim_of }]),
            storage_classes: Informer::default(),
        }
    }
}

impl Caches {
    /// Starts to fill them. Subscribe before.
    pub fn run(&self, client: &Client, scope: &Scope) {
        fn all<K: Kept + kube::Resource<DynamicType = ()>>(
            informer: &Informer<K>,
            client: &Client,
            scope: &Scope,
        ) {
            informer.run(Api::all(client.clone()), watcher::Config::default(), scope);
        }
        all(&self.pods, client, scope);
        all(&self.nodes, client, scope);
        all(&self.deployments, client, scope);
        all(&self.replica_sets, client, scope);
        all(&self.stateful_sets, client, scope);
        all(&self.revisions, client, scope);
        all(&self.jobs, client, scope);
        all(&self.services, client, scope);
        all(&self.endpoint_slices, client, scope);
        all(&self.endpoints, client, scope);
        all(&self.budgets, client, scope);
        all(&self.claims, client, scope);
        all(&self.volumes, client, scope);
        all(&self.storage_classes, client, scope);
        let leases = Api::namespaced(client.clone(), NODE_LEASES);
        self.leases.run(leases, watcher::Config::default(), scope);
    }

    /// Returns when all of them are filled.
    pub async fn synced(&self) {
        self.pods.synced().await;
        self.nodes.synced().await;
        self.leases.synced().await;
        self.deployments.synced().await;
        self.replica_sets.synced().await;
        self.stateful_sets.synced().await;
        self.revisions.synced().await;
        self.jobs.synced().await;
        self.services.synced().await;
        self.endpoint_slices.synced().await;
        self.endpoints.synced().await;
        self.budgets.synced().await;
        self.claims.synced().await;
        self.volumes.synced().await;
        self.storage_classes.synced().await;
    }
}
