//! StatefulSets: pods with an identity, and the claims that belong to them.
//!
//! What it is not: it neither binds claims nor schedules pods.
//!
//! Invariants:
//! * There is never more than one pod for an ordinal: its name is its identity, and the API server keeps names apart. A
//!   member is made anew only when the old one is gone.
//! * A pod's claims are there before the pod is.
//! * Every revision a pod was made of is kept.

mod apply;
mod history;
mod identity;
mod plan;
mod retention;
mod revisions;

use std::sync::Arc;
use std::time::Duration;

use aro_control::{Outcome, Queue, Reconcile};
use aro_kube::informer::{Cache, Change, ObjectKey, owner_key};
use aro_runtime::{Fault, Scope};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use crate::context::Context;
use crate::pods::{self, controller_of};
use plan::Seen;

/// How long readiness of members of a parallel set is collected before a pass.
const COLLECT: Duration = Duration::from_millis(15);

struct Controller {
    context: Context,
}

pub fn start(context: &Context, scope: &Scope) {
    let queue = Queue::new();
    let caches = &context.caches;
    let sets = caches.stateful_sets.cache().clone();
    context
        .runner(Controller { context: context.clone() }, &queue)
        .with_source(caches.stateful_sets.objects())
        .with_source(caches.pods.mapped(move |change, queue| enqueue_for_pod(change, &sets, queue)))
        .with_source(caches.revisions.mapped(|change, queue| {
            if change.now().is_none()
                && let Some(key) = owner_key::<StatefulSet>(&**change.object())
            {
                queue.add(key);
            }
        }))
        .start(scope);
}

fn enqueue_for_pod(change: &Change<Pod>, sets: &Cache<StatefulSet>, queue: &Queue<ObjectKey>) {
    for key in sets_of(change) {
        let parallel = sets.get(&key).is_some_and(|set| {
            set.spec.as_ref().and_then(|spec| spec.pod_management_policy.as_deref()) == Some("Parallel")
        });
        if parallel && is_minor(change) {
            queue.add_after(key, COLLECT);
        } else {
            queue.add(key);
        }
    }
}

/// The sets a change of a pod matters to.
fn sets_of(change: &Change<Pod>) -> Vec<ObjectKey> {
    let of = |pod: &Arc<Pod>| {
        owner_key::<StatefulSet>(&**pod).or_else(|| {
            // An orphan with a member's name may be taken in.
            let name = pod.metadata.name.as_deref()?;
            let (set, _) = identity::parse(name).filter(|_| controller_of(&**pod).is_none())?;
            Some(ObjectKey::new(pod.namespace().unwrap_or_default(), set))
        })
    };
    let mut keys: Vec<ObjectKey> =
        [change.before(), change.now()].into_iter().flatten().filter_map(of).collect();
    keys.dedup();
    keys
}

/// Whether only readiness may have changed: nothing that leaves a gap.
fn is_minor(change: &Change<Pod>) -> bool {
    let (Some(before), Some(now)) = (change.before(), change.now()) else { return false };
    pods::is_active(before) == pods::is_active(now)
}

impl Reconcile for Controller {
    type Key = ObjectKey;
    type Error = Fault;
    const NAME: &'static str = "stateful-set";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Fault> {
        let caches = &self.context.caches;
        caches.synced().await;
        let Some(set) = caches.stateful_sets.cache().get(key) else { return Ok(Outcome::Settled) };
        self.take_in(&set).await?;
        let history = self.history(&set).await?;
        let (current, update) = (history.current.name_any(), history.update.name_any());
        let pods = self.members(&set);
        let seen = Seen {
            set: &set,
            pods: &pods,
            current: &current,
            update: &update,
            now: self.context.clock.now(),
        };
        let plan = plan::plan(seen);
        let done = self.apply(&set, &history, plan.acts).await;
        // What came of it, even if something failed.
        let pods = self.members(&set);
        let status = plan::status(Seen { pods: &pods, ..seen }, history.collisions);
        self.write_status(&set, status).await?;
        self.forget_old(&set, &history, &pods).await?;
        let waits = done?;
        match (waits, plan.again) {
            (true, _) => Ok(Outcome::Waiting { on: "a claim that goes away", recheck: Some(STALE) }),
            (false, Some(pause)) => Ok(Outcome::RequeueAfter(pause)),
            (false, None) => Ok(Outcome::Settled),
        }
    }
}

/// How often a claim that is about to go is looked at.
const STALE: Duration = Duration::from_secs(1);

impl Controller {
    /// The members that are there.
    fn members(&self, set: &StatefulSet) -> Vec<Arc<Pod>> {
        let uid = set.uid().unwrap_or_default();
        let (cache, name) = (self.context.caches.pods.cache(), set.name_any());
        let pods = cache.controlled_by(&uid).into_iter();
        pods.filter(|pod| {
            identity::ordinal_in(&name, pod.metadata.name.as_deref().unwrap_or_default()).is_some()
        })
        .collect()
    }
}

/// The revisions a pass works with.
struct History {
    current: Arc<ControllerRevision>,
    update: Arc<ControllerRevision>,
    /// All of them, sorted.
    all: Vec<Arc<ControllerRevision>>,
    collisions: i32,
}
