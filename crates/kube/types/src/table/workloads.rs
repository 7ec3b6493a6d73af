//! `apps`, `batch` and `autoscaling`.

use aro_base::Timestamp;
use serde_json::{Value, json};

use super::age::human_duration;
use super::look::Look;

pub fn cells(kind: &str, object: Look<'_>) -> Option<Vec<Value>> {
    Some(match kind {
        "Deployment" => deployment(object),
        "ReplicaSet" => replica_set(object),
        "StatefulSet" => stateful_set(object),
        "DaemonSet" => daemon_set(object),
        "ControllerRevision" => controller_revision(object),
        "Job" => job(object),
        "CronJob" => cron_job(object),
        "HorizontalPodAutoscaler" => autoscaler(object),
        _ => return None,
    })
}

const CONTAINERS: &str = "spec/template/spec/containers";

fn deployment(of: Look<'_>) -> Vec<Value> {
    let ready = format!("{}/{}", of.number("status/readyReplicas"), of.number("spec/replicas"));
    let (names, images) = of.containers(CONTAINERS);
    vec![
        json!(of.name()),
        json!(ready),
        json!(of.number("status/updatedReplicas")),
        json!(of.number("status/availableReplicas")),
        json!(of.age()),
        json!(names),
        json!(images),
        json!(of.selector("spec/selector")),
    ]
}

fn replica_set(of: Look<'_>) -> Vec<Value> {
    let (names, images) = of.containers(CONTAINERS);
    vec![
        json!(of.name()),
        json!(of.number("spec/replicas")),
        json!(of.number("status/replicas")),
        json!(of.number("status/readyReplicas")),
        json!(of.age()),
        json!(names),
        json!(images),
        json!(of.selector_or_none("spec/selector")),
    ]
}

fn stateful_set(of: Look<'_>) -> Vec<Value> {
    let ready = format!("{}/{}", of.number("status/readyReplicas"), of.number("spec/replicas"));
    let (names, images) = of.containers(CONTAINERS);
    vec![json!(of.name()), json!(ready), json!(of.age()), json!(names), json!(images)]
}

fn daemon_set(of: Look<'_>) -> Vec<Value> {
    let (names, images) = of.containers(CONTAINERS);
    vec![
        json!(of.name()),
        json!(of.number("status/desiredNumberScheduled")),
        json!(of.number("status/currentNumberScheduled")),
        json!(of.number("status/numberReady")),
        json!(of.number("status/updatedNumberScheduled")),
        json!(of.number("status/numberAvailable")),
        json!(of.labels("spec/template/spec/nodeSelector")),
        json!(of.age()),
        json!(names),
        json!(images),
        json!(of.selector_or_none("spec/selector")),
    ]
}

fn controller_revision(of: Look<'_>) -> Vec<Value> {
    let owner = of.list("metadata/ownerReferences").find(|owner| owner.flag("controller"));
    let controller = owner.map_or_else(
        || "<none>".to_owned(),
        |owner| {
            let group = owner.text("apiVersion").split_once('/').map_or("", |(group, _)| group);
            let kind = owner.text("kind").to_lowercase();
            let kind = if group.is_empty() { kind } else { format!("{kind}.{group}") };
            format!("{kind}/{}", owner.text("name"))
        },
    );
    vec![json!(of.name()), json!(controller), json!(of.number("revision")), json!(of.age())]
}

fn job(of: Look<'_>) -> Vec<Value> {
    let done = of.number("status/succeeded");
    let completions = match of.get("spec/completions") {
        Some(wanted) => format!("{done}/{wanted}"),
        None if of.number("spec/parallelism") > 1 => format!("{done}/1 of {}", of.number("spec/parallelism")),
        None => format!("{done}/1"),
    };
    let has = |kind: &str| of.condition(kind).is_some_and(|condition| condition.text("status") == "True");
    let status = match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if of.is_deleting() => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    let (names, images) = of.containers(CONTAINERS);
    vec![
        json!(of.name()),
        json!(status),
        json!(completions),
        json!(job_duration(of)),
        json!(of.age()),
        json!(names),
        json!(images),
        json!(of.selector_or_none("spec/selector")),
    ]
}

fn job_duration(of: Look<'_>) -> String {
    let time = |path| of.text(path).parse::<Timestamp>().ok();
    match time("status/startTime") {
        Some(start) => human_duration(time("status/completionTime").unwrap_or(of.now).duration_since(start)),
        None => String::new(),
    }
}

fn cron_job(of: Look<'_>) -> Vec<Value> {
    let suspended = match of.get("spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let last = "status/lastScheduleTime";
    let last = if of.has(last) { of.since(last) } else { "<none>".to_owned() };
    let (names, images) = of.containers("spec/jobTemplate/spec/template/spec/containers");
    vec![
        json!(of.name()),
        json!(of.text("spec/schedule")),
        json!(of.text_or("spec/timeZone", "<none>")),
        json!(suspended),
        json!(of.count("status/active")),
        json!(last),
        json!(of.age()),
        json!(names),
        json!(images),
        json!(of.selector_or_none("spec/jobTemplate/spec/selector")),
    ]
}

fn autoscaler(of: Look<'_>) -> Vec<Value> {
    let reference =
        format!("{}/{}", of.text("spec/scaleTargetRef/kind"), of.text("spec/scaleTargetRef/name"));
    vec![
        json!(of.name()),
        json!(reference),
        json!(targets(of)),
        json!(of.shown("spec/minReplicas", "<unset>")),
        json!(of.number("spec/maxReplicas")),
        json!(of.number("status/currentReplicas")),
        json!(of.age()),
    ]
}

fn targets(of: Look<'_>) -> String {
    const MOST: usize = 2;
    // The older version knows one metric only.
    if let Some(target) = of.get("spec/targetCPUUtilizationPercentage") {
        let current = of.shown("status/currentCPUUtilizationPercentage", "");
        let current = if current.is_empty() { "<unknown>".to_owned() } else { format!("{current}%") };
        return format!("cpu: {current}/{target}%");
    }
    let statuses: Vec<Look<'_>> = of.list("status/currentMetrics").collect();
    let all: Vec<String> = of
        .list("spec/metrics")
        .enumerate()
        .map(|(index, spec)| metric(spec, statuses.get(index).copied()))
        .collect();
    let shown = all.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len() {
        0 => "<none>".to_owned(),
        count if count > MOST => format!("{shown} + {} more...", count - MOST),
        _ => shown,
    }
}

fn metric(spec: Look<'_>, status: Option<Look<'_>>) -> String {
    const UNKNOWN: &str = "<unknown>";
    let source = match spec.text("type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let current = |key: &str| {
        status.map_or_else(
            || UNKNOWN.to_owned(),
            |status| status.shown(&format!("{source}/current/{key}"), UNKNOWN),
        )
    };
    let target = |key: &str| spec.get(&format!("{source}/target/{key}")).and_then(Value::as_str);
    let name = spec.text(&format!("{source}/name"));
    match (source, target("averageValue")) {
        ("external" | "object", Some(average)) => format!("{}/{average} (avg)", current("averageValue")),
        ("external" | "object", None) => {
            format!("{}/{}", current("value"), target("value").unwrap_or("<nil>"))
        }
        ("pods", average) => format!("{}/{}", current("averageValue"), average.unwrap_or("<nil>")),
        (_, Some(average)) => format!("{name}: {}/{average}", current("averageValue")),
        (_, None) => {
            let percent = |text: String| if text == UNKNOWN { text } else { format!("{text}%") };
            let target = spec.shown(&format!("{source}/target/averageUtilization"), "");
            let target = if target.is_empty() { "<auto>".to_owned() } else { format!("{target}%") };
            format!("{name}: {}/{target}", percent(current("averageUtilization")))
        }
    }
}
