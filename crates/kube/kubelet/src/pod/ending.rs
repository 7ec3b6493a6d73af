//! How pods end: their containers are stopped, have the grace period, and are killed after it.
//!
//! No pass waits for that: other pods go on, and the grace period may be shortened meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aro_base::Timestamp;
use aro_control::Outcome;
use aro_kube::informer::ObjectKey;
use aro_runtime::{Fault, Scope, TaskKind};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, ResourceExt as _};

use super::{Passes, PodState, Slot, is_finished};
use crate::container::{Policy, Stage, policy_of};

/// How long containers go on after their pod was marked for deletion: who is led to them by a Service has to hear of it
/// first. A pod without grace has none of this either.
const FAREWELL: Duration = Duration::from_millis(300);

/// Containers that were asked to stop.
pub(super) struct Stopping {
    /// How long they may take.
    grace: Duration,
    done: Arc<AtomicBool>,
}

impl Passes {
    /// Ends a pod that is marked for deletion, and lets its object go.
    pub(super) async fn terminate(
        &self,
        key: &ObjectKey,
        pod: &Pod,
        slot: &Slot,
        state: &mut PodState,
    ) -> Result<Outcome, Fault> {
        let now = self.shared.clock.now();
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(30);
        let grace = Duration::from_secs(u64::try_from(grace).unwrap_or_default());
        if !self.stopped(key, pod, slot, state, grace) {
            // The task that stops them enqueues the pod.
            return Ok(Outcome::Settled);
        }
        let kept = pod.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty());
        if (kept || policy_of(pod) != Policy::Always) && !is_finished(pod) {
            // A controller counts how pods end.
            end_containers(state, now, "the pod was deleted");
            state.killed = Some(("", ""));
            self.write(key, pod, state, now).await?;
        }
        let uid = pod.uid().unwrap_or_default();
        if !(kept && pod.metadata.deletion_grace_period_seconds == Some(0)) {
            let this = Preconditions { uid: Some(uid.clone()), resource_version: None };
            let parameters = DeleteParams {
                grace_period_seconds: Some(0),
                preconditions: Some(this),
                ..DeleteParams::default()
            };
            let api: Api<Pod> = Api::namespaced(self.shared.client.clone(), &key.namespace);
            match api.delete(&key.name, &parameters).await {
                Ok(_) => {}
                Err(kube::Error::Api(error)) if matches!(error.code, 404 | 409) => {}
                Err(error) => return Err(Fault::caused(format!("let {key} go"), error)),
            }
        }
        self.forget(key, &slot.uid, &state.address).await;
        Ok(Outcome::Settled)
    }

    /// The pod's object is gone without us.
    pub(super) async fn gone(&self, key: &ObjectKey) {
        let Some(slot) = self.shared.slots.lock().get(key).cloned() else { return };
        self.end(&slot, Duration::from_secs(5)).await;
        let address = slot.state.lock().await.address.clone();
        self.forget(key, &slot.uid, &address).await;
    }

    pub(super) async fn end(&self, slot: &Slot, grace: Duration) {
        let mut state = slot.state.lock().await;
        self.stop_all(slot, &mut state, grace).await;
    }

    async fn forget(&self, key: &ObjectKey, uid: &str, address: &str) {
        self.shared.slots.lock().remove(key);
        self.shared.addresses.lock().give_back(address);
        let dir = self.shared.dir.join(uid);
        if tokio::fs::try_exists(&dir).await.unwrap_or_default()
            && let Err(error) = tokio::fs::remove_dir_all(&dir).await
        {
            tracing::warn!(path = %dir.display(), %error, "the files of a pod could not be removed");
        }
    }

    /// Stops everything that really runs.
    pub(super) async fn stop_all(&self, slot: &Slot, state: &mut PodState, grace: Duration) {
        let running =
            state.init.iter_mut().chain(&mut state.containers).filter_map(|container| container.real.take());
        let stopping = running.map(|run| async move {
            stop(&run.scope, grace).await;
            run.log.close();
        });
        join_all(stopping).await;
        slot.views.lock().clear();
    }

    /// Whether nothing of a pod runs any more. Stops its containers, if that has not happened, or if they now
    /// have less time for it.
    fn stopped(
        &self,
        key: &ObjectKey,
        pod: &Pod,
        slot: &Slot,
        state: &mut PodState,
        grace: Duration,
    ) -> bool {
        if state.stopping.as_ref().is_some_and(|stopping| stopping.done.load(Ordering::Acquire)) {
            for run in state.init.iter_mut().chain(&mut state.containers).filter_map(|one| one.real.take()) {
                run.log.close();
            }
            slot.views.lock().clear();
            return true;
        }
        let running = state.init.iter().chain(&state.containers).filter_map(|one| one.real.as_ref());
        let scopes: Vec<Scope> = running.map(|run| run.scope.clone()).collect();
        if scopes.is_empty() {
            return true;
        }
        if state.stopping.as_ref().is_some_and(|stopping| stopping.grace <= grace) {
            return false;
        }
        if state.stopping.is_none() {
            self.shared.events.normal(pod, "Killing", "Stopping containers");
        }
        let done = Arc::new(AtomicBool::new(false));
        state.stopping = Some(Stopping { grace, done: done.clone() });
        let (queue, key, watching) = (self.shared.queue.clone(), key.clone(), self.shared.watching.clone());
        self.shared.watching.spawn(TaskKind::Helper, "stop", async move {
            tokio::select! {
                // The process ends, and everything with it.
                () = watching.cancelled() => return Ok::<_, Fault>(()),
                () = async {
                    tokio::time::sleep(FAREWELL.min(grace / 2)).await;
                    join_all(scopes.iter().map(|scope| stop(scope, grace))).await;
                } => {}
            }
            done.store(true, Ordering::Release);
            queue.add(key);
            Ok(())
        });
        false
    }
}

/// Whatever has not ended was killed.
pub(super) fn end_containers(state: &mut PodState, now: Timestamp, why: &str) {
    for container in state.init.iter_mut().chain(&mut state.containers) {
        if !matches!(container.stage, Stage::Ended(_)) {
            container.end(now, 137, "Error", why.to_owned());
        }
    }
}

/// Stops one container. After its time it is cut off.
async fn stop(scope: &Scope, grace: Duration) {
    if let Err(late) = scope.close(grace).await {
        tracing::warn!(scope = scope.path(), %late, "a container did not stop in time and was cut off");
    }
}
