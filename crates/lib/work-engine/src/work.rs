//! The works that the engine applies, and the reports it makes of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use aro_base::Timestamp;
use aro_crds::work::v1::{DeleteOption, ManifestConfigOption, ManifestWorkExecutor, ManifestWorkStatus};
use serde_json::Value;

/// Objects that are to be on the cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Work {
    /// Its name, unique for the engine.
    pub name: String,
    /// Which state of it this is; it only grows. Zero when the sender does not count.
    pub generation: i64,
    /// Labels of its record, when that is made.
    pub labels: BTreeMap<String, String>,
    /// The objects.
    pub manifests: Arc<Vec<Value>>,
    /// How single objects are treated.
    pub configs: Vec<ManifestConfigOption>,
    /// What becomes of them when the work goes.
    pub delete_option: Option<DeleteOption>,
    /// On whose behalf they are applied.
    pub executor: Option<ManifestWorkExecutor>,
    /// What was reported last, before a restart: if that is still so, nothing is reported.
    pub prior: Option<ManifestWorkStatus>,
}

/// When a report's work came, was applied, and was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The engine was given this generation.
    pub received: Timestamp,
    /// All of it was written; `None` if something still is not.
    pub applied: Option<Timestamp>,
    /// What is reported was seen.
    pub observed: Timestamp,
}

/// Receives reports about works. Called on the engine's tasks: it must not block.
pub trait Reports: Send + Sync + 'static {
    /// How a work is, now that something of it is different.
    fn status(&self, name: &str, generation: i64, status: ManifestWorkStatus, times: Times);

    /// A deleted work has left nothing behind.
    fn gone(&self, name: &str);
}
