//! How an engine is set up.

use std::time::Duration;

use aro_base::SharedClock;
use aro_control::ReconcileMetrics;

use crate::metrics::ApplyMetrics;

/// How an engine is set up.
#[derive(Clone)]
pub struct EngineOptions {
    /// A digest of where works come from; part of the records' names.
    pub hub_hash: String,
    /// Which agent this is; several may work on one cluster.
    pub agent_id: String,
    /// The longest JSON that is reported of an object, in bytes.
    pub max_json_raw: usize,
    /// Every work gets a pass this often even without an event of its objects.
    pub drift_check: Duration,
    /// How often objects are read that cannot be watched.
    pub poll: Duration,
    /// Records of works that are not requested are removed with their objects after this long; never, if it is not set.
    pub eviction_grace: Option<Duration>,
    /// Works in a pass at once.
    pub workers: usize,
    /// The time in conditions.
    pub clock: SharedClock,
    /// Counts what the engine does.
    pub metrics: ApplyMetrics,
    /// Counts passes.
    pub passes: ReconcileMetrics,
}

impl EngineOptions {
    /// The usual ones, for the works of one hub.
    pub fn new(hub_hash: impl Into<String>, clock: SharedClock) -> Self {
        let hub_hash = hub_hash.into();
        Self {
            agent_id: hub_hash.clone(),
            hub_hash,
            max_json_raw: 1024 * 1024,
            drift_check: Duration::from_mins(5),
            poll: Duration::from_secs(10),
            eviction_grace: None,
            workers: 32,
            clock,
            metrics: ApplyMetrics::default(),
            passes: ReconcileMetrics::default(),
        }
    }
}

impl std::fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineOptions")
            .field("hub_hash", &self.hub_hash)
            .field("agent_id", &self.agent_id)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}
