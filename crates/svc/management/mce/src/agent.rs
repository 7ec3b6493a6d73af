//! Reconciles one ManifestWork.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_control::{Outcome, Reconcile};
use aro_crds::work::v1::ManifestWork;
use aro_kube::informer::{Informer, ObjectKey};
use aro_runtime::Fault;
use aro_work_engine::Engine;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use parking_lot::Mutex;

use crate::pending_reports::PendingReports;
use crate::translate::{finalizer_patch, generation, has_finalizer, is_leaving, status_patch, work_of};

/// Connects the ManifestWorks of a namespace with the engine.
pub(crate) struct Agent {
    pub(crate) namespace: String,
    pub(crate) api: Api<ManifestWork>,
    pub(crate) works: Informer<ManifestWork>,
    pub(crate) engine: Engine,
    pub(crate) pending_reports: Arc<PendingReports>,
    /// The uid of the object that each of the engine's works belongs to.
    pub(crate) given: Mutex<HashMap<String, String>>,
}

/// The next step for a ManifestWork, before its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The engine has its current generation.
    Nothing,
    /// Set the finalizer, then hand it to the engine.
    SetFinalizer,
    /// Hand it to the engine.
    Apply,
    /// The engine deletes it.
    Delete,
    /// Everything of it is deleted: remove the finalizer.
    Release,
}

/// The inputs of the step.
#[derive(Debug, Clone, Copy)]
struct Facts {
    leaving: bool,
    held: bool,
    /// The engine's generation, and whether it is deleting the work; `None` if it does not have it.
    known: Option<(i64, bool)>,
    generation: i64,
    /// Whether the engine's work belongs to this object, not to an earlier one of the same name.
    same: bool,
    gone: bool,
}

fn decide(facts: Facts) -> Step {
    match facts {
        Facts { leaving: true, held: false, .. } => Step::Nothing,
        Facts { leaving: true, gone: true, known: None, .. } => Step::Release,
        Facts { leaving: true, .. } => Step::Delete,
        // An earlier object's work is deleted first.
        Facts { known: Some((_, true)), .. } => Step::Nothing,
        Facts { known: Some(_), same: false, .. } => Step::Delete,
        Facts { held: false, .. } => Step::SetFinalizer,
        Facts { known: Some((known, _)), generation, .. } if known == generation => Step::Nothing,
        _ => Step::Apply,
    }
}

impl Reconcile for Agent {
    type Key = String;
    type Error = Fault;
    const NAME: &'static str = "mce-work-agent";

    async fn reconcile(&self, name: &String) -> Result<Outcome, Fault> {
        let Some(object) = self.works.cache().get(&ObjectKey::new(self.namespace.clone(), name.clone()))
        else {
            return Ok(self.vanished(name));
        };
        let uid = object.uid().unwrap_or_default();
        let facts = Facts {
            leaving: is_leaving(&object),
            held: has_finalizer(&object),
            known: self.engine.known(name),
            generation: generation(&object),
            same: self.given.lock().get(name) == Some(&uid),
            gone: self.pending_reports.is_gone(name),
        };
        match decide(facts) {
            Step::Nothing => {}
            Step::SetFinalizer => {
                let held = self.patch(&object, true).await?;
                self.give(&held);
            }
            Step::Apply => self.give(&object),
            Step::Delete => {
                if facts.leaving && facts.known.is_none() {
                    // After a restart: reports from now on are about this object.
                    self.given.lock().insert(name.clone(), uid);
                }
                if facts.leaving && (facts.same || facts.known.is_none()) {
                    // The final spec decides what stays.
                    self.engine.leave(work_of(&object));
                } else {
                    self.engine.delete(name);
                }
            }
            Step::Release => {
                self.patch(&object, false).await?;
                self.given.lock().remove(name);
                self.pending_reports.forget(name);
                return Ok(Outcome::Settled);
            }
        }
        self.write_status(name, &object, facts).await
    }
}

impl Agent {
    /// Hands a work to the engine.
    pub(crate) fn give(&self, object: &ManifestWork) {
        let name = object.name_any();
        // An earlier deletion belongs to another object.
        self.pending_reports.forget(&name);
        self.given.lock().insert(name, object.uid().unwrap_or_default());
        self.engine.put(work_of(object));
    }

    /// The object is deleted, by this agent or despite its finalizer.
    fn vanished(&self, name: &str) -> Outcome {
        match self.engine.known(name) {
            Some((_, false)) => self.engine.delete(name),
            Some((_, true)) => {}
            None => {
                self.given.lock().remove(name);
                self.pending_reports.forget(name);
            }
        }
        Outcome::Settled
    }

    /// Sets or removes the finalizer.
    async fn patch(&self, object: &ManifestWork, on: bool) -> Result<Arc<ManifestWork>, Fault> {
        let patch = finalizer_patch(object, on);
        let name = object.name_any();
        match self.api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(patched) if on => Ok(self.works.cache().wrote(patched)),
            Ok(patched) => Ok(Arc::new(patched)),
            Err(kube::Error::Api(status)) if status.code == 404 && !on => Ok(Arc::new(object.clone())),
            Err(error) => Err(Fault::caused("change the work's finalizers", error)),
        }
    }

    /// Writes the pending status, if it differs from the current one.
    async fn write_status(&self, name: &str, object: &ManifestWork, facts: Facts) -> Result<Outcome, Fault> {
        let Some(status) = self.pending_reports.status(name) else { return Ok(Outcome::Settled) };
        // A report about an earlier object of the same name is dropped.
        if !facts.same && facts.known.is_some() {
            self.pending_reports.done(name, &status);
            return Ok(Outcome::Settled);
        }
        if object.status.as_ref() != Some(&*status) {
            let patch = Patch::Merge(status_patch(object, &status));
            match self.api.patch_status(name, &PatchParams::default(), &patch).await {
                Ok(written) => {
                    self.works.cache().wrote(written);
                }
                // The object is deleted or replaced; its deletion follows.
                Err(kube::Error::Api(answer)) if answer.code == 404 => {}
                Err(kube::Error::Api(answer)) if answer.code == 409 => {
                    return Ok(Outcome::RequeueAfter(Duration::from_millis(50)));
                }
                Err(error) => return Err(Fault::caused("write the work's status", error)),
            }
        }
        self.pending_reports.done(name, &status);
        Ok(Outcome::Settled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finalizer_is_set_before_the_apply_and_removed_after_the_deletion() {
        let new = Facts { leaving: false, held: false, known: None, generation: 1, same: false, gone: false };
        let given = Facts { held: true, known: Some((1, false)), same: true, ..new };
        let leaving = Facts { leaving: true, ..given };
        for (name, facts, step) in [
            ("new", new, Step::SetFinalizer),
            ("held, not given", Facts { held: true, ..new }, Step::Apply),
            ("given", given, Step::Nothing),
            ("changed", Facts { generation: 2, ..given }, Step::Apply),
            ("finalizer removed", Facts { held: false, ..given }, Step::SetFinalizer),
            ("leaving", leaving, Step::Delete),
            ("leaving, still there", Facts { known: Some((1, true)), ..leaving }, Step::Delete),
            ("leaving, gone", Facts { known: None, gone: true, ..leaving }, Step::Release),
            ("leaving, after a restart", Facts { known: None, same: false, ..leaving }, Step::Delete),
            ("leaving, never held", Facts { leaving: true, ..new }, Step::Nothing),
            ("recreated", Facts { same: false, ..given }, Step::Delete),
            (
                "recreated, old one being deleted",
                Facts { same: false, known: Some((1, true)), ..given },
                Step::Nothing,
            ),
            (
                "recreated, old one deleted",
                Facts { known: None, same: false, gone: true, held: false, ..given },
                Step::SetFinalizer,
            ),
        ] {
            assert_eq!(decide(facts), step, "{name}");
        }
    }
}
