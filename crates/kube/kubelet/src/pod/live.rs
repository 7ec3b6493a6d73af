//! Containers that really run: started as tasks of this process, watched, ended.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{Timestamp, chain};
use aro_kube_node_api::PodIdentity;
use aro_runtime::telemetry::capture::{self, LogSink};
use aro_runtime::{Fault, Scope, TaskKind};
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt as _;

use super::{Passes, PodState, Slot, Which, key};
use crate::container::{Flags, Policy, RealRun, Stage};
use crate::environment::{self, Place, Trouble};
use crate::host_paths;
use crate::image::{ContainerSpec, Image, Mount, Started};
use crate::kubelet::Shared;
use crate::logs::Log;
use crate::probes::{self, Verdict};

/// What can be asked of a container from outside.
#[derive(Clone, Default)]
pub struct View {
    pub log: Option<Arc<Log>>,
    pub previous: Option<Arc<Log>>,
    pub ports: BTreeMap<u16, SocketAddr>,
}

/// How long a container that has failed may take to tidy up.
const TIDY: Duration = Duration::from_secs(5);
/// How long until something that was missing is looked for again.
const AGAIN: aro_base::SignedDuration = aro_base::SignedDuration::from_secs(1);

impl Passes {
    #[expect(clippy::too_many_arguments, reason = "the parts of one pass")]
    pub(super) async fn advance_real(
        &self,
        pod: &Pod,
        slot: &Slot,
        state: &mut PodState,
        which: Which,
        spec: &Container,
        policy: Policy,
        image: Arc<dyn Image>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let container = state.container(which);
        if let Some(run) = &container.real {
            let Some((code, why)) = run.flags.failure() else {
                container.ready = run.flags.is_ready();
                return None;
            };
            self.end_run(slot, state.container(which), &spec.name, code, why, now).await;
        }
        let container = state.container(which);
        container.plan_restart(policy, self.shared.first_pause, &spec.name);
        if matches!(container.stage, Stage::Ended(_)) {
            return None;
        }
        if !container.is_due(now) {
            if container.restarts > 1 {
                self.shared.events.warning(
                    pod,
                    "BackOff",
                    format!("Back-off restarting failed container {}", spec.name),
                );
            }
            return container.next();
        }
        let given = match self.given(pod, spec, state).await {
            Ok(given) => given,
            Err(message) => {
                let from = now.saturating_add(AGAIN).ok();
                state.container(which).stage =
                    Stage::Waiting { reason: "CreateContainerConfigError", message, from };
                return from;
            }
        };
        let log = Log::new(self.shared.clock.clone());
        let sink: Arc<dyn LogSink> = log.clone();
        let name = format!("{}.{}", pod.name_any(), spec.name);
        let scope = self.shared.containers.role_logging(&name, sink.clone());
        log.line(&format!(" INFO aro_kube_kubelet: starting {}", given.image));
        let container = state.container(which);
        match capture::logging_to(sink, image.start(given, scope.clone())).await {
            Ok(started) => {
                container.stage = Stage::Running { since: now };
                let flags = Arc::new(Flags::default());
                flags.set_ready(started.readiness.is_ready());
                container.ready = flags.is_ready();
                let mut views = slot.views.lock();
                let view = views.entry(spec.name.clone()).or_default();
                *view = View {
                    log: Some(log.clone()),
                    previous: container.previous.clone(),
                    ports: started.ports.clone(),
                };
                drop(views);
                watch(&self.shared, pod, spec, &scope, &started, &flags);
                container.real = Some(RealRun { scope, log, flags });
                self.shared.events.normal(pod, "Started", format!("Started container {}", spec.name));
                None
            }
            Err(fault) => {
                let why = chain(&fault).to_string();
                log.line(&format!("could not start: {why}"));
                container.real = Some(RealRun { scope, log, flags: Arc::default() });
                // It ran, if only for a moment.
                container.stage = Stage::Running { since: now };
                self.end_run(slot, container, &spec.name, 1, why, now).await;
                container.plan_restart(policy, self.shared.first_pause, &spec.name);
                container.next()
            }
        }
    }

    /// Ends the run of a container that has failed, and keeps its log.
    async fn end_run(
        &self,
        slot: &Slot,
        container: &mut crate::container::ContainerState,
        name: &str,
        code: i32,
        why: String,
        now: Timestamp,
    ) {
        if let Some(run) = container.real.take() {
            // A task that does not stop in time is aborted and logged by the scope.
            let _ = run.scope.close(TIDY).await;
            run.log.line(&format!("ended: {why}"));
            run.log.close();
            container.previous = Some(run.log.clone());
            let view = View { log: None, previous: Some(run.log), ports: BTreeMap::new() };
            slot.views.lock().insert(name.to_owned(), view);
        }
        container.end(now, code, "Error", why);
    }

    /// Ends what runs beside the others, once those have ended for good.
    pub(super) async fn end_beside(&self, slot: &Slot, state: &mut PodState, now: Timestamp) {
        for container in &mut state.init {
            if matches!(container.stage, Stage::Ended(_)) {
                continue;
            }
            if let Some(run) = container.real.take() {
                if let Err(late) = run.scope.close(TIDY).await {
                    tracing::warn!(scope = run.scope.path(), %late, "a container did not stop in time and was cut off");
                }
                run.log.close();
                let view = View { log: Some(run.log), ..View::default() };
                slot.views.lock().insert(container.name.clone(), view);
            }
            container.end(now, 0, "Completed", String::new());
        }
    }

    /// What a container is given; an error in words if something is missing.
    async fn given(&self, pod: &Pod, spec: &Container, state: &PodState) -> Result<ContainerSpec, String> {
        let host = self.host(pod);
        let place = Place { address: &state.address, host: &host };
        let env = environment::resolve(pod, spec, &place, &self.shared.sources).await.map_err(|trouble| {
            match trouble {
                Trouble::Missing(why) => why,
                Trouble::Server(error) => chain(&error).to_string(),
            }
        })?;
        let volumes = state.volumes.as_ref();
        let mut mounts = Vec::new();
        for mount in spec.volume_mounts.iter().flatten() {
            let Some(source) = volumes.and_then(|volumes| volumes.paths.get(&mount.name)) else { continue };
            let below = mount.sub_path.as_deref().filter(|path| !path.is_empty());
            let source = match below {
                Some(path) => host_paths::below(source, path).ok_or_else(|| {
                    format!("subPath \"{path}\" leads out of the volume \"{}\"", mount.name)
                })?,
                None => source.clone(),
            };
            mounts.push(Mount {
                path: PathBuf::from(&mount.mount_path),
                source,
                read_only: mount.read_only.unwrap_or_default(),
            });
        }
        let words = spec.command.iter().flatten().chain(spec.args.iter().flatten());
        Ok(ContainerSpec {
            cluster: self.shared.cluster.clone(),
            pod: identity(pod),
            service_account: service_account(pod).to_owned(),
            name: spec.name.clone(),
            image: spec.image.clone().unwrap_or_default(),
            args: words.map(|word| environment::expand(word, &env)).collect(),
            mounts,
            ports: spec
                .ports
                .iter()
                .flatten()
                .filter_map(|port| u16::try_from(port.container_port).ok())
                .collect(),
            env,
        })
    }
}

/// Whom a pod acts as.
pub(super) fn service_account(pod: &Pod) -> &str {
    let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref());
    account.filter(|name| !name.is_empty()).unwrap_or("default")
}

pub(crate) fn identity(pod: &Pod) -> PodIdentity {
    PodIdentity {
        namespace: pod.namespace().unwrap_or_default(),
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
    }
}

/// Watches a container: its failure, its readiness, its probes. Each change asks for a pass.
fn watch(
    shared: &Arc<Shared>,
    pod: &Pod,
    spec: &Container,
    scope: &Scope,
    started: &Started,
    flags: &Arc<Flags>,
) {
    let (queue, key) = (shared.queue.clone(), key(pod));
    let (scope, readiness, own) = (scope.clone(), started.readiness.clone(), flags.clone());
    shared.watching.spawn(TaskKind::Helper, "container", async move {
        let mut ready = readiness.is_ready();
        own.set_ready(ready);
        queue.add(key.clone());
        loop {
            tokio::select! {
                biased;
                failure = scope.failed() => {
                    own.set_ready(false);
                    own.fail(1, chain(&*failure).to_string());
                    queue.add(key);
                    return Ok::<_, Fault>(());
                }
                () = scope.cancelled() => return Ok(()),
                () = readiness.differs_from(ready) => {
                    ready = !ready;
                    own.set_ready(ready);
                    queue.add(key.clone());
                }
            }
        }
    });
    if let Some(plan) = spec.readiness_probe.as_ref().and_then(|probe| probes::plan(probe, spec, started)) {
        flags.set_probe(false);
        probe(shared, pod, plan, flags, false, spec);
    }
    if let Some(plan) = spec.liveness_probe.as_ref().and_then(|probe| probes::plan(probe, spec, started)) {
        probe(shared, pod, plan, flags, true, spec);
    }
}

fn probe(
    shared: &Arc<Shared>,
    pod: &Pod,
    plan: probes::Plan,
    flags: &Arc<Flags>,
    liveness: bool,
    spec: &Container,
) {
    let (queue, key) = (shared.queue.clone(), key(pod));
    let (events, pod, flags) = (shared.events.clone(), pod.clone(), Arc::downgrade(flags));
    let container = spec.name.clone();
    shared.watching.spawn(TaskKind::Helper, "probe", async move {
        let mut verdict = Verdict::default();
        tokio::time::sleep(plan.delay).await;
        loop {
            let answer = probes::ask(&plan).await;
            // The container has ended.
            let Some(flags) = flags.upgrade() else { return Ok::<_, Fault>(()) };
            if let Err(why) = &answer {
                let kind = if liveness { "Liveness" } else { "Readiness" };
                events.warning(&pod, "Unhealthy", format!("{kind} probe failed: {why}"));
            }
            match verdict.take(answer.is_ok(), &plan) {
                Some(false) if liveness => {
                    flags
                        .fail(137, format!("Container {container} failed liveness probe, will be restarted"));
                    queue.add(key);
                    return Ok(());
                }
                Some(well) if !liveness => {
                    flags.set_probe(well);
                    queue.add(key.clone());
                }
                _ => {}
            }
            drop(flags);
            tokio::time::sleep(plan.period).await;
        }
    });
}
