//! The handle by which works are given to the engine.

use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_control::{Queue, Runner, RunnerOptions};
use aro_crds::work::v1::ManifestWorkStatus;
use aro_net::Backoff;
use aro_runtime::{Fault, Scope, TaskKind};
use kube::Client;

use crate::kinds::Kinds;
use crate::options::EngineOptions;
use crate::pass::Passes;
use crate::records::Records;
use crate::state::Works;
use crate::watch::Watches;
use crate::work::{Reports, Work};

/// Tasks that the passes are spread over.
const TASKS: usize = 2;

/// Between passes of a work that fails.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(30));

/// Applies works and reports on them until its scope is closed. Cloning gives another handle to the same one.
#[derive(Clone)]
pub struct Engine {
    passes: Arc<Passes>,
    scope: Scope,
}

impl Engine {
    /// Starts an engine without works.
    pub fn start(client: Client, options: EngineOptions, reports: Arc<dyn Reports>, scope: &Scope) -> Self {
        let queue = Queue::new();
        let changed = queue.clone();
        let (hub, agent) = (&options.hub_hash, &options.agent_id);
        let records =
            Records::start(client.clone(), hub, agent, scope, move |work| changed.add(work.to_owned()));
        let watches = Watches::new(client.clone(), queue.clone(), scope.clone(), options.metrics.clone());
        let (workers, metrics) = (options.workers, options.passes.clone());
        let passes = Arc::new(Passes {
            kinds: Kinds::new(client.clone()),
            client,
            options,
            reports,
            works: Works::default(),
            queue: queue.clone(),
            watches,
            records,
            stuck: parking_lot::Mutex::default(),
        });
        let engine = Self { passes: passes.clone(), scope: scope.clone() };
        let inside = scope.clone();
        // No work gets a pass before the records are listed.
        scope.spawn(TaskKind::Helper, "apply-start", async move {
            passes.records.synced().await;
            // Passes parse and compare objects: one task would be one core.
            let options = RunnerOptions { tasks: TASKS, concurrency: workers, backoff: BACKOFF };
            Runner::new(passes, &queue).with_options(options).with_metrics(&metrics).start(&inside);
            Ok::<_, Fault>(())
        });
        engine
    }

    /// Sets the desired state of a work. Repeating it is cheap; an older generation than is known and a work that is being
    /// deleted stay as they are.
    pub fn put(&self, work: Work) {
        let name = work.name.clone();
        if self.passes.works.put(work, self.passes.now()) {
            self.passes.options.metrics.works.set(self.passes.works.len() as i64);
            self.passes.queue.add(name);
        }
    }

    /// Requests the deletion of a work with what it owns. An unknown work is deleted as well: what is left of it is removed.
    /// Repeating it is harmless.
    pub fn delete(&self, name: &str) {
        self.passes.works.delete(name, self.passes.now());
        self.passes.queue.add(name.to_owned());
    }

    /// The same for a work that is known in full: what stays on the cluster is decided by its present content, not by what the
    /// engine was given before, or has forgotten.
    pub fn leave(&self, work: Work) {
        let name = work.name.clone();
        self.passes.works.leave(work, self.passes.now());
        self.passes.queue.add(name);
    }

    /// Declares that all works are known. Records without a work are cleaned up: those being deleted are
    /// finished, the others are evicted after the grace period, if there is one.
    pub fn resume(&self) {
        let engine = self.clone();
        self.scope.spawn(TaskKind::Helper, "apply-resume", async move {
            engine.clean_up_orphans().await;
            Ok::<_, Fault>(())
        });
    }

    async fn clean_up_orphans(&self) {
        let records = &self.passes.records;
        records.synced().await;
        let Some(grace) = self.passes.options.eviction_grace else {
            self.finish_interrupted();
            return;
        };
        let now = self.passes.now();
        let mut longest = Duration::ZERO;
        for (work, record) in records.all() {
            if self.passes.works.known(&work).is_some() {
                continue;
            }
            let since = record.status.as_ref().and_then(|status| status.eviction_start_time.as_ref());
            let Some(since) = since else {
                longest = grace;
                if let Err(error) = records.note_eviction(&record, now).await {
                    tracing::warn!(work, error = %chain(&error), "record without a work not marked for eviction");
                }
                continue;
            };
            let passed = Duration::try_from(now.duration_since(since.0)).unwrap_or_default();
            longest = longest.max(grace.saturating_sub(passed));
        }
        self.finish_interrupted();
        tokio::time::sleep(longest).await;
        for (work, _) in records.all() {
            if self.passes.works.known(&work).is_none() {
                tracing::info!(work, "work not requested within the grace period; evicting");
                self.delete(&work);
            }
        }
    }

    /// Goes on with deletions that a restart cut off.
    fn finish_interrupted(&self) {
        for (work, record) in self.passes.records.all() {
            if record.metadata.deletion_timestamp.is_some() && self.passes.works.known(&work).is_none() {
                self.delete(&work);
            }
        }
    }

    /// The generation that is known of a work, and whether it is being deleted.
    pub fn known(&self, name: &str) -> Option<(i64, bool)> {
        self.passes.works.known(name)
    }

    /// What was reported last of a work.
    pub fn status(&self, name: &str) -> Option<ManifestWorkStatus> {
        self.passes.works.status(name)
    }

    /// The names of all works, those being deleted too, in no order.
    pub fn names(&self) -> Vec<String> {
        self.passes.works.names()
    }

    /// Works that have a record and were neither put nor deleted. Empty before the engine is synced.
    pub fn unclaimed(&self) -> Vec<String> {
        let names = self.passes.records.all().into_iter().map(|(work, _)| work);
        names.filter(|work| self.passes.works.known(work).is_none()).collect()
    }

    /// Returns when the engine knows the records there are; before that no work gets a pass.
    pub async fn synced(&self) {
        self.passes.records.synced().await;
    }

    /// How many works wait for a pass or are in one.
    pub fn busy(&self) -> usize {
        self.passes.queue.busy()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("works", &self.passes.works.len()).finish_non_exhaustive()
    }
}
