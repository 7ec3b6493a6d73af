//! One logical cluster: its storage, keys and types, and what answers its requests.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use aro_base::{SharedClock, Timestamp};
use aro_kube_apimachinery::GroupResource;
use aro_kube_node_api::NodeDirectory;
use aro_web::BodyBudget;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::addresses::AddressIndex;
use crate::documents::Rendered;
use crate::events::Expiry;
use crate::identity::authorize::Roles;
use crate::identity::keys::Keys;
use crate::identity::nodes::BoundPods;
use crate::identity::tokens::Signer;
use crate::internal_controllers::owners::Owners;
use crate::internal_controllers::{DeletionWaiters, WorkQueue};
use crate::storage::{ClusterStore, WatchCache};
use crate::tls::ServingTls;
use crate::types::Types;

/// A running logical cluster.
pub struct Cluster {
    pub store: Arc<ClusterStore>,
    pub keys: Keys,
    pub clock: SharedClock,
    /// Work of the internal controllers.
    pub work: WorkQueue,
    pub owners: Owners,
    pub deletion_waiters: DeletionWaiters,
    pub documents: Rendered,
    pub roles: Roles,
    /// What the pods of each node need.
    pub bound_pods: BoundPods,
    /// When events are too old.
    pub events: Expiry,
    /// Nodes whose kubelet is in this process: how logs and connections of their pods are asked for.
    pub nodes: NodeDirectory,
    signer: OnceLock<Result<Signer, String>>,
    /// Its side of TLS, made with the first connection and renewed by later ones.
    pub(crate) tls: RwLock<Option<ServingTls>>,
    /// Ends everything that lasts: watches, mostly.
    pub closing: CancellationToken,
    /// Its share of the memory for request bodies, made with the first connection.
    pub(crate) body_budget: OnceLock<BodyBudget>,
    /// Addresses and ports its services have.
    pub(crate) service_book: Mutex<AddressIndex>,
    /// Whether its workload controllers run.
    pub(crate) controllers_active: AtomicBool,
    /// Whether an object that concerns them was written since the last check for idleness.
    pub(crate) written: AtomicBool,
    /// Set once it holds what every cluster holds.
    pub(crate) filled: OnceCell<()>,
    types: RwLock<Arc<Types>>,
    reloading: Mutex<()>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cluster({})", self.name())
    }
}

impl Cluster {
    pub fn new(store: Arc<ClusterStore>, keys: Keys, clock: SharedClock, work: WorkQueue) -> Self {
        let closing = CancellationToken::new();
        let cluster = Self {
            store,
            keys,
            clock,
            work,
            closing,
            owners: Owners::default(),
            deletion_waiters: DeletionWaiters::default(),
            documents: Rendered::default(),
            roles: Roles::default(),
            bound_pods: BoundPods::default(),
            events: Expiry::default(),
            nodes: NodeDirectory::default(),
            signer: OnceLock::new(),
            tls: RwLock::default(),
            body_budget: OnceLock::new(),
            service_book: Mutex::default(),
            controllers_active: AtomicBool::new(false),
            written: AtomicBool::new(false),
            filled: OnceCell::new(),
            types: RwLock::default(),
            reloading: Mutex::default(),
        };
        cluster.reload_types(None);
        cluster
    }

    pub fn name(&self) -> &str {
        &self.store.name
    }

    pub fn types(&self) -> Arc<Types> {
        self.types.read().clone()
    }

    /// Reads the definitions anew. `next`: one of them as it is about to be; it is served before its condition is published.
    pub fn reload_types(&self, next: Option<&Value>) {
        let watch_cache = self.store.watch_cache(DEFINITIONS);
        if watch_cache.is_empty() && self.types.read().custom().next().is_none() {
            return;
        }
        // Compiling takes a while: readers keep the old ones meanwhile. A later caller reads later, too.
        let _one_at_a_time = self.reloading.lock();
        let name = next.map(aro_kube_apimachinery::meta::name);
        let others = watch_cache.all().into_iter().filter(|crd| name != Some(&*crd.key));
        let definitions: Vec<Value> = others.map(|crd| crd.value()).chain(next.cloned()).collect();
        let before = self.types();
        let types = Arc::new(Types::of_definitions(&definitions, &before));
        *self.types.write() = types;
    }

    /// What signs and checks its service accounts' tokens; read when first needed.
    pub fn signer(&self) -> Result<&Signer, String> {
        let signer = self.signer.get_or_init(|| Signer::new(&self.keys.service_account_key));
        signer.as_ref().map_err(Clone::clone)
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn watch_cache(&self, resource: &GroupResource) -> Arc<WatchCache> {
        self.store.watch_cache(&resource.to_string())
    }
}

/// The watch cache of CustomResourceDefinitions.
pub const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Time as objects carry it: seconds, UTC.
pub fn rfc3339(now: Timestamp) -> String {
    // Without a fraction the plain form is this one, and costs a fraction of a pattern.
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}
