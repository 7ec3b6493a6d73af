//! A pod's status, as its containers make it.

use std::fmt::Write as _;

use aro_base::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState as Shown, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::container::{ContainerState, Ended, Policy, Stage, policy_of};

/// What a status is made of.
pub struct Facts<'a> {
    pub pod: &'a Pod,
    pub init: &'a [ContainerState],
    pub containers: &'a [ContainerState],
    pub address: &'a str,
    pub host: &'a str,
    pub started: Timestamp,
    /// Why the pod was ended from outside: phase reason and message.
    pub killed: Option<(&'a str, &'a str)>,
    pub now: Timestamp,
}

/// The phase the containers put the pod in.
pub fn phase(facts: &Facts<'_>) -> &'static str {
    let policy = policy_of(facts.pod);
    if facts.killed.is_some() {
        return "Failed";
    }
    if let Some(failed) = init_failed(facts, policy) {
        return if failed { "Failed" } else { "Pending" };
    }
    let over: Vec<Option<i32>> = facts.containers.iter().map(|container| container.is_over(policy)).collect();
    if !over.is_empty() && over.iter().all(Option::is_some) {
        return if over.iter().all(|code| *code == Some(0)) { "Succeeded" } else { "Failed" };
    }
    let began = |container: &ContainerState| {
        container.is_running() || container.last.is_some() || matches!(container.stage, Stage::Ended(_))
    };
    if facts.containers.iter().any(began) { "Running" } else { "Pending" }
}

/// `None`: all that run first are done. Else whether one has failed for good.
fn init_failed(facts: &Facts<'_>, policy: Policy) -> Option<bool> {
    let specs = init_specs(facts.pod);
    for (container, spec) in facts.init.iter().zip(specs) {
        let policy = policy.of_init(spec);
        if policy == Policy::Always {
            // It counts from when it first ran.
            if matches!(container.stage, Stage::Waiting { .. }) && container.last.is_none() {
                return Some(false);
            }
            continue;
        }
        match container.is_over(policy) {
            Some(0) => {}
            Some(_) => return Some(true),
            None => return Some(false),
        }
    }
    None
}

pub fn init_specs(pod: &Pod) -> &[Container] {
    pod.spec.as_ref().and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default()
}

pub fn specs(pod: &Pod) -> &[Container] {
    pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default()
}

/// The whole status.
pub fn status(facts: &Facts<'_>) -> PodStatus {
    let pod = facts.pod;
    let phase = phase(facts);
    let known = pod.status.clone().unwrap_or_default();
    let initialized = init_failed(facts, policy_of(pod)).is_none();
    let uid = pod.uid().unwrap_or_default();
    let show = |states: &[ContainerState], specs: &[Container]| -> Vec<ContainerStatus> {
        states.iter().zip(specs).map(|(state, spec)| container_status(&uid, state, spec)).collect()
    };
    let init = show(facts.init, init_specs(pod));
    PodStatus {
        phase: Some(phase.to_owned()),
        conditions: Some(conditions(facts, phase, initialized)),
        container_statuses: Some(show(facts.containers, specs(pod))),
        init_container_statuses: (!init.is_empty()).then_some(init),
        host_ip: Some(facts.host.to_owned()),
        host_ips: Some(vec![HostIP { ip: facts.host.to_owned() }]),
        pod_ip: Some(facts.address.to_owned()),
        pod_ips: Some(vec![PodIP { ip: facts.address.to_owned() }]),
        start_time: Some(Time(whole_seconds(facts.started))),
        observed_generation: pod.metadata.generation,
        reason: facts.killed.map(|(reason, _)| reason.to_owned()),
        message: facts.killed.map(|(_, message)| message.to_owned()),
        // Not ours to decide.
        qos_class: known.qos_class,
        nominated_node_name: known.nominated_node_name,
        ..PodStatus::default()
    }
}

fn conditions(facts: &Facts<'_>, phase: &str, initialized: bool) -> Vec<PodCondition> {
    let names = |wanted: &dyn Fn(&ContainerState) -> bool, states: &[ContainerState]| -> String {
        let mut list = String::new();
        for state in states.iter().filter(|state| wanted(state)) {
            let gap = if list.is_empty() { "" } else { " " };
            // Writing to a String cannot fail.
            let _ = write!(list, "{gap}{}", state.name);
        }
        list
    };
    let finished = matches!(phase, "Succeeded" | "Failed");
    let unready = names(&|state| !state.ready, facts.containers);
    let (mut why_not, mut message) = ("", String::new());
    if finished {
        why_not = if phase == "Succeeded" { "PodCompleted" } else { "PodFailed" };
    } else if !unready.is_empty() || !initialized {
        why_not = "ContainersNotReady";
        message = format!("containers with unready status: [{unready}]");
    }
    let containers_ready = why_not.is_empty();
    let gates = facts.pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_deref()).unwrap_or_default();
    let existing =
        facts.pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let open = |kind: &str| !existing.iter().any(|known| known.type_ == kind && known.status == "True");
    let gate = gates.iter().find(|gate| open(&gate.condition_type));
    let ready = containers_ready && gate.is_none();
    let (ready_why, ready_message) = match gate {
        Some(gate) if containers_ready => {
            ("ReadinessGatesNotReady", format!("the condition \"{}\" is not \"True\"", gate.condition_type))
        }
        _ => (why_not, message.clone()),
    };
    let (init_why, init_message) = if initialized {
        ("", String::new())
    } else {
        let incomplete =
            names(&|state| !matches!(&state.stage, Stage::Ended(Ended { code: 0, .. })), facts.init);
        ("ContainersNotInitialized", format!("containers with incomplete status: [{incomplete}]"))
    };
    let completed = if phase == "Succeeded" { "PodCompleted" } else { init_why };
    let ours = [
        ("PodReadyToStartContainers", !finished, "", String::new()),
        ("Initialized", initialized, completed, init_message),
        ("Ready", ready, ready_why, ready_message),
        ("ContainersReady", containers_ready, why_not, message),
        ("PodScheduled", true, "", String::new()),
    ];
    let mut conditions: Vec<PodCondition> = existing
        .iter()
        .filter(|known| !ours.iter().any(|(kind, ..)| *kind == known.type_))
        .cloned()
        .collect();
    conditions.extend(ours.into_iter().map(|(kind, is, reason, message)| {
        let status = if is { "True" } else { "False" };
        let known = existing.iter().find(|known| known.type_ == kind && known.status == status);
        let since = known.and_then(|known| known.last_transition_time.clone());
        PodCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
            message: Some(message).filter(|message| !message.is_empty()),
            last_transition_time: since.or_else(|| Some(Time(whole_seconds(facts.now)))),
            observed_generation: facts.pod.metadata.generation,
            ..PodCondition::default()
        }
    }));
    conditions
}

fn container_status(uid: &str, state: &ContainerState, spec: &Container) -> ContainerStatus {
    let image = spec.image.clone().unwrap_or_default();
    let kind = if state.real.is_some() || state.previous.is_some() { "aro" } else { "simulated" };
    let id = |restarts: u32| format!("{kind}://{}", hash(&format!("{uid}/{}/{restarts}", state.name)));
    let current = match &state.stage {
        Stage::Waiting { reason, message, .. } => Shown {
            waiting: Some(ContainerStateWaiting {
                reason: Some((*reason).to_owned()),
                message: Some(message.clone()).filter(|message| !message.is_empty()),
            }),
            ..Shown::default()
        },
        Stage::Running { since } => Shown {
            running: Some(ContainerStateRunning { started_at: Some(Time(whole_seconds(*since))) }),
            ..Shown::default()
        },
        Stage::Ended(ended) => terminated(ended, id(state.restarts)),
    };
    let began = !matches!(state.stage, Stage::Waiting { .. });
    ContainerStatus {
        name: state.name.clone(),
        image_id: if began || state.last.is_some() { format!("{kind}://{image}") } else { String::new() },
        image,
        container_id: if began { Some(id(state.restarts)) } else { None },
        ready: state.ready,
        started: Some(state.is_running()),
        restart_count: i32::try_from(state.restarts).unwrap_or(i32::MAX),
        state: Some(current),
        last_state: state.last.as_ref().map(|last| terminated(last, id(state.restarts.saturating_sub(1)))),
        ..ContainerStatus::default()
    }
}

fn terminated(ended: &Ended, id: String) -> Shown {
    Shown {
        terminated: Some(ContainerStateTerminated {
            exit_code: ended.code,
            reason: Some(ended.reason.to_owned()),
            message: Some(ended.message.clone()).filter(|message| !message.is_empty()),
            started_at: ended.since.map(|at| Time(whole_seconds(at))),
            finished_at: Some(Time(whole_seconds(ended.at))),
            container_id: Some(id),
            signal: None,
        }),
        ..Shown::default()
    }
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(16).fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Objects carry whole seconds; what is compared must, too.
fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// The body of a merge patch that makes a status so; `None` if it is so already. Fields that others own stay.
pub fn patch(pod: &Pod, new: &PodStatus) -> Option<Value> {
    let old = serde_json::to_value(pod.status.clone().unwrap_or_default()).unwrap_or_default();
    let new = serde_json::to_value(new).unwrap_or_default();
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return None };
    let mut changes: Map<String, Value> = Map::new();
    for (name, value) in &new {
        if old.get(name) != Some(value) {
            changes.insert(name.clone(), value.clone());
        }
    }
    for name in ["reason", "message"] {
        if old.contains_key(name) && !new.contains_key(name) {
            changes.insert(name.to_owned(), Value::Null);
        }
    }
    (!changes.is_empty()).then(|| json!({"metadata": {"uid": pod.metadata.uid}, "status": changes}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(more: Value) -> Pod {
        let mut pod = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u", "generation": 1},
            "spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]}});
        merge(&mut pod, more);
        serde_json::from_value(pod).unwrap()
    }

    fn merge(into: &mut Value, from: Value) {
        match (into, from) {
            (Value::Object(into), Value::Object(from)) => {
                for (key, value) in from {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
            (into, from) => *into = from,
        }
    }

    const NOW: i64 = 1_000_000;

    fn now() -> Timestamp {
        Timestamp::from_second(NOW).unwrap()
    }

    fn container(name: &str, stage: Stage) -> ContainerState {
        let ready = matches!(stage, Stage::Running { .. });
        ContainerState { stage, ready, ..ContainerState::new(name) }
    }

    fn running(name: &str) -> ContainerState {
        container(name, Stage::Running { since: now() })
    }

    fn ended(name: &str, code: i32) -> ContainerState {
        let ended = Ended { since: Some(now()), at: now(), code, reason: "Error", message: String::new() };
        container(name, Stage::Ended(ended))
    }

    fn look(pod: &Pod, init: &[ContainerState], containers: &[ContainerState]) -> (String, bool) {
        let facts = Facts {
            pod,
            init,
            containers,
            address: "10.0.0.1",
            host: "127.0.0.1",
            started: now(),
            killed: None,
            now: now(),
        };
        let status = status(&facts);
        let ready = status.conditions.unwrap().into_iter().find(|one| one.type_ == "Ready").unwrap();
        (status.phase.unwrap(), ready.status == "True")
    }

    #[test]
    fn the_phase_follows_from_containers_and_policy() {
        let (always, never) = (pod(json!({})), pod(json!({"spec": {"restartPolicy": "Never"}})));
        let waiting = || ContainerState::new("b");
        for (pod, containers, expected) in [
            (&always, [running("a"), running("b")], ("Running", true)),
            (&always, [running("a"), waiting()], ("Running", false)),
            (&always, [ContainerState::new("a"), waiting()], ("Pending", false)),
            (&always, [ended("a", 1), running("b")], ("Running", false)),
            (&never, [ended("a", 0), running("b")], ("Running", false)),
            (&never, [ended("a", 0), ended("b", 0)], ("Succeeded", false)),
            (&never, [ended("a", 0), ended("b", 1)], ("Failed", false)),
        ] {
            assert_eq!(look(pod, &[], &containers), (expected.0.to_owned(), expected.1));
        }
    }

    #[test]
    fn what_runs_first_has_to_end_well() {
        let spec = json!({"spec": {"restartPolicy": "Never", "initContainers": [{"name": "i"}]}});
        let pod = pod(spec);
        let rest = || [ContainerState::new("a"), ContainerState::new("b")];
        assert_eq!(look(&pod, &[running("i")], &rest()).0, "Pending");
        assert_eq!(look(&pod, &[ended("i", 1)], &rest()).0, "Failed");
        assert_eq!(look(&pod, &[ended("i", 0)], &[running("a"), running("b")]), ("Running".to_owned(), true));
    }

    #[test]
    fn what_runs_beside_the_others_ends_with_them() {
        let spec = json!({"spec": {"restartPolicy": "Never", "initContainers": [{"name": "i", "restartPolicy": "Always"}]}});
        let pod = pod(spec);
        let rest = || [ContainerState::new("a"), ContainerState::new("b")];
        assert_eq!(look(&pod, &[ContainerState::new("i")], &rest()).0, "Pending");
        assert_eq!(look(&pod, &[running("i")], &[ended("a", 0), running("b")]).0, "Running");
        assert_eq!(look(&pod, &[ended("i", 0)], &[ended("a", 0), ended("b", 0)]).0, "Succeeded");
    }

    #[test]
    fn a_gate_keeps_a_pod_from_being_ready_until_it_opens() {
        let gated = json!({"spec": {"readinessGates": [{"conditionType": "example.com/in"}]}});
        let both = || [running("a"), running("b")];
        assert!(!look(&pod(gated.clone()), &[], &both()).1);
        let mut open = gated;
        merge(&mut open, json!({"status": {"conditions": [{"type": "example.com/in", "status": "True"}]}}));
        assert!(look(&pod(open), &[], &both()).1);
    }

    #[test]
    fn an_unchanged_status_is_not_written_and_others_conditions_stay() {
        let mut pod = pod(json!({"status": {"qosClass": "BestEffort", "conditions": [
            {"type": "DisruptionTarget", "status": "True"},
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"}]}}));
        let containers = [running("a"), running("b")];
        fn facts<'a>(pod: &'a Pod, containers: &'a [ContainerState]) -> Facts<'a> {
            Facts {
                pod,
                init: &[],
                containers,
                address: "10.0.0.1",
                host: "127.0.0.1",
                started: now(),
                killed: None,
                now: now(),
            }
        }
        let first = status(&facts(&pod, &containers));
        assert!(patch(&pod, &first).is_some());
        let conditions = first.conditions.clone().unwrap();
        assert!(conditions.iter().any(|one| one.type_ == "DisruptionTarget"));
        let scheduled = conditions.iter().find(|one| one.type_ == "PodScheduled").unwrap();
        assert_eq!(scheduled.last_transition_time, Some(Time(Timestamp::UNIX_EPOCH)));
        pod.status = Some(first);
        assert_eq!(patch(&pod, &status(&facts(&pod, &containers))), None);
    }
}
