//! One pass about one ManifestWork.

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

use crate::notes::Notes;
use crate::translate::{finalizer_patch, generation, has_finalizer, is_leaving, status_patch, work_of};

/// Between the ManifestWorks of a namespace and the engine.
pub(crate) struct Agent {
    pub(crate) namespace: String,
    pub(crate) api: Api<ManifestWork>,
    pub(crate) works: Informer<ManifestWork>,
    pub(crate) engine: Engine,
    pub(crate) notes: Arc<Notes>,
    /// Which object the engine's work of a name belongs to.
    pub(crate) given: Mutex<HashMap<String, String>>,
}

/// What is to be done about a ManifestWork, before any status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The engine has it as it is.
    Nothing,
    /// The finalizer goes on, then the engine gets it.
    Hold,
    /// The engine gets it.
    Give,
    /// The engine is to take it away.
    Leave,
    /// Everything of it is gone: the finalizer goes off.
    LetGo,
}

/// What a step follows from.
#[derive(Debug, Clone, Copy)]
struct Facts {
    leaving: bool,
    held: bool,
    /// The engine's generation and whether it takes the work away; `None` if it does not know it.
    known: Option<(i64, bool)>,
    generation: i64,
    /// Whether the engine's work belongs to this object, not to one of the same name before it.
    same: bool,
    gone: bool,
}

fn decide(facts: Facts) -> Step {
    match facts {
        Facts { leaving: true, held: false, .. } => Step::Nothing,
        Facts { leaving: true, gone: true, known: None, .. } => Step::LetGo,
        Facts { leaving: true, .. } => Step::Leave,
        // What is left of another one goes first.
        Facts { known: Some((_, true)), .. } => Step::Nothing,
        Facts { known: Some(_), same: false, .. } => Step::Leave,
        Facts { held: false, .. } => Step::Hold,
        Facts { known: Some((known, _)), generation, .. } if known == generation => Step::Nothing,
        _ => Step::Give,
    }
}

impl Reconcile for Agent {
    type Key = String;
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
            gone: self.notes.is_gone(name),
        };
        match decide(facts) {
            Step::Nothing => {}
            Step::Hold => {
                let held = self.patch(&object, true).await?;
                self.give(&held);
            }
            Step::Give => self.give(&object),
            Step::Leave => {
                if facts.leaving && facts.known.is_none() {
                    // From before a restart: what is told of it from now on is about this one.
                    self.given.lock().insert(name.clone(), uid);
                }
                if facts.leaving && (facts.same || facts.known.is_none()) {
                    // What stays is what it says at the end.
                    self.engine.leave(work_of(&object));
                } else {
                    self.engine.delete(name);
                }
            }
            Step::LetGo => {
                self.patch(&object, false).await?;
                self.given.lock().remove(name);
                self.notes.forget(name);
                return Ok(Outcome::Settled);
            }
        }
        self.write_status(name, &object, facts).await
    }
}

impl Agent {
    /// Gives a work to the engine.
    pub(crate) fn give(&self, object: &ManifestWork) {
        let name = object.name_any();
        // What was gone was another one.
        self.notes.forget(&name);
        self.given.lock().insert(name, object.uid().unwrap_or_default());
        self.engine.put(work_of(object));
    }

    /// Somebody took the object away over our finalizer, or it is gone as it should be.
    fn vanished(&self, name: &str) -> Outcome {
        match self.engine.known(name) {
            Some((_, false)) => self.engine.delete(name),
            Some((_, true)) => {}
            None => {
                self.given.lock().remove(name);
                self.notes.forget(name);
            }
        }
        Outcome::Settled
    }

    /// Sets the finalizer or takes it away.
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

    /// Writes the status that waits, if it is another than the one that is there.
    async fn write_status(&self, name: &str, object: &ManifestWork, facts: Facts) -> Result<Outcome, Fault> {
        let Some(status) = self.notes.status(name) else { return Ok(Outcome::Settled) };
        // What is told of an object of the same name before it is nothing to this one.
        if !facts.same && facts.known.is_some() {
            self.notes.done(name, &status);
            return Ok(Outcome::Settled);
        }
        if object.status.as_ref() != Some(&*status) {
            let patch = Patch::Merge(status_patch(object, &status));
            match self.api.patch_status(name, &PatchParams::default(), &patch).await {
                Ok(written) => {
                    self.works.cache().wrote(written);
                }
                // It is gone, or another one by now; its end is on the way.
                Err(kube::Error::Api(answer)) if answer.code == 404 => {}
                Err(kube::Error::Api(answer)) if answer.code == 409 => {
                    return Ok(Outcome::RequeueAfter(Duration::from_millis(50)));
                }
                Err(error) => return Err(Fault::caused("write the work's status", error)),
            }
        }
        self.notes.done(name, &status);
        Ok(Outcome::Settled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_is_held_before_it_is_given_and_let_go_when_it_is_gone() {
        let new = Facts { leaving: false, held: false, known: None, generation: 1, same: false, gone: false };
        let given = Facts { held: true, known: Some((1, false)), same: true, ..new };
        let leaving = Facts { leaving: true, ..given };
        for (name, facts, step) in [
            ("new", new, Step::Hold),
            ("held, not given", Facts { held: true, ..new }, Step::Give),
            ("given", given, Step::Nothing),
            ("changed", Facts { generation: 2, ..given }, Step::Give),
            ("finalizer taken away", Facts { held: false, ..given }, Step::Hold),
            ("leaving", leaving, Step::Leave),
            ("leaving, still there", Facts { known: Some((1, true)), ..leaving }, Step::Leave),
            ("leaving, gone", Facts { known: None, gone: true, ..leaving }, Step::LetGo),
            ("leaving, after a restart", Facts { known: None, same: false, ..leaving }, Step::Leave),
            ("leaving, never held", Facts { leaving: true, ..new }, Step::Nothing),
            ("made anew", Facts { same: false, ..given }, Step::Leave),
            (
                "made anew, old one going",
                Facts { same: false, known: Some((1, true)), ..given },
                Step::Nothing,
            ),
            (
                "made anew, old one gone",
                Facts { known: None, same: false, gone: true, held: false, ..given },
                Step::Hold,
            ),
        ] {
            assert_eq!(decide(facts), step, "{name}");
        }
    }
}
