//! One pass of one work: compares its desired with its actual state, acts and reports.
//!
//! `apply` is the pass of a work that is wanted, `bring` what it does for one manifest, `leave` the pass of a work that
//! goes, `plan` what the two have to decide about many objects. A pass is safe to repeat and to be cut off at any point: whatever it does, it finds out first whether that is needed.

mod apply;
mod bring;
mod leave;
mod plan;

use std::sync::Arc;
use std::time::Duration;

use aro_base::Timestamp;
use aro_control::{Outcome, Queue, Reconcile};
use aro_crds::work::v1::ManifestWorkStatus;
use aro_runtime::Fault;
use kube::Client;
use parking_lot::Mutex;

use crate::kinds::Kinds;
use crate::options::EngineOptions;
use crate::records::Records;
use crate::state::{Turn, Works};
use crate::watch::Watches;
use crate::work::{Reports, Times};

/// Calls about one work at once.
const AT_ONCE: usize = 8;

/// How long a work that came with a report from before a restart waits for the watches to open.
const OPENING: Duration = Duration::from_secs(5);

/// Transient failures are reported after this long: a definition needs a moment before its objects can be created.
const HOLD_BACK: Duration = Duration::from_millis(500);

/// Everything the passes of an engine share.
pub(crate) struct Passes {
    pub(crate) client: Client,
    pub(crate) options: EngineOptions,
    pub(crate) reports: Arc<dyn Reports>,
    pub(crate) works: Works,
    pub(crate) queue: Queue<String>,
    pub(crate) kinds: Kinds,
    pub(crate) watches: Watches,
    pub(crate) records: Records,
    /// Works of which something failed that a new namespace or definition may help.
    pub(crate) stuck: Mutex<std::collections::HashSet<String>>,
}

impl Reconcile for Passes {
    type Key = String;
    type Error = Fault;
    const NAME: &'static str = "apply";

    async fn reconcile(&self, name: &String) -> Result<Outcome, Fault> {
        let Some(mut turn) = self.works.take(name) else { return Ok(Outcome::Settled) };
        let ended = if turn.deleting { self.leave(&mut turn).await } else { self.apply(&mut turn).await };
        self.works.give_back(name, turn.memory);
        ended
    }
}

impl Passes {
    pub(crate) fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    /// Reports a status if it is another than the last one, and still about the work as it is.
    fn report(&self, turn: &Turn, status: ManifestWorkStatus, observed: Timestamp) {
        if *turn.status == status {
            return;
        }
        let status = Arc::new(status);
        if !self.works.record_report(turn, &status) {
            return;
        }
        let applied = turn.memory.applied.filter(|(revision, _)| *revision == turn.revision);
        let times = Times { received: turn.received, applied: applied.map(|(_, at)| at), observed };
        self.options.metrics.reports.inc();
        self.reports.status(&turn.name, turn.generation(), Arc::unwrap_or_clone(status), times);
    }

    /// Looks again at works that may have waited for what was just made.
    fn wake_stuck(&self) {
        for work in self.stuck.lock().drain() {
            self.queue.add(work);
        }
    }
}
