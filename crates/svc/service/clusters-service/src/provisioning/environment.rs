//! What every pass needs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::SharedClock;
use aro_control::saga::Progress;
use aro_decisions::{Decisions, Entry, Outcome};
use aro_ocm::{ClusterId, names};
use aro_region_layout::RegionLayout;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::infrastructure::Infrastructure;
use crate::maestro::{Publisher, Route};
use crate::records::{ClusterRecord, NodePoolRecord, Records, ShardRecord, TraceContext};
use crate::versions::Catalogue;

/// Clusters whose names are remembered for the journal of decisions.
const MAX_SUBJECTS: usize = 20_000;

/// What every pass needs.
pub(super) struct Environment {
    pub(super) name: names::Environment,
    pub(super) records: Records,
    pub(super) clock: SharedClock,
    pub(super) decisions: Decisions,
    /// The cloud; without one only clusters that need none are made.
    pub(super) infrastructure: Option<Arc<dyn Infrastructure>>,
    pub(super) publisher: Arc<dyn Publisher>,
    /// The names of the region's resources; `None` without a cloud.
    pub(super) layout: Option<Arc<RegionLayout>>,
    pub(super) catalogue: Catalogue,
    /// Every step's, unless it has its own.
    pub(super) step_deadline: Duration,
    /// How long checks are repeated.
    pub(super) check_deadline: Duration,
    /// Every cluster is made and removed without cloud and Maestro.
    pub(super) noop: bool,
    /// The names of clusters in the journal of decisions.
    pub(super) subjects: Mutex<HashMap<String, Subject>>,
    /// Until when sagas wait.
    pub(super) parked: Mutex<HashMap<ClusterId, Parked>>,
}

/// A saga waits until then, unless its cluster changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parked {
    until: Instant,
    generation: u64,
    deleting: bool,
}

/// A cluster in the journal of decisions.
#[derive(Debug, Clone, Default)]
pub(super) struct Subject {
    correlation_id: Option<String>,
    names: Vec<String>,
}

impl Environment {
    /// Lets the saga of a cluster wait: what is written of the wait itself does not end it.
    pub(super) fn park(&self, record: &ClusterRecord, after: Duration) {
        let (generation, deleting) = (record.generation, record.deletion.is_some());
        let mut parked = self.parked.lock();
        if parked.len() >= MAX_SUBJECTS {
            parked.clear();
        }
        parked.insert(record.id.clone(), Parked { until: Instant::now() + after, generation, deleting });
    }

    /// How long the saga of a cluster waits.
    pub(super) fn parked(&self, record: &ClusterRecord) -> Option<Duration> {
        let parked = *self.parked.lock().get(&record.id)?;
        let same = (parked.generation, parked.deleting) == (record.generation, record.deletion.is_some());
        let left = parked.until.saturating_duration_since(Instant::now());
        (same && !left.is_zero()).then_some(left)
    }

    /// Ends a wait: something happened that it may be for.
    pub(super) fn unpark(&self, id: &ClusterId) {
        self.parked.lock().remove(id);
    }

    /// Where bundles of a cluster go.
    pub(super) fn route(&self, record: &ClusterRecord, shard: &ShardRecord) -> Option<Route> {
        let consumer = shard.shard.consumer()?.to_owned();
        Some(Route { source: self.name.source_id(record.shard), consumer })
    }

    /// Remembers under which names a cluster is in the journal of decisions.
    pub(super) fn introduce(&self, record: &ClusterRecord) {
        let mut names = vec![format!("/api/aro_hcp/v1alpha1/clusters/{}", record.id)];
        names.extend(record.arm_id());
        let trace = record.deletion.as_ref().map_or(&record.trace, |deletion| &deletion.trace);
        let subject = Subject { correlation_id: trace.correlation_id.clone(), names };
        let mut subjects = self.subjects.lock();
        if subjects.len() >= MAX_SUBJECTS {
            subjects.clear();
        }
        subjects.insert(record.id.to_string(), subject);
    }

    /// Records a decision about a cluster.
    pub(super) fn decide(
        &self,
        id: &ClusterId,
        step: &'static str,
        outcome: Outcome,
        detail: impl Into<String>,
    ) {
        self.decide_by_key(id.as_str(), step, outcome, detail.into());
    }

    /// Records a decision about a node pool.
    pub(super) fn decide_pool(
        &self,
        pool: &NodePoolRecord,
        step: &'static str,
        outcome: Outcome,
        detail: String,
    ) {
        let subject = self.subjects.lock().get(pool.cluster_id.as_str()).cloned().unwrap_or_default();
        let mut names =
            vec![format!("/api/aro_hcp/v1alpha1/clusters/{}/node_pools/{}", pool.cluster_id, pool.id)];
        names.extend(
            subject
                .names
                .iter()
                .filter(|name| !name.starts_with("/api/"))
                .map(|arm_id| format!("{arm_id}/nodePools/{}", pool.id)),
        );
        let TraceContext { correlation_id, .. } = pool.trace.clone();
        self.decisions.record(Entry { correlation_id, subjects: names, step, outcome, detail });
    }

    fn decide_by_key(&self, key: &str, step: &'static str, outcome: Outcome, detail: String) {
        let Subject { correlation_id, names } = self.subjects.lock().get(key).cloned().unwrap_or_default();
        let subjects = if names.is_empty() { vec![key.to_owned()] } else { names };
        self.decisions.record(Entry { correlation_id, subjects, step, outcome, detail });
    }

    /// Records the progress of a saga; `steps` are the names that it may have.
    pub(super) fn progress(&self, key: &str, steps: &[&'static str], progress: &Progress<'_>) {
        let (name, outcome, detail) = match *progress {
            Progress::Started(step) => (step, Outcome::Started, ""),
            Progress::Done(step) => (step, Outcome::Done, ""),
            Progress::Waiting(step, on) => (step, Outcome::Waiting { on: on.to_owned() }, ""),
            Progress::Failed(step, reason) => (step, Outcome::Failed { reason: reason.to_owned() }, ""),
            Progress::Undone(step) => (step, Outcome::Done, "undone"),
            Progress::Stuck(step, reason) => (step, Outcome::Waiting { on: reason.to_owned() }, "stuck"),
        };
        if let Some(step) = steps.iter().find(|step| **step == name) {
            self.decide_by_key(key, step, outcome, detail.to_owned());
        }
    }
}
