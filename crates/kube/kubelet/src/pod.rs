//! One pod: a pass brings its containers where they should be, and its status in line with them.
//!
//! The order of a pass: a pod on its way out is ended; one whose time is over is killed; what it refers to has to be
//! there; containers that run first end well one after the other; then all others run, end and start again by the
//! pod's policy. The status is written once, at the end, if it changed.

mod ending;
mod live;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{SignedDuration, Timestamp};
use aro_control::{Outcome, Reconcile};
use aro_kube::informer::{ObjectKey, key_of};
use aro_runtime::Fault;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use kube::api::{Patch, PatchParams};
use kube::{Resource as _, ResourceExt as _};
use parking_lot::Mutex;

use crate::container::{ContainerState, Policy, Stage, policy_of};
use crate::environment::{Place, Trouble};
use crate::image::Workload;
use crate::kubelet::Shared;
use crate::simulate::{SIMULATED, Script};
use crate::sources::Reference;
use crate::status::{Facts, init_specs, patch, phase, specs, status};
use crate::volumes::{self, Volumes};

use ending::Stopping;
pub use live::View;

/// A pod that something is going on with.
pub struct Slot {
    pub uid: String,
    state: tokio::sync::Mutex<PodState>,
    /// What is asked about its containers from outside while a pass may be under way.
    pub views: Mutex<HashMap<String, View>>,
}

pub(crate) struct PodState {
    address: String,
    started: Timestamp,
    init: Vec<ContainerState>,
    containers: Vec<ContainerState>,
    volumes: Option<Volumes>,
    prepared: bool,
    tries: u32,
    refresh: Option<Timestamp>,
    killed: Option<(&'static str, &'static str)>,
    /// Its containers were asked to stop.
    stopping: Option<Stopping>,
}

pub(crate) struct Passes {
    pub shared: Arc<Shared>,
}

impl Reconcile for Passes {
    type Key = ObjectKey;
    type Error = Fault;
    const NAME: &'static str = "kubelet";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Fault> {
        let shared = &self.shared;
        let pod = shared.pods.cache().get(key).filter(|pod| shared.is_ours(pod));
        let Some(pod) = pod else {
            self.gone(key).await;
            return Ok(Outcome::Settled);
        };
        let uid = pod.uid().unwrap_or_default();
        let known = shared.slots.lock().get(key).cloned();
        if let Some(other) = known.filter(|slot| slot.uid != uid) {
            // Another pod had this name, and went without telling.
            self.end(&other, Duration::ZERO).await;
            shared.slots.lock().remove(key);
        }
        let terminating = pod.metadata.deletion_timestamp.is_some();
        if is_finished(&pod) && !terminating && !shared.slots.lock().contains_key(key) {
            return Ok(Outcome::Settled);
        }
        let slot = self.slot(key, &pod, &uid);
        let mut state = slot.state.lock().await;
        if terminating {
            return self.terminate(key, &pod, &slot, &mut state).await;
        }
        self.pass(key, &pod, &slot, &mut state).await
    }
}

fn is_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

impl Passes {
    fn slot(&self, key: &ObjectKey, pod: &Pod, uid: &str) -> Arc<Slot> {
        let mut slots = self.shared.slots.lock();
        let made = || {
            let state = tokio::sync::Mutex::new(self.take_up(pod));
            Arc::new(Slot { uid: uid.to_owned(), state, views: Mutex::default() })
        };
        slots.entry(key.clone()).or_insert_with(made).clone()
    }

    /// The state of a pod by its status.
    fn take_up(&self, pod: &Pod) -> PodState {
        let now = self.shared.clock.now();
        let status = pod.status.as_ref();
        let on_host = pod.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or_default();
        let known = status.and_then(|status| status.pod_ip.clone()).filter(|address| !address.is_empty());
        let address = match known {
            Some(address) => {
                self.shared.addresses.lock().known(&address);
                address
            }
            None if on_host => self.host(pod),
            None => self.shared.addresses.lock().take().to_string(),
        };
        let resume = |specs: &[Container], known: Option<&Vec<ContainerStatus>>| -> Vec<ContainerState> {
            let state = |spec: &Container| {
                let known = known.into_iter().flatten().find(|known| known.name == spec.name);
                let simulated = self.shared.images.find(spec.image.as_deref().unwrap_or_default()).is_none();
                let mut state = known.map_or_else(
                    || ContainerState::new(&spec.name),
                    |known| ContainerState::resumed(known, simulated, now),
                );
                if let Stage::Waiting { reason, .. } = &mut state.stage {
                    *reason = waiting_reason(pod);
                }
                state
            };
            specs.iter().map(state).collect()
        };
        PodState {
            address,
            started: status.and_then(|status| status.start_time.as_ref()).map_or(now, |time| time.0),
            init: resume(init_specs(pod), status.and_then(|status| status.init_container_statuses.as_ref())),
            containers: resume(specs(pod), status.and_then(|status| status.container_statuses.as_ref())),
            volumes: None,
            prepared: false,
            tries: 0,
            refresh: None,
            killed: None,
            stopping: None,
        }
    }

    fn host(&self, pod: &Pod) -> String {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        node.and_then(|node| self.shared.nodes.get(node)).cloned().unwrap_or_default()
    }

    fn is_real(&self, pod: &Pod) -> bool {
        // Nothing is prepared on the node for a pod that may run none of its images.
        let real = |spec: &Container| {
            let image = self.shared.images.find(spec.image.as_deref().unwrap_or_default());
            image.is_some_and(|image| image.allow(&self.workload(pod)).is_ok())
        };
        init_specs(pod).iter().chain(specs(pod)).any(real)
    }

    fn workload<'a>(&'a self, pod: &'a Pod) -> Workload<'a> {
        Workload {
            cluster: &self.shared.cluster,
            namespace: pod.metadata.namespace.as_deref().unwrap_or_default(),
            service_account: live::service_account(pod),
        }
    }

    async fn pass(
        &self,
        key: &ObjectKey,
        pod: &Pod,
        slot: &Slot,
        state: &mut PodState,
    ) -> Result<Outcome, Fault> {
        let now = self.shared.clock.now();
        let real = self.is_real(pod);
        let mut next = self.check_deadline(pod, slot, state, now).await;
        if state.killed.is_none() {
            match self.prepare(pod, state, real, now).await {
                Ok(Ready::Yes) => next = earliest(next, self.advance(pod, slot, state, now).await),
                Ok(Ready::NotYet(pause)) => {
                    next = earliest(
                        next,
                        now.saturating_add(SignedDuration::try_from(pause).unwrap_or_default()).ok(),
                    );
                }
                Err(error) => return Err(Fault::caused(format!("read what {key} refers to"), error)),
            }
        }
        let finished = self.write(key, pod, state, now).await?;
        self.settle(key, slot, state, finished, next);
        let Some(at) = next.filter(|_| !finished) else { return Ok(Outcome::Settled) };
        // The wall clock may stand a little behind the timer.
        let pause = Duration::try_from(at.duration_since(self.shared.clock.now())).unwrap_or_default();
        Ok(Outcome::RequeueAfter(pause.max(Duration::from_millis(1))))
    }

    /// A pod that needs no watching is forgotten: its status says all there is to know.
    fn settle(
        &self,
        key: &ObjectKey,
        slot: &Slot,
        state: &PodState,
        finished: bool,
        next: Option<Timestamp>,
    ) {
        let real = state.init.iter().chain(&state.containers).any(|container| container.real.is_some());
        let steady = next.is_none() && slot.views.lock().is_empty();
        if finished {
            self.shared.addresses.lock().give_back(&state.address);
        }
        if !real && (finished || steady) {
            self.shared.slots.lock().remove(key);
        }
    }

    /// Ends a pod that may run for a limited time only.
    async fn check_deadline(
        &self,
        pod: &Pod,
        slot: &Slot,
        state: &mut PodState,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let limit = pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds)?;
        let at = state.started.saturating_add(SignedDuration::from_secs(limit)).ok()?;
        if now < at {
            return Some(at);
        }
        if state.killed.is_none() && !is_finished(pod) {
            self.stop_all(slot, state, Duration::from_secs(5)).await;
            ending::end_containers(state, now, "the pod was active for longer than it may be");
            state.killed =
                Some(("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"));
        }
        None
    }

    async fn prepare(
        &self,
        pod: &Pod,
        state: &mut PodState,
        real: bool,
        now: Timestamp,
    ) -> Result<Ready, kube::Error> {
        let due = state.refresh.is_some_and(|at| at <= now);
        if state.prepared && !due {
            return Ok(Ready::Yes);
        }
        let missing = if real {
            let host = self.host(pod);
            let place = Place { address: &state.address, host: &host };
            let dir = self.shared.dir.join(pod.uid().unwrap_or_default());
            let before = state.volumes.take().unwrap_or_default();
            let shared = &self.shared;
            let prepared =
                volumes::prepare(pod, &dir, &place, &shared.sources, &shared.host_paths, &before, now).await;
            match prepared {
                Ok(volumes) => {
                    let again = now.saturating_add(self.shared.refresh).ok().filter(|_| volumes.changing);
                    state.refresh = earliest(again, volumes.renew);
                    state.volumes = Some(volumes);
                    None
                }
                Err((volume, trouble)) => {
                    // What is there stays as it is.
                    state.volumes = Some(before);
                    match trouble {
                        Trouble::Server(error) => return Err(error),
                        Trouble::Missing(why) => Some((Some(volume), why)),
                    }
                }
            }
        } else if runs(state) {
            // What it needed was there when it started.
            None
        } else {
            let missing = self.shared.sources.missing(pod).await?;
            missing.map(|Reference { kind, name, volume }| {
                (volume, format!("{} \"{name}\" not found", kind.name()))
            })
        };
        let Some((volume, why)) = missing else {
            state.prepared = true;
            return Ok(Ready::Yes);
        };
        if state.prepared {
            // It runs with what it has; what is missing now may come back.
            state.refresh = now.saturating_add(self.shared.refresh).ok();
            return Ok(Ready::Yes);
        }
        let (reason, message) = match &volume {
            Some(volume) => {
                (waiting_reason(pod), format!("MountVolume.SetUp failed for volume \"{volume}\" : {why}"))
            }
            None => ("CreateContainerConfigError", why.clone()),
        };
        if state.tries == 0 {
            let event = if volume.is_some() { "FailedMount" } else { "Failed" };
            self.shared.events.warning(pod, event, message.clone());
        }
        let first = state
            .init
            .iter_mut()
            .chain(&mut state.containers)
            .find(|one| matches!(one.stage, Stage::Waiting { .. }));
        if let Some(first) = first {
            // A volume that is missing is reported by an event only, as upstream.
            let message = if volume.is_some() { String::new() } else { message };
            first.stage = Stage::Waiting { reason, message, from: None };
        }
        let pause = Duration::from_millis(100 << state.tries.min(6));
        state.tries += 1;
        Ok(Ready::NotYet(pause.min(Duration::from_secs(5))))
    }

    /// Advances all containers. Returns when the next step is due.
    async fn advance(
        &self,
        pod: &Pod,
        slot: &Slot,
        state: &mut PodState,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let policy = policy_of(pod);
        let mut next = state.refresh;
        if is_over(state, policy) {
            self.end_beside(slot, state, now).await;
            return None;
        }
        for index in 0..state.init.len() {
            let Some(spec) = init_specs(pod).get(index) else { break };
            let own = policy.of_init(spec);
            next =
                earliest(next, self.advance_one(pod, slot, state, Which::Init(index), spec, own, now).await);
            let container = &state.init[index];
            let passed = if own == Policy::Always {
                container.is_running()
            } else {
                container.is_over(own) == Some(0)
            };
            if !passed {
                return next;
            }
        }
        for index in 0..state.containers.len() {
            let Some(spec) = specs(pod).get(index) else { break };
            next = earliest(
                next,
                self.advance_one(pod, slot, state, Which::Main(index), spec, policy, now).await,
            );
        }
        if is_over(state, policy) {
            self.end_beside(slot, state, now).await;
            return None;
        }
        next
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one pass")]
    async fn advance_one(
        &self,
        pod: &Pod,
        slot: &Slot,
        state: &mut PodState,
        which: Which,
        spec: &Container,
        policy: Policy,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let image = spec.image.as_deref().unwrap_or_default();
        if let Some(found) = self.shared.images.find(image) {
            if let Err(why) = found.allow(&self.workload(pod)) {
                self.refuse(pod, state.container(which), image, &why);
                return None;
            }
            let image = found;
            return self.advance_real(pod, slot, state, which, spec, policy, image, now).await;
        }
        let container = state.container(which);
        container.plan_restart(policy, self.shared.first_pause, &spec.name);
        if container.script.is_none() && !matches!(container.stage, Stage::Ended(_)) {
            let script = match Script::of(pod, &spec.name) {
                Ok(script) => script,
                Err(message) => {
                    container.stage =
                        Stage::Waiting { reason: "CreateContainerConfigError", message, from: None };
                    return None;
                }
            };
            if script.pull_error {
                let message = format!("Back-off pulling image \"{image}\": as the pod's script asks");
                container.stage = Stage::Waiting { reason: "ImagePullBackOff", message, from: None };
                return None;
            }
            let run = script.run(container.restarts, policy == Policy::Always);
            if let Stage::Waiting { from, .. } = &mut container.stage {
                // A restart has waited already.
                let base = from.unwrap_or(now);
                *from =
                    base.saturating_add(SignedDuration::try_from(run.start_delay).unwrap_or_default()).ok();
            }
            container.script = Some(run);
        }
        let began = container.is_running();
        container.step(now);
        if !began && container.is_running() {
            self.shared.events.normal(pod, "Started", format!("Started simulated container {}", spec.name));
        }
        // One that ended may start again at once.
        container.plan_restart(policy, self.shared.first_pause, &spec.name);
        if container.script.is_none() && container.is_due(now) {
            return Some(now);
        }
        container.next()
    }

    /// Keeps a container from running an image that its pod may not run. It waits until the pod is deleted.
    fn refuse(&self, pod: &Pod, container: &mut ContainerState, image: &str, why: &str) {
        if matches!(&container.stage, Stage::Waiting { reason: REFUSED, .. }) {
            return;
        }
        let message = format!("image \"{image}\" is refused: {why}");
        self.shared.events.warning(pod, "Failed", format!("Error: {message}"));
        container.stage = Stage::Waiting { reason: REFUSED, message, from: None };
    }

    /// Writes the status if it changed. Returns whether the pod has ended.
    async fn write(
        &self,
        key: &ObjectKey,
        pod: &Pod,
        state: &PodState,
        now: Timestamp,
    ) -> Result<bool, Fault> {
        let host = self.host(pod);
        let facts = Facts {
            pod,
            init: &state.init,
            containers: &state.containers,
            address: &state.address,
            host: &host,
            started: state.started,
            killed: state.killed,
            now,
        };
        let finished = matches!(phase(&facts), "Succeeded" | "Failed");
        let new = status(&facts);
        let Some(mut body) = patch(pod, &new) else { return Ok(finished) };
        let pretends = init_specs(pod)
            .iter()
            .chain(specs(pod))
            .any(|spec| self.shared.images.find(spec.image.as_deref().unwrap_or_default()).is_none());
        if pretends && !pod.annotations().contains_key(SIMULATED) {
            body["metadata"]["annotations"] = serde_json::json!({SIMULATED: "true"});
        }
        match self.patch_status(key, &body).await {
            Ok(version) => {
                self.shared.written.lock().insert(key.clone(), version.clone());
                let mut written = pod.clone();
                written.status = Some(new);
                written.metadata.resource_version = Some(version);
                if pretends {
                    written.annotations_mut().insert(SIMULATED.to_owned(), "true".to_owned());
                }
                self.shared.pods.cache().wrote(written);
            }
            // Gone, or another one: the watch will say so.
            Err(kube::Error::Api(error)) if matches!(error.code, 404 | 409) => {}
            Err(error) => return Err(Fault::caused(format!("write the status of {key}"), error)),
        }
        Ok(finished)
    }

    /// Patches a status and returns the version that made. Nothing else of the answer is read: we know what we wrote,
    /// and reading whole pods is a good part of what ten thousand of them cost.
    async fn patch_status(&self, key: &ObjectKey, body: &serde_json::Value) -> Result<String, kube::Error> {
        #[derive(serde::Deserialize)]
        struct Answer {
            metadata: Metadata,
        }
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            resource_version: String,
        }
        let pods = kube::core::Request::new(Pod::url_path(&(), Some(&key.namespace)));
        // Conditions are merged by their type: others have some, too.
        let request =
            pods.patch_subresource("status", &key.name, &PatchParams::default(), &Patch::Strategic(body));
        let request = request.map_err(kube::Error::BuildRequest)?;
        let answer: Answer = self.shared.client.request(request).await?;
        Ok(answer.metadata.resource_version)
    }
}

/// The reason of a container whose image its pod may not run.
const REFUSED: &str = "CreateContainerError";

enum Ready {
    Yes,
    NotYet(Duration),
}

/// One of a pod's containers.
#[derive(Debug, Clone, Copy)]
enum Which {
    Init(usize),
    Main(usize),
}

impl PodState {
    fn container(&mut self, which: Which) -> &mut ContainerState {
        match which {
            Which::Init(index) => &mut self.init[index],
            Which::Main(index) => &mut self.containers[index],
        }
    }
}

/// Why containers wait that nothing else is known about.
fn waiting_reason(pod: &Pod) -> &'static str {
    if init_specs(pod).is_empty() { "ContainerCreating" } else { "PodInitializing" }
}

/// Whether all that a pod is there for has ended for good.
fn is_over(state: &PodState, policy: Policy) -> bool {
    !state.containers.is_empty() && state.containers.iter().all(|one| one.is_over(policy).is_some())
}

/// Whether anything of a pod has run already.
fn runs(state: &PodState) -> bool {
    let began = |container: &ContainerState| {
        container.last.is_some() || !matches!(container.stage, Stage::Waiting { .. })
    };
    state.init.iter().chain(&state.containers).any(began)
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

/// Which pod a slot's key means.
pub(crate) fn key(pod: &Pod) -> ObjectKey {
    key_of(pod)
}
