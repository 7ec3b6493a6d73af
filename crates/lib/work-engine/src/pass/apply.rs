//! The pass of a work that is wanted.

use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_control::Outcome;
use aro_crds::work::v1::{AppliedManifestResourceMeta, AppliedManifestWork};
use aro_kube::informer::ObjectKey;
use aro_runtime::Fault;
use futures::StreamExt as _;
use futures::stream;
use tokio::time::Instant;

use super::bring::{Brought, Load};
use super::plan::{applied_list, batch_end, entries, leftovers, names};
use super::{AT_ONCE, HOLD_BACK, OPENING, Passes};
use crate::decide::{Known, Repairs};
use crate::failure::{Failure, PATIENT_PAUSE, Remedy};
use crate::intent;
use crate::manifest::{Prepared, Target, prepare};
use crate::memory::{Object, Place, place};
use crate::owners::Owner;
use crate::records::Record;
use crate::removal::{self, Left};
use crate::state::Turn;
use crate::status::{Frame, Seen, is_complete, is_frozen, of_work, says_applied};
use crate::watch::{Sight, Watch};
use crate::work::Work;

/// What a pass wants to happen next.
#[derive(Debug, Default)]
struct Next {
    /// Something failed that trying again may help.
    failed: Option<String>,
    /// Look again at the latest after this.
    again: Option<Duration>,
}

impl Next {
    fn within(&mut self, pause: Duration) {
        self.again = Some(self.again.map_or(pause, |known| known.min(pause)));
    }
}

impl Passes {
    pub(super) async fn apply(&self, turn: &mut Turn) -> Result<Outcome, Fault> {
        let Some(work) = turn.work.clone() else { return Ok(Outcome::Settled) };
        if is_frozen(&turn.status, work.generation) {
            return Ok(Outcome::Settled);
        }
        let prepared = self.prepared(turn, &work).await;
        let wanted = intent::of(&prepared);
        let mut record = self.record(&work, &wanted).await?;
        if record.metadata.deletion_timestamp.is_some() {
            self.save_from(turn, &record).await?;
            // In the same pass: if the work were deleted in between, its own objects would be unknown.
            record = self.record(&work, &wanted).await?;
            if record.metadata.deletion_timestamp.is_some() {
                return Err(Fault::new("the work's record is being deleted, and another finalizer holds it"));
            }
        }
        let owner = Owner::of(&record);
        let mut next = Next::default();
        let seen = self.bring_all(turn, &work, &prepared, &owner, &mut next).await;
        let left = self.remove_leftovers(turn, &record, &owner, &prepared, &mut next).await;
        if let Err(error) = self.forget_intended(&record, &prepared, &wanted, &left).await {
            next.failed = Some(format!("note what is intended: {}", chain(&error)));
        }
        let applied = applied_list(&record, &prepared, &seen, left);
        if let Err(error) = self.records.note(&record, applied).await {
            next.failed = Some(format!("note what is applied: {}", chain(&error)));
        }
        self.conclude(turn, &work, &seen, next)
    }

    async fn record(
        &self,
        work: &Work,
        wanted: &[AppliedManifestResourceMeta],
    ) -> Result<Arc<Record>, Fault> {
        let record = self.records.ensure(work, wanted).await;
        record.map_err(|error| Fault::caused("make the work's record", error))
    }

    /// The manifests with their resources; kept once all are known.
    async fn prepared(&self, turn: &mut Turn, work: &Work) -> Arc<Vec<Prepared>> {
        if let Some((revision, prepared)) = &turn.memory.prepared
            && *revision == turn.revision
        {
            return prepared.clone();
        }
        let mut all = Vec::with_capacity(work.manifests.len());
        for ordinal in 0..work.manifests.len() {
            all.push(prepare(work, ordinal, &self.kinds).await);
        }
        let complete = all.iter().all(|prepared| prepared.target.is_ok());
        let prepared = Arc::new(all);
        turn.memory.prepared = complete.then(|| (turn.revision, prepared.clone()));
        prepared
    }

    /// Brings all manifests, those that carry others in their place of the list, the rest side by side.
    async fn bring_all(
        &self,
        turn: &mut Turn,
        work: &Work,
        prepared: &[Prepared],
        owner: &Owner,
        next: &mut Next,
    ) -> Vec<Seen> {
        let trusted = says_applied(&turn.status, work.generation) && turn.memory.applied.is_none();
        let watched = self.watch_all(turn, prepared);
        if trusted {
            let opened = futures::future::join_all(watched.iter().flatten().map(|watch| watch.opened()));
            // If they do not open, what is there is applied again, which changes nothing.
            let _ = tokio::time::timeout(OPENING, opened).await;
        }
        let mut brought: Vec<Option<Brought>> = prepared.iter().map(|_| None).collect();
        let mut at = 0;
        while at < prepared.len() {
            let end = batch_end(prepared, at);
            let loads = (at..end).filter_map(|ordinal| {
                let target = prepared[ordinal].target.as_ref().ok()?;
                let watch = watched[ordinal].as_ref()?;
                let object = turn.memory.objects.get(&place(&target.kind, &target.key))?.clone();
                let complete = is_complete(&turn.status, &prepared[ordinal].meta, work.generation);
                let load = Load {
                    target,
                    manifest: &work.manifests[ordinal],
                    owner,
                    executor: work.executor.as_ref(),
                    revision: turn.revision,
                    trusted,
                    complete,
                };
                Some(async move { (ordinal, self.bring(load, watch, object).await) })
            });
            let done: Vec<(usize, Brought)> = stream::iter(loads).buffer_unordered(AT_ONCE).collect().await;
            for (ordinal, one) in done {
                brought[ordinal] = Some(one);
            }
            at = end;
        }
        let carried = |ordinal: &usize| prepared[*ordinal].target.as_ref().is_ok_and(Target::carries_others);
        let wrote = |ordinal: &usize| brought[*ordinal].as_ref().is_some_and(|one| one.wrote);
        if (0..prepared.len()).any(|ordinal| carried(&ordinal) && wrote(&ordinal)) {
            self.wake_stuck();
        }
        let results = prepared.iter().zip(brought).zip(&watched);
        results
            .map(|((prepared, brought), watch)| self.seen(turn, prepared, brought, watch.as_deref(), next))
            .collect()
    }

    /// Watches what the work names from now on.
    fn watch_all(&self, turn: &mut Turn, prepared: &[Prepared]) -> Vec<Option<Arc<Watch>>> {
        let watch = |prepared: &Prepared| {
            let target = prepared.target.as_ref().ok()?;
            let watch = self.watches.want(&target.kind, &target.key, &turn.name);
            let object = || Object {
                kind: target.kind.clone(),
                key: target.key.clone(),
                uid: String::new(),
                written: None,
                repairs: Repairs::default(),
            };
            turn.memory.objects.entry(place(&target.kind, &target.key)).or_insert_with(object);
            Some(watch)
        };
        prepared.iter().map(watch).collect()
    }

    /// Books what became of one manifest.
    fn seen(
        &self,
        turn: &mut Turn,
        prepared: &Prepared,
        brought: Option<Brought>,
        watch: Option<&Watch>,
        next: &mut Next,
    ) -> Seen {
        let meta = prepared.meta.clone();
        let (failure, known) = match (brought, &prepared.target) {
            (Some(brought), _) => {
                let object = brought.object;
                turn.memory.objects.insert(place(&object.kind, &object.key), object);
                if let Some(later) = brought.later {
                    next.within(later);
                }
                if watch.is_some_and(|watch| watch.sight() == Sight::Blind) {
                    next.within(self.options.poll);
                }
                (brought.failure.map(Arc::new), brought.known)
            }
            (None, Err(failure)) => {
                self.options.metrics.failed(failure.class());
                (Some(failure.clone()), Known::Unknown)
            }
            (None, Ok(_)) => (None, Known::Unknown),
        };
        if let Some(failure) = &failure {
            // The kind may be another by now.
            turn.memory.prepared = None;
            match failure.remedy() {
                Remedy::Another => {}
                Remedy::Patience => next.within(PATIENT_PAUSE),
                Remedy::Soon | Remedy::Later => next.failed = Some(failure.to_string()),
            }
        }
        let choice = prepared.target.as_ref().map(|target| target.choice.clone()).unwrap_or_default();
        Seen { meta, choice, failure, known }
    }

    /// Takes away what the work no longer names. Returns what is still there.
    async fn remove_leftovers(
        &self,
        turn: &mut Turn,
        record: &AppliedManifestWork,
        owner: &Owner,
        prepared: &[Prepared],
        next: &mut Next,
    ) -> Vec<AppliedManifestResourceMeta> {
        // While it is not known what a manifest is about, it might be one of these.
        if prepared.iter().any(|prepared| prepared.target.is_err()) {
            let known = record.status.iter().flat_map(|status| &status.applied_resources);
            return known.filter(|entry| !names(prepared, entry)).cloned().collect();
        }
        let mut left = Vec::new();
        for entry in leftovers(&turn.memory, record, prepared) {
            match self.remove_entry(turn, owner, &entry, false).await {
                Ok(Left::Nothing) => {}
                Ok(Left::Held(_)) => {
                    next.within(self.options.poll);
                    left.push(entry);
                }
                Err(failure) => {
                    next.failed = Some(format!("remove {} {}: {failure}", entry.resource, entry.name));
                    left.push(entry);
                }
            }
        }
        left
    }

    /// What was intended once, is no longer named and was deleted need not be searched any longer.
    async fn forget_intended(
        &self,
        record: &AppliedManifestWork,
        prepared: &[Prepared],
        wanted: &[AppliedManifestResourceMeta],
        left: &[AppliedManifestResourceMeta],
    ) -> Result<(), kube::Error> {
        let known = prepared.iter().all(|prepared| prepared.target.is_ok());
        if known && left.is_empty() && intent::read(record).iter().any(|entry| !names(prepared, entry)) {
            self.records.intend(record, wanted).await?;
        }
        Ok(())
    }

    /// Takes one object away, and watches it no more when it is gone.
    pub(super) async fn remove_entry(
        &self,
        turn: &mut Turn,
        owner: &Owner,
        entry: &AppliedManifestResourceMeta,
        stays: bool,
    ) -> Result<Left, Failure> {
        let Some(watch) = removal::find(entry, &self.kinds, &self.watches, &turn.name).await? else {
            return Ok(Left::Nothing);
        };
        let key = ObjectKey::new(entry.namespace.clone(), entry.name.clone());
        let place = place(watch.kind(), &key);
        turn.memory.objects.entry(place.clone()).or_insert_with(|| Object {
            kind: watch.kind().clone(),
            key: key.clone(),
            uid: entry.uid.clone(),
            written: None,
            repairs: Repairs::default(),
        });
        let left = removal::remove(&watch, &key, owner, stays, &self.options.metrics).await?;
        if matches!(left, Left::Nothing) {
            self.release(turn, &place);
        }
        Ok(left)
    }

    /// Watches an object no more.
    pub(super) fn release(&self, turn: &mut Turn, place: &Place) {
        if let Some(object) = turn.memory.objects.remove(place) {
            self.watches.release(&object.kind, &object.key, &turn.name);
        }
    }

    /// Another client deletes the record of a work that is wanted: its objects are released before they are deleted with it. The next record
    /// takes them back.
    async fn save_from(&self, turn: &mut Turn, record: &AppliedManifestWork) -> Result<(), Fault> {
        let owner = Owner::of(record);
        for entry in entries(&turn.memory, record) {
            let disowned = self.remove_entry(turn, &owner, &entry, true).await;
            disowned.map_err(|failure| Fault::caused("let an object go", failure))?;
        }
        turn.memory.objects.values_mut().for_each(|object| object.written = None);
        let gone = self.records.finish_removal(record).await;
        gone.map_err(|error| Fault::caused("let the record go", error))
    }

    fn conclude(
        &self,
        turn: &mut Turn,
        work: &Work,
        seen: &[Seen],
        mut next: Next,
    ) -> Result<Outcome, Fault> {
        let now = self.now();
        let since = match turn.memory.tried {
            Some((revision, since)) if revision == turn.revision => since,
            _ => Instant::now(),
        };
        turn.memory.tried = Some((turn.revision, since));
        let failures = || seen.iter().filter_map(|seen| seen.failure.as_deref());
        if failures().next().is_none() {
            if turn.memory.applied.is_none_or(|(revision, _)| revision != turn.revision) {
                turn.memory.applied = Some((turn.revision, now));
            }
            self.stuck.lock().remove(&turn.name);
        } else {
            self.stuck.lock().insert(turn.name.clone());
        }
        let frame = Frame {
            generation: work.generation,
            old: &turn.status,
            now,
            max_json_raw: self.options.max_json_raw,
        };
        let young = since.elapsed() < HOLD_BACK;
        if young && failures().map(Failure::remedy).any(|remedy| remedy == Remedy::Soon) {
            next.within(HOLD_BACK);
        } else {
            self.report(turn, of_work(frame, seen), now);
        }
        match (next.failed, next.again) {
            (Some(failed), _) => Err(Fault::new(failed)),
            (None, again) => Ok(Outcome::RequeueAfter(
                again.unwrap_or(self.options.drift_check).min(self.options.drift_check),
            )),
        }
    }
}
