//! What Clusters Service stores.
//!
//! Everything of a cluster is in the partition of its id: the cluster, its node pools, external auths, upgrade policies,
//! inflight checks, break-glass credentials, and the journals of its pipelines. Provision shards and the slots that clusters
//! take on them are in the partition [`SHARDS`].
//!
//! Who writes what: `cluster`, `pool`, `auth`, `generation`, `trace` and `deletion` belong to the API, `observed` and
//! `provisioning` to the pipelines. The state inside of the API object is set by the API when a request is accepted, and by
//! the pipelines afterwards.
//!
//! A cluster's resource id begins with its subscription and resource group, so a search by them is a prefix query. For other
//! attributes that operators search by there are [`AttributeRecord`]s, written in the cluster's batch, whose resource ids
//! begin with the attribute's value.

mod attribute;
mod cluster;
mod external_auth;
mod keys;
mod node_pool;
mod others;
mod provisioned;
mod shard;
mod trace;

use aro_runtime::Metrics;
use aro_store::{Collection, Container, Kind, Names, SharedStore, UnreadableDocuments};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use attribute::{Attribute, AttributeRecord};
pub use cluster::{ClusterObserved, ClusterRecord};
pub use external_auth::ExternalAuthRecord;
pub(crate) use keys::{CLUSTERS, SHARD_PREFIX, clusters_prefix};
pub use keys::{
    attribute_names, check_key, cluster_key, cluster_names, cluster_partition, credential_key,
    external_auth_key, node_pool_key, policy_key, shard_key, slots_key,
};
pub use node_pool::{NodePoolObserved, NodePoolRecord};
pub use others::{BreakGlassRecord, CheckRecord, UpgradePolicyRecord};
pub use provisioned::{NodePoolProvisioned, Provisioned, ResolvedIdentity};
pub use shard::{ShardRecord, SlotsRecord};
pub use trace::{DeletionRequest, TraceContext};

/// The container of all documents of Clusters Service.
pub const CONTAINER: Container = Container::new("ClustersService");

/// The partition of provision shards.
pub const SHARDS: &str = "-";

/// A value that is stored as one document.
pub trait Record: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// How its documents are written and read.
    const KIND: Kind<Self>;

    /// What names its document.
    fn names(&self) -> Names;
}

/// The documents of Clusters Service, by kind.
#[derive(Clone)]
pub struct Records {
    store: SharedStore,
    unreadable: UnreadableDocuments,
    /// Clusters.
    pub clusters: Collection<ClusterRecord>,
    /// Node pools.
    pub pools: Collection<NodePoolRecord>,
    /// External auths.
    pub auths: Collection<ExternalAuthRecord>,
    /// Upgrade policies of control planes and node pools.
    pub policies: Collection<UpgradePolicyRecord>,
    /// Inflight checks.
    pub checks: Collection<CheckRecord>,
    /// Break-glass credentials.
    pub credentials: Collection<BreakGlassRecord>,
    /// Attributes that operators search by.
    pub attributes: Collection<AttributeRecord>,
    /// Provision shards.
    pub shards: Collection<ShardRecord>,
    /// The slots of provision shards.
    pub slots: Collection<SlotsRecord>,
}

impl Records {
    /// The records in a store.
    pub fn new(store: SharedStore, metrics: &Metrics) -> Self {
        let unreadable = UnreadableDocuments::new(metrics);
        Self {
            clusters: collection(&store, &unreadable),
            pools: collection(&store, &unreadable),
            auths: collection(&store, &unreadable),
            policies: collection(&store, &unreadable),
            checks: collection(&store, &unreadable),
            credentials: collection(&store, &unreadable),
            attributes: collection(&store, &unreadable),
            shards: collection(&store, &unreadable),
            slots: collection(&store, &unreadable),
            unreadable,
            store,
        }
    }

    /// The store underneath.
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// The documents of another kind in the same container, such as journals of pipelines.
    pub fn of_kind<T: Serialize + DeserializeOwned + Send>(&self, kind: Kind<T>) -> Collection<T> {
        Collection::new(self.store.clone(), CONTAINER, kind, self.unreadable.clone())
    }
}

fn collection<T: Record>(store: &SharedStore, unreadable: &UnreadableDocuments) -> Collection<T> {
    Collection::new(store.clone(), CONTAINER, T::KIND, unreadable.clone())
}
