//! The pass of a work that goes.

use aro_control::Outcome;
use aro_crds::work::v1::{AppliedManifestWork, ResourceIdentifier};
use aro_runtime::Fault;

use super::Passes;
use super::plan::entries;
use crate::choice::is_owned;
use crate::owners::Owner;
use crate::removal::{Left, leaving_message};
use crate::state::Turn;
use crate::status::{Frame, of_leaving};

impl Passes {
    /// Deletes the record first, which lasts over a restart, then its objects, and lets it go when nothing is left. A work
    /// that goes at once is only reported gone; what takes longer is reported with whom it waits for.
    pub(super) async fn leave(&self, turn: &mut Turn) -> Result<Outcome, Fault> {
        let Some(record) = self.records.get(&turn.name) else {
            self.finish(turn);
            return Ok(Outcome::Settled);
        };
        let begun = self.records.begin_removal(&record).await;
        begun.map_err(|error| Fault::caused("delete the work's record", error))?;
        let (held, failures) = self.remove_all(turn, &record).await;
        if held.is_empty() && failures.is_empty() {
            let gone = self.records.finish_removal(&record).await;
            gone.map_err(|error| Fault::caused("let the work's record go", error))?;
            self.finish(turn);
            return Ok(Outcome::Settled);
        }
        let now = self.now();
        let frame = Frame {
            generation: turn.generation(),
            old: &turn.status,
            now,
            max_json_raw: self.options.max_json_raw,
        };
        self.report(turn, of_leaving(frame, &leaving_message(&held, &failures)), now);
        match failures.into_iter().next() {
            Some(failure) => Err(Fault::new(failure)),
            None => Ok(Outcome::Waiting { on: "the end of its objects", recheck: Some(self.options.poll) }),
        }
    }

    /// Takes all objects of a work away. What is still there, and what could not be deleted.
    async fn remove_all(&self, turn: &mut Turn, record: &AppliedManifestWork) -> (Vec<String>, Vec<String>) {
        let owner = Owner::of(record);
        let (mut held, mut failures) = (Vec::new(), Vec::new());
        for entry in entries(&turn.memory, record) {
            let stays = turn.work.as_ref().is_some_and(|work| {
                let object = ResourceIdentifier {
                    group: entry.group.clone(),
                    resource: entry.resource.clone(),
                    name: entry.name.clone(),
                    namespace: entry.namespace.clone(),
                };
                !is_owned(work.delete_option.as_ref(), &object)
            });
            match self.remove_entry(turn, &owner, &entry, stays).await {
                Ok(Left::Nothing) => {}
                Ok(Left::Held(by)) => held.push(by),
                Err(failure) => {
                    self.options.metrics.failed(failure.class());
                    failures.push(format!("{} {}: {failure}", entry.resource, entry.name));
                }
            }
        }
        (held, failures)
    }

    /// Nothing is left: the work is forgotten and reported as gone.
    fn finish(&self, turn: &mut Turn) {
        // A new work of this name begins with nothing.
        let memory = std::mem::take(&mut turn.memory);
        for object in memory.objects.into_values() {
            self.watches.release(&object.kind, &object.key, &turn.name);
        }
        self.stuck.lock().remove(&turn.name);
        self.works.forget(&turn.name);
        self.options.metrics.works.set(self.works.len() as i64);
        self.reports.gone(&turn.name);
    }
}
