//! An engine whose reports are kept.

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
pub struct Told {
    pub name: String,
    pub generation: i64,
    pub status: ManifestWorkStatus,
    pub times: Times,
}

/// Keeps what is reported.
#[derive(Debug, Default)]
pub struct Kept {
    told: Mutex<Vec<Told>>,
    gone: Mutex<Vec<String>>,
}

impl Reports for Kept {
    fn status(&self, name: &str, generation: i64, status: ManifestWorkStatus, times: Times) {
        self.told.lock().push(Told { name: name.to_owned(), generation, status, times });
    }

    fn gone(&self, name: &str) {
        self.gone.lock().push(name.to_owned());
    }
}

/// An engine, and what it told.
pub struct Agent {
    pub engine: Engine,
    kept: Arc<Kept>,
    scope: Scope,
}

impl Agent {
    /// An engine for the works of a hub.
    pub fn start(world: &World, hub: &str) -> Self {
        Self::with(world, world.client.clone(), EngineOptions::new(hub, SystemClock::shared()))
    }

    /// An engine with options of its own.
    pub fn with(world: &World, client: Client, options: EngineOptions) -> Self {
        let (kept, scope) = (Arc::new(Kept::default()), world.scope.child(Phase::Roles, "agent"));
        let engine = Engine::start(client, options, kept.clone(), &scope);
        Self { engine, kept, scope }
    }

    /// Everything told of a work so far.
    pub fn told(&self, name: &str) -> Vec<Told> {
        self.kept.told.lock().iter().filter(|told| told.name == name).cloned().collect()
    }

    /// Whether a work was told to be gone.
    pub fn is_gone(&self, name: &str) -> bool {
        self.kept.gone.lock().iter().any(|gone| gone == name)
    }

    /// Waits for a report.
    pub async fn hears(&self, name: &str, what: &str, wanted: impl Fn(&Told) -> bool) -> Result<Told> {
        let found = wait::until(what, || async { Ok(self.told(name).into_iter().find(&wanted)) }).await;
        found.with_context(|| format!("told was {:#?}", self.told(name)))
    }

    /// Waits until a generation is applied and there.
    pub async fn settles(&self, name: &str, generation: i64) -> Result<Told> {
        self.hears(name, "the work is applied and available", |told| {
            told.generation == generation && is(told, "Applied", "True") && is(told, "Available", "True")
        })
        .await
    }

    /// Waits until a work is gone.
    pub async fn loses(&self, name: &str) -> Result<()> {
        let gone = wait::until("the work is gone", || async { Ok(self.is_gone(name).then_some(())) }).await;
        gone.with_context(|| format!("work {name}: told last was {:#?}", self.told(name).last()))
    }

    /// Gives it a work.
    pub fn put(&self, work: Work) {
        self.engine.put(work);
    }

    /// Returns when no work is in a pass or about to be, and says how often a work was told of by then.
    pub async fn rests(&self, name: &str) -> Result<usize> {
        let mut calm = 0;
        for _ in 0..2_000 {
            calm = if self.engine.busy() == 0 { calm + 1 } else { 0 };
            if calm > 20 {
                return Ok(self.told(name).len());
            }
            // Events are gathered for some milliseconds before they lead to a pass.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        bail!("the engine did not come to rest")
    }

    /// Ends it, as if the process ended.
    pub async fn stop(self) -> Result<()> {
        self.scope.close(Duration::from_secs(10)).await.ok().context("the agent ended in time")
    }
}

/// Whether a report has a condition.
pub fn is(told: &Told, kind: &str, status: &str) -> bool {
    told.status.conditions.iter().any(|condition| condition.type_ == kind && condition.status == status)
}

/// A reported value of one manifest.
pub fn value(status: &ManifestWorkStatus, ordinal: usize, name: &str) -> Option<FieldValue> {
    let manifest = status.resource_status.manifests.get(ordinal)?;
    manifest
        .status_feedback
        .values
        .iter()
        .find(|value| value.name == name)
        .map(|value| value.field_value.clone())
}
