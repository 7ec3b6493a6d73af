//! Reports of the engine that are not written yet.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use aro_control::Queue;
use aro_crds::work::v1::ManifestWorkStatus;
use aro_work_engine::{Reports, Times};
use parking_lot::Mutex;

/// The latest of each work: an older status that was not written yet is of no use to anybody.
pub(crate) struct PendingReports {
    statuses: Mutex<HashMap<String, Arc<ManifestWorkStatus>>>,
    gone: Mutex<HashSet<String>>,
    queue: Queue<String>,
}

impl PendingReports {
    pub(crate) fn new(queue: Queue<String>) -> Self {
        Self { statuses: Mutex::default(), gone: Mutex::default(), queue }
    }

    /// The status to write.
    pub(crate) fn status(&self, name: &str) -> Option<Arc<ManifestWorkStatus>> {
        self.statuses.lock().get(name).cloned()
    }

    /// Drops a status that is written or can no longer be. A newer one stays.
    pub(crate) fn done(&self, name: &str, status: &Arc<ManifestWorkStatus>) {
        let mut statuses = self.statuses.lock();
        if statuses.get(name).is_some_and(|known| Arc::ptr_eq(known, status)) {
            statuses.remove(name);
        }
    }

    /// Whether everything of a work is deleted.
    pub(crate) fn is_gone(&self, name: &str) -> bool {
        self.gone.lock().contains(name)
    }

    /// Drops the report of a finished deletion.
    pub(crate) fn forget(&self, name: &str) {
        self.gone.lock().remove(name);
        self.statuses.lock().remove(name);
    }
}

impl Reports for PendingReports {
    fn status(&self, name: &str, _: i64, status: ManifestWorkStatus, _: Times) {
        self.statuses.lock().insert(name.to_owned(), Arc::new(status));
        self.queue.add(name.to_owned());
    }

    fn gone(&self, name: &str) {
        self.gone.lock().insert(name.to_owned());
        self.queue.add(name.to_owned());
    }
}
