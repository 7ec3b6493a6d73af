//! The row of a Pod: what its containers are up to.

use serde_json::{Value, json};

use super::age::since;
use super::look::Look;

pub fn pod(pod: Look<'_>) -> Vec<Value> {
    let summary = summarize(pod);
    let ip = pod.list("status/podIPs").next().map_or("", |ip| ip.text("ip"));
    let restarts = if summary.restarts != 0 && !summary.last_restart.is_empty() {
        format!("{} ({} ago)", summary.restarts, since(summary.last_restart, pod.now))
    } else {
        summary.restarts.to_string()
    };
    vec![
        json!(pod.name()),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.reason),
        json!(restarts),
        json!(pod.age()),
        json!(if ip.is_empty() { "<none>" } else { ip }),
        json!(pod.text_or("spec/nodeName", "<none>")),
        json!(pod.text_or("status/nominatedNodeName", "<none>")),
        json!(readiness_gates(pod)),
    ]
}

#[derive(Default)]
struct Summary<'a> {
    ready: usize,
    total: usize,
    reason: String,
    restarts: i64,
    /// Times in the same form compare as texts.
    last_restart: &'a str,
}

impl<'a> Summary<'a> {
    fn count_restarts(&mut self, container: Look<'a>) {
        self.restarts += container.number("restartCount");
        let ended = container.text("lastState/terminated/finishedAt");
        if ended > self.last_restart {
            self.last_restart = ended;
        }
    }
}

fn summarize(pod: Look<'_>) -> Summary<'_> {
    let mut all = Summary { reason: pod.text("status/phase").to_owned(), ..Summary::default() };
    let reason = pod.text("status/reason");
    if !reason.is_empty() {
        all.reason = reason.into();
    }
    if pod.condition("PodScheduled").is_some_and(|of| of.text("reason") == "SchedulingGated") {
        all.reason = "SchedulingGated".into();
    }
    let restartable = |name: &str| {
        let mut inits = pod.list("spec/initContainers");
        inits.any(|of| of.text("name") == name && of.text("restartPolicy") == "Always")
    };
    let sidecars = pod.list("spec/initContainers").filter(|of| of.text("restartPolicy") == "Always").count();
    all.total = pod.count("spec/containers") + sidecars;

    let mut of_sidecars = Summary::default();
    let initializing = init_containers(pod, &mut all, &mut of_sidecars, restartable);
    let initialized = pod.condition("Initialized").is_some_and(|of| of.text("status") == "True");
    if !initializing || initialized {
        all.restarts = of_sidecars.restarts;
        all.last_restart = of_sidecars.last_restart;
        containers(pod, &mut all);
    }
    if pod.is_deleting() {
        if pod.text("status/reason") == "NodeLost" {
            all.reason = "Unknown".into();
        } else if !matches!(pod.text("status/phase"), "Succeeded" | "Failed") {
            all.reason = "Terminating".into();
        }
    }
    all
}

/// Whether one of them is still at work (then the reason says which).
fn init_containers<'a>(
    pod: Look<'a>,
    all: &mut Summary<'a>,
    of_sidecars: &mut Summary<'a>,
    restartable: impl Fn(&str) -> bool,
) -> bool {
    for (index, container) in pod.list("status/initContainerStatuses").enumerate() {
        all.count_restarts(container);
        let sidecar = restartable(container.text("name"));
        if sidecar {
            of_sidecars.count_restarts(container);
        }
        let terminated = container.has("state/terminated");
        if terminated && container.number("state/terminated/exitCode") == 0 {
            continue;
        }
        if sidecar && container.flag("started") {
            all.ready += usize::from(container.flag("ready"));
            continue;
        }
        let waiting = container.text("state/waiting/reason");
        all.reason = if terminated {
            format!("Init:{}", termination(container))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", pod.count("spec/initContainers"))
        };
        return true;
    }
    false
}

fn termination(container: Look<'_>) -> String {
    let reason = container.text("state/terminated/reason");
    let signal = container.number("state/terminated/signal");
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", container.number("state/terminated/exitCode"))
    }
}

fn containers<'a>(pod: Look<'a>, all: &mut Summary<'a>) {
    let (mut running, mut failure) = (false, String::new());
    for container in pod.list("status/containerStatuses").rev() {
        all.count_restarts(container);
        let waiting = container.text("state/waiting/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut all.reason);
        } else if container.has("state/terminated") {
            all.reason = termination(container);
            if container.number("state/terminated/exitCode") != 0 {
                failure.clone_from(&all.reason);
            }
        } else if container.flag("ready") && container.has("state/running") {
            running = true;
            all.ready += 1;
        }
    }
    if all.reason == "Completed" {
        let ready = pod.condition("Ready").is_some_and(|of| of.text("status") == "True");
        if running && ready {
            all.reason = "Running".into();
        } else if !failure.is_empty() {
            all.reason = failure;
        } else if running {
            all.reason = "NotReady".into();
        }
    }
}

fn readiness_gates(pod: Look<'_>) -> String {
    let gates = pod.list("spec/readinessGates");
    let count = gates.len();
    let passed = gates
        .filter(|gate| {
            pod.condition(gate.text("conditionType")).is_some_and(|of| of.text("status") == "True")
        })
        .count();
    if count == 0 { "<none>".to_owned() } else { format!("{passed}/{count}") }
}
