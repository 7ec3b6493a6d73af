//! An engine with recorded reports.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use aro_crds::work::v1::{FieldValue, ManifestWorkStatus};
use aro_fixtures::wait;
use aro_runtime::{Phase, Scope, SystemClock};
use aro_work_engine::{Engine, EngineOptions, Reports, Times, Work};
use kube::Client;
use parking_lot::Mutex;

use crate::world::World;

/// One report.
#[derive(Debug, Clone)]
pub struct Report {
    pub name: String,
    pub generation: i64,
    pub status: ManifestWorkStatus,
    pub times: Times,
}

/// Records reports.
#[derive(Debug, Default)]
pub struct Recorder {
    told: Mutex<Vec<Report>>,
    gone: Mutex<Vec<String>>,
}

impl Reports for Recorder {
    fn status(&self, name: &str, generation: i64, status: ManifestWorkStatus, times: Times) {
        self.told.lock().push(Report { name: name.to_owned(), generation, status, times });
    }

    fn gone(&self, name: &str) {
        self.gone.lock().push(name.to_owned());
    }
}

/// An engine and its reports.
pub struct Agent {
    pub engine: Engine,
    kept: Arc<Recorder>,
    scope: Scope,
}

impl Agent {
    /// An engine for the works of a hub.
    pub fn start(world: &World, hub: &str) -> Self {
        Self::with(world, world.client.clone(), EngineOptions::new(hub, SystemClock::shared()))
    }

    /// An engine with options of its own.
    pub fn with(world: &World, client: Client, options: EngineOptions) -> Self {
        let (kept, scope) = (Arc::new(Recorder::default()), world.scope.child(Phase::Roles, "agent"));
        let engine = Engine::start(client, options, kept.clone(), &scope);
        Self { engine, kept, scope }
    }

    /// All reports about a work so far.
    pub fn told(&self, name: &str) -> Vec<Report> {
        self.kept.told.lock().iter().filter(|told| told.name == name).cloned().collect()
    }

    /// Whether a work was reported deleted.
    pub fn is_gone(&self, name: &str) -> bool {
        self.kept.gone.lock().iter().any(|gone| gone == name)
    }

    /// Waits for a report.
    pub async fn wait_for(&self, name: &str, what: &str, wanted: impl Fn(&Report) -> bool) -> Result<Report> {
        let found = wait::until(what, || async { Ok(self.told(name).into_iter().find(&wanted)) }).await;
        found.with_context(|| format!("told was {:#?}", self.told(name)))
    }

    /// Waits until a generation is applied and available.
    pub async fn wait_settled(&self, name: &str, generation: i64) -> Result<Report> {
        self.wait_for(name, "the work is applied and available", |told| {
            told.generation == generation && is(told, "Applied", "True") && is(told, "Available", "True")
        })
        .await
    }

    /// Waits until a work is deleted.
    pub async fn wait_deleted(&self, name: &str) -> Result<()> {
        let gone = wait::until("the work is gone", || async { Ok(self.is_gone(name).then_some(())) }).await;
        gone.with_context(|| format!("work {name}: told last was {:#?}", self.told(name).last()))
    }

    /// Hands it a work.
    pub fn put(&self, work: Work) {
        self.engine.put(work);
    }

    /// Returns when no pass is running or pending, with the number of reports about a work by then.
    pub async fn wait_idle(&self, name: &str) -> Result<usize> {
        let mut calm = 0;
        for _ in 0..2_000 {
            calm = if self.engine.busy() == 0 { calm + 1 } else { 0 };
            if calm > 20 {
                return Ok(self.told(name).len());
            }
            // Events are collected for some milliseconds before they lead to a pass.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        bail!("the engine did not come to rest")
    }

    /// Stops it, as if the process ended.
    pub async fn stop(self) -> Result<()> {
        self.scope.close(Duration::from_secs(10)).await.ok().context("the agent ended in time")
    }
}

/// Whether a report has a condition.
pub fn is(told: &Report, kind: &str, status: &str) -> bool {
    told.status.conditions.iter().any(|condition| condition.type_ == kind && condition.status == status)
}

/// A status feedback value of one manifest.
pub fn value(status: &ManifestWorkStatus, ordinal: usize, name: &str) -> Option<FieldValue> {
    let manifest = status.resource_status.manifests.get(ordinal)?;
    manifest
        .status_feedback
        .values
        .iter()
        .find(|value| value.name == name)
        .map(|value| value.field_value.clone())
}
