//! Jobs: pods that are run to their end, a number of times.
//!
//! What it is not: CronJobs.
//!
//! The flow of a pass: look, let `plan` decide, do the first thing there is to do, look again; until nothing is left.
//! The order in which a pod that ended is noted, released and counted is what makes the counts exact; see `count`.
//!
//! Invariants: the status is written only on top of the very status the decision was made by; a pod loses its finalizer
//! only after the status that notes it is written.

mod backoff;
mod count;
mod end;
mod indexes;
mod member;
mod plan;
mod policy;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::SignedDuration;
use aro_control::{Outcome, Queue, Reconcile};
use aro_kube::informer::{Change, ObjectKey, key_of, owner_key};
use aro_runtime::{Fault, Scope};
use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::caches::BY_JOB;
use crate::context::{Context, is_missing, refused};
use crate::pods::batch::{all, slow_start};
use crate::pods::{controller_of, is_active};
use backoff::Backoff;
use member::{FINALIZER, Wanted, is_tracked};
use plan::{Plan, Seen, plan};

/// Changes of pods that change no number are looked at together.
const GATHER: Duration = Duration::from_millis(50);
/// Looks in one pass.
const ROUNDS: usize = 8;
/// Events of one kind written at once.
const MAX_EVENTS: usize = 10;

pub fn start(context: &Context, scope: &Scope) {
    let queue = Queue::new();
    let controller = Controller { context: context.clone(), backoff: Mutex::default() };
    context
        .runner(controller, &queue)
        .with_source(context.caches.jobs.objects())
        .with_source(context.caches.pods.mapped(enqueue_for_pod))
        .start(scope);
}

fn enqueue_for_pod(change: &Change<Pod>, queue: &Queue<ObjectKey>) {
    let pod = change.object();
    let Some(key) = owner_key::<Job>(&**pod) else { return };
    let same =
        change.before().zip(change.now()).is_some_and(|(before, now)| is_active(before) == is_active(now));
    queue.add_after(key, if same { GATHER } else { Duration::ZERO });
}

struct Controller {
    context: Context,
    /// Failures in a row of jobs that run, by uid.
    backoff: Mutex<HashMap<String, Backoff>>,
}

impl Reconcile for Controller {
    type Key = ObjectKey;
    type Error = Fault;
    const NAME: &'static str = "job";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Fault> {
        self.context.caches.synced().await;
        self.release_orphans(key).await?;
        for _ in 0..ROUNDS {
            let Some(job) = self.context.caches.jobs.cache().get(key) else { return Ok(Outcome::Settled) };
            let other = job.spec.as_ref().and_then(|spec| spec.managed_by.as_deref());
            if other.is_some_and(|other| other != "kubernetes.io/job-controller") {
                return Ok(Outcome::Settled);
            }
            if let Some(at) = end::finished_at(&job) {
                return self.after_the_end(&job, at).await;
            }
            if let Some(outcome) = self.step(&job).await? {
                return Ok(outcome);
            }
        }
        Ok(Outcome::RequeueAfter(Duration::ZERO))
    }
}

impl Controller {
    /// One look and what follows from it. `None`: look again.
    async fn step(&self, job: &Arc<Job>) -> Result<Option<Outcome>, Fault> {
        let uid = job.uid().unwrap_or_default();
        let pods = self.context.caches.pods.cache().controlled_by(&uid);
        let backoff = self.backoff.lock().get(&uid).copied().unwrap_or_default();
        let seen = Seen { job: job.clone(), pods, backoff, now: self.context.clock.now() };
        let plan = plan(&seen);
        if plan.ends {
            self.write(job, &plan).await?;
            return Ok(None);
        }
        let Plan { make, delete, discard, .. } = &plan;
        if !make.is_empty() || !delete.is_empty() || !discard.is_empty() {
            self.act(job, &plan).await?;
            return Ok(None);
        }
        self.write(job, &plan).await?;
        if plan.strip.is_empty() {
            return Ok(Some(plan.next.map_or(Outcome::Settled, Outcome::RequeueAfter)));
        }
        self.strip(plan.strip).await?;
        Ok(None)
    }

    async fn act(&self, job: &Job, plan: &Plan) -> Result<(), Fault> {
        self.strip(plan.discard.clone()).await?;
        let gone: Vec<Arc<Pod>> = plan.delete.iter().chain(&plan.discard).cloned().collect();
        let gone = all(gone, |pod| async move { self.context.delete_pod(&pod).await.map(|()| pod) }).await;
        for pod in gone.done.iter().take(MAX_EVENTS) {
            self.context.events.normal(job, "SuccessfulDelete", format!("Deleted pod: {}", pod.name_any()));
        }
        if let Some(fault) = gone.failed {
            return Err(fault);
        }
        let make = |wanted: Wanted| async move {
            let pod = member::make(job, &wanted);
            self.context.create_pod(&pod).await
        };
        let made = slow_start(plan.make.clone(), make).await;
        for pod in made.done.iter().take(MAX_EVENTS) {
            self.context.events.normal(job, "SuccessfulCreate", format!("Created pod: {}", pod.name_any()));
        }
        match made.failed {
            None => Ok(()),
            Some(error) if crate::replica_set::is_namespace_ending(&error) => {
                Err(Fault::new("the namespace is on its way out"))
            }
            Some(error) => {
                let said = crate::replica_set::said(&error);
                self.context.events.warning(job, "FailedCreate", format!("Error creating: {said}"));
                Err(refused(format!("create a pod of the job {}", key_of(job)))(error))
            }
        }
    }

    /// Writes the status if it is different.
    async fn write(&self, job: &Job, plan: &Plan) -> Result<(), Fault> {
        let before = job.status.clone().unwrap_or_default();
        if before == plan.status {
            return Ok(());
        }
        let key = key_of(job);
        let metadata = json!({"uid": job.uid(), "resourceVersion": job.resource_version()});
        let patch = json!({"metadata": metadata, "status": all_fields(&plan.status)});
        let api = self.context.api::<Job>(&key.namespace);
        let written = api.patch_status(&key.name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        let written = written.map_err(refused(format!("write the status of the job {key}")))?;
        self.context.caches.jobs.cache().wrote(written);
        // They are noted now, and will not be new again.
        self.backoff.lock().insert(job.uid().unwrap_or_default(), plan.backoff);
        self.record_events(job, &before, &plan.status);
        Ok(())
    }

    fn record_events(&self, job: &Job, before: &JobStatus, now: &JobStatus) {
        let holds = |status: &JobStatus, kind: &str| {
            let found = status.conditions.iter().flatten().find(|known| known.type_ == kind);
            found.filter(|found| found.status == "True").cloned()
        };
        let new = |kind: &str| holds(now, kind).filter(|_| holds(before, kind).is_none());
        let events = &self.context.events;
        if new("Suspended").is_some() {
            events.normal(job, "Suspended", "Job suspended");
        } else if holds(before, "Suspended").is_some() && holds(now, "Suspended").is_none() {
            events.normal(job, "Resumed", "Job resumed");
        }
        if new("Complete").is_some() {
            events.normal(job, "Completed", "Job completed");
        }
        if let Some(failed) = new("Failed") {
            let reason = FAILURES.into_iter().find(|known| failed.reason.as_deref() == Some(known));
            events.warning(job, reason.unwrap_or("Failed"), failed.message.unwrap_or_default());
        }
    }

    /// Lets pods go that were counted, or need not be.
    async fn strip(&self, pods: Vec<Arc<Pod>>) -> Result<(), Fault> {
        let tracked: Vec<Arc<Pod>> = pods.into_iter().filter(|pod| is_tracked(pod)).collect();
        let stripped = all(tracked, |pod| async move { self.strip_one(&pod).await }).await;
        stripped.failed.map_or(Ok(()), Err)
    }

    async fn strip_one(&self, pod: &Pod) -> Result<(), Fault> {
        let key = key_of(pod);
        let uid = pod.uid().unwrap_or_default();
        let patch = json!({"metadata": {"uid": &uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}});
        let api = self.context.api::<Pod>(&key.namespace);
        let cache = self.context.caches.pods.cache();
        match api.patch(&key.name, &PatchParams::default(), &Patch::Strategic(&patch)).await {
            Ok(left) => {
                cache.wrote(left);
            }
            Err(error) if is_missing(&error) => cache.removed(&key, &uid),
            Err(error) => return Err(refused(format!("let the pod {key} go"))(error)),
        }
        Ok(())
    }

    /// Pods whose job is gone, or is another one of the same name, are not counted.
    async fn release_orphans(&self, key: &ObjectKey) -> Result<(), Fault> {
        let job = self.context.caches.jobs.cache().get(key).and_then(|job| job.uid());
        if job.is_none() {
            self.forget();
        }
        let tracked = self.context.caches.pods.cache().by(BY_JOB, &key.to_string());
        let orphans: Vec<Arc<Pod>> = tracked
            .into_iter()
            .filter(|pod| controller_of(&**pod).is_some_and(|owner| Some(&owner.uid) != job.as_ref()))
            .collect();
        if orphans.is_empty() {
            return Ok(());
        }
        // The watch of jobs may be late.
        let live = self.context.api::<Job>(&key.namespace).get_opt(&key.name).await;
        let live = live.map_err(refused(format!("read the job {key}")))?.and_then(|job| job.uid());
        let lost =
            |pod: &Arc<Pod>| controller_of(&**pod).is_some_and(|owner| Some(&owner.uid) != live.as_ref());
        self.strip(orphans.into_iter().filter(lost).collect()).await
    }

    /// Failures of jobs that are gone are forgotten with them.
    fn forget(&self) {
        let jobs = self.context.caches.jobs.cache();
        let mut known = self.backoff.lock();
        if known.len() > FORGET_AT {
            let alive: std::collections::HashSet<String> =
                jobs.all().iter().filter_map(|job| job.uid()).collect();
            known.retain(|uid, _| alive.contains(uid));
        }
    }

    /// Lets the last pods go, and removes the job when its time is over.
    async fn after_the_end(&self, job: &Job, at: aro_base::Timestamp) -> Result<Outcome, Fault> {
        let uid = job.uid().unwrap_or_default();
        self.backoff.lock().remove(&uid);
        self.strip(self.context.caches.pods.cache().controlled_by(&uid)).await?;
        let ttl = job.spec.as_ref().and_then(|spec| spec.ttl_seconds_after_finished);
        let Some(ttl) = ttl.filter(|_| job.metadata.deletion_timestamp.is_none()) else {
            return Ok(Outcome::Settled);
        };
        let end =
            at.saturating_add(SignedDuration::from_secs(ttl.into())).unwrap_or(aro_base::Timestamp::MAX);
        let left = self.context.until(end);
        if !left.is_zero() {
            return Ok(Outcome::RequeueAfter(left));
        }
        let key = key_of(job);
        let this = Preconditions { uid: Some(uid), resource_version: job.resource_version() };
        let parameters = DeleteParams { preconditions: Some(this), ..DeleteParams::foreground() };
        match self.context.api::<Job>(&key.namespace).delete(&key.name, &parameters).await {
            Err(error) if !is_missing(&error) => Err(refused(format!("delete the job {key}"))(error)),
            _ => Ok(Outcome::Settled),
        }
    }
}

/// Why jobs fail, in words for events.
const FAILURES: [&str; 5] = [
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "PodFailurePolicy",
    "MaxFailedIndexesExceeded",
    "FailedIndexes",
];
/// Remembered failures from which on those of jobs that are gone are dropped.
const FORGET_AT: usize = 1024;

/// Every field, so that those that are gone are removed.
fn all_fields(status: &JobStatus) -> Value {
    let noted = status.uncounted_terminated_pods.clone().unwrap_or_default();
    json!({
        "active": status.active,
        "ready": status.ready,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "terminating": status.terminating,
        "startTime": status.start_time,
        "completionTime": status.completion_time,
        "completedIndexes": status.completed_indexes,
        "failedIndexes": status.failed_indexes,
        "uncountedTerminatedPods": {"succeeded": noted.succeeded, "failed": noted.failed},
        "conditions": status.conditions,
    })
}
