//! What the controllers share.

use std::collections::HashMap;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_arm::hcp::cluster::Cluster;
use aro_base::SharedClock;
use aro_control::Queue;
use aro_decisions::Decisions;
use aro_ocm::{ClusterId, Href};
use aro_peers::{ClustersService, Versions};
use aro_rp_store::Documents;
use parking_lot::Mutex;

use crate::key::Key;
use crate::metrics::BackendMetrics;

/// Times that decisions depend on.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// See `backend.create_grace`.
    pub create_grace: Duration,
    /// See `backend.update_deadline`.
    pub update_deadline: Duration,
}

/// The queues of the controllers.
#[derive(Default)]
pub struct Queues {
    /// Clusters.
    pub clusters: Queue<Key>,
    /// Node pools.
    pub node_pools: Queue<Key>,
    /// External auths.
    pub external_auths: Queue<Key>,
    /// Operations that may have left an outbox entry.
    pub ended: Queue<ResourceId>,
}

/// What the controllers share. Nothing in it is state that a restart would miss.
pub struct Shared {
    pub documents: Documents,
    pub clusters_service: ClustersService,
    pub versions: Versions,
    pub clock: SharedClock,
    pub decisions: Decisions,
    pub metrics: BackendMetrics,
    pub queues: Queues,
    pub index: ClusterIndex,
    pub notes: Notes,
    pub timing: Timing,
}

/// Which resource a cluster of Clusters Service belongs to, as the change feed showed it. As large as the store has clusters.
#[derive(Default)]
pub struct ClusterIndex(Mutex<HashMap<ClusterId, ResourceId>>);

impl ClusterIndex {
    /// Notes the Clusters Service id of a resource, if it has one.
    pub fn insert(&self, cluster: &Cluster) {
        if let Some(id) = service_id(cluster) {
            self.0.lock().insert(id, cluster.id.clone());
        }
    }

    /// Forgets a resource.
    pub fn remove(&self, id: &ResourceId) {
        self.0.lock().retain(|_, known| known != id);
    }

    /// The resource of a cluster.
    pub fn find(&self, id: &ClusterId) -> Option<ResourceId> {
        self.0.lock().get(id).cloned()
    }
}

/// The id of a resource's cluster in Clusters Service, known or asked for.
pub fn service_id(cluster: &Cluster) -> Option<ClusterId> {
    let known = cluster.service.cluster_service_id.as_deref().and_then(Href::parse);
    match known {
        Some((_, Href::Cluster(id))) => Some(id),
        _ => ClusterId::parse(cluster.hosting.pending_cluster_service_id.as_deref()?).ok(),
    }
}

/// Operations whose blocker is remembered.
const MAX_NOTES: usize = 20_000;

/// What each operation under way was last found to wait for, so that the journal shows a blocker once.
#[derive(Default)]
pub struct Notes(Mutex<HashMap<ResourceId, String>>);

impl Notes {
    /// The last blocker of a resource.
    pub fn last(&self, id: &ResourceId) -> Option<String> {
        self.0.lock().get(id).cloned()
    }

    /// Sets it. Beyond the budget all are forgotten: a blocker is then noted twice.
    pub fn set(&self, id: &ResourceId, note: &str) {
        let mut notes = self.0.lock();
        if notes.len() >= MAX_NOTES {
            notes.clear();
        }
        notes.insert(id.clone(), note.to_owned());
    }

    /// The operation ended.
    pub fn clear(&self, id: &ResourceId) {
        self.0.lock().remove(id);
    }
}
