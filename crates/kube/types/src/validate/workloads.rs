//! Workloads: replicas of Pods, Jobs and what scales them.

mod schedule;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::path::{Found, Path, flag, list, member, number, text};
use super::pods::template_spec;
use super::{format, selectors};

const SPEC: Path<'static> = Path::new("spec");
const MISMATCH: &str = "`selector` does not match template `labels`";

pub fn deployment(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    found.not_negative(&SPEC.child("replicas"), spec.get("replicas"));
    let sound = selector(found, spec, "empty selector is invalid for deployment", true);
    template(found, spec, sound, "ReplicaSet");
    strategy(found, spec);
    for key in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        found.not_negative(&SPEC.child(key), spec.get(key));
    }
    let (deadline, ready) =
        (number(spec, "progressDeadlineSeconds"), number(spec, "minReadySeconds").unwrap_or_default());
    if let Some(deadline) = deadline.filter(|deadline| *deadline <= ready) {
        found.invalid(
            &SPEC.child("progressDeadlineSeconds"),
            deadline,
            "must be greater than minReadySeconds",
        );
    }
}

fn strategy(found: &mut Found, spec: &Value) {
    let at = SPEC.child("strategy");
    let strategy = &spec["strategy"];
    match text(strategy, "type") {
        "Recreate" => {
            if member(strategy, "rollingUpdate").is_some() {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                found.forbidden(&at.child("rollingUpdate"), why);
            }
        }
        "RollingUpdate" => rolling_update(found, &strategy["rollingUpdate"], &at.child("rollingUpdate")),
        _ => found.not_supported(&at, strategy.clone(), &["Recreate", "RollingUpdate"]),
    }
}

fn rolling_update(found: &mut Found, update: &Value, at: &Path<'_>) {
    for key in ["maxUnavailable", "maxSurge"] {
        count_or_percent(found, update.get(key), &at.child(key));
    }
    let is_zero = |key: &str| match update.get(key) {
        Some(Value::String(text)) => text.trim_end_matches('%').parse() == Ok(0),
        value => value.and_then(Value::as_i64) == Some(0),
    };
    if is_zero("maxUnavailable") && is_zero("maxSurge") {
        found.invalid(
            &at.child("maxUnavailable"),
            update["maxUnavailable"].clone(),
            "may not be 0 when `maxSurge` is 0",
        );
    }
    at_most_100_percent(found, update.get("maxUnavailable"), &at.child("maxUnavailable"));
}

pub fn count_or_percent(found: &mut Found, value: Option<&Value>, at: &Path<'_>) {
    match value {
        Some(Value::String(text)) => found.texts(at, text, format::percent(text)),
        value => found.not_negative(at, value),
    }
}

pub fn at_most_100_percent(found: &mut Found, value: Option<&Value>, at: &Path<'_>) {
    let Some(text) = value.and_then(Value::as_str) else { return };
    if text
        .strip_suffix('%')
        .and_then(|number| number.parse::<u64>().ok())
        .is_some_and(|percent| percent > 100)
    {
        found.invalid(at, text, "must not be greater than 100%");
    }
}

/// Whether the selector can be matched against labels.
fn selector(found: &mut Found, spec: &Value, empty: &str, required: bool) -> Option<bool> {
    let at = SPEC.child("selector");
    let Some(selector) = member(spec, "selector") else {
        if required {
            found.required(&at, "");
        }
        return Some(true);
    };
    let sound = selectors::check(found, selector, &at);
    if selectors::is_empty(selector) {
        if !empty.is_empty() {
            found.invalid(&at, selector.clone(), empty);
        }
        return None;
    }
    if !sound {
        found.invalid(&at, selector.clone(), "invalid label selector");
    }
    sound.then_some(true)
}

/// The template of something that keeps Pods running. `None`: the selector is beyond matching.
fn template(found: &mut Found, spec: &Value, matchable: Option<bool>, owner: &str) {
    let at = SPEC.child("template");
    let template = &spec["template"];
    if matchable.is_some() {
        let labels = member(template, "metadata").and_then(|metadata| member(metadata, "labels"));
        let matched = member(spec, "selector").is_some_and(|selector| selectors::matches(selector, labels));
        if !matched {
            let metadata = at.child("metadata");
            found.invalid(&metadata.child("labels"), labels.cloned().unwrap_or_default(), MISMATCH);
        }
    }
    template_spec(found, template, &at);
    let below = at.child("spec");
    let policy = text(&template["spec"], "restartPolicy");
    if policy != "Always" && !policy.is_empty() {
        found.not_supported(&below.child("restartPolicy"), policy, &["Always"]);
    }
    if member(&template["spec"], "activeDeadlineSeconds").is_some() {
        let why = format!("activeDeadlineSeconds in {owner} is not Supported");
        found.forbidden(&below.child("activeDeadlineSeconds"), &why);
    }
}

pub fn replica_set(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    found.not_negative(&SPEC.child("replicas"), spec.get("replicas"));
    found.not_negative(&SPEC.child("minReadySeconds"), spec.get("minReadySeconds"));
    let sound = selector(found, spec, "empty selector is invalid for deployment", true);
    template(found, spec, sound, "ReplicaSet");
}

pub fn daemon_set(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    let sound = selector(found, spec, "empty selector is invalid for daemonset", false);
    template(found, spec, sound, "DaemonSet");
    found.not_negative(&SPEC.child("minReadySeconds"), spec.get("minReadySeconds"));
    let at = SPEC.child("updateStrategy");
    let strategy = &spec["updateStrategy"];
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let at = at.child("rollingUpdate");
            for key in ["maxUnavailable", "maxSurge"] {
                count_or_percent(found, strategy["rollingUpdate"].get(key), &at.child(key));
            }
        }
        _ => found.not_supported(&at, strategy.clone(), &["RollingUpdate", "OnDelete"]),
    }
    found.not_negative(&SPEC.child("revisionHistoryLimit"), spec.get("revisionHistoryLimit"));
}

pub fn stateful_set(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        found.invalid(&SPEC.child("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'");
    }
    let strategy = &spec["updateStrategy"];
    if !matches!(text(strategy, "type"), "RollingUpdate" | "OnDelete") {
        found.invalid(
            &SPEC.child("updateStrategy"),
            strategy.clone(),
            "must be 'RollingUpdate' or 'OnDelete'",
        );
    }
    found.not_negative(&SPEC.child("replicas"), spec.get("replicas"));
    found.not_negative(&SPEC.child("minReadySeconds"), spec.get("minReadySeconds"));
    let sound = selector(found, spec, "empty selector is invalid for statefulset", true);
    template(found, &with_claims(spec), sound, "StatefulSet");
}

/// The spec as its pods will have it: each claim is a volume, in place of one of that name.
fn with_claims(spec: &Value) -> Cow<'_, Value> {
    let claims: BTreeSet<&str> =
        list(spec, "volumeClaimTemplates").iter().map(|claim| text(&claim["metadata"], "name")).collect();
    if claims.is_empty() || !spec["template"]["spec"].is_object() {
        return Cow::Borrowed(spec);
    }
    let own = list(&spec["template"]["spec"], "volumes").iter();
    let own = own.filter(|volume| !claims.contains(&text(volume, "name"))).cloned();
    let claimed =
        claims.iter().map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
    let mut whole = spec.clone();
    whole["template"]["spec"]["volumes"] = claimed.chain(own).collect();
    Cow::Owned(whole)
}

const STATEFUL_FREE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

pub fn stateful_set_update(found: &mut Found, new: &Value, old: &Value) {
    let fixed = |object: &Value| {
        let members = object["spec"].as_object().into_iter().flatten();
        let fixed = members.filter(|(key, value)| !STATEFUL_FREE.contains(&key.as_str()) && !value.is_null());
        fixed.map(|(key, value)| (key.clone(), value.clone())).collect::<Vec<_>>()
    };
    if fixed(new) != fixed(old) {
        found.forbidden(&SPEC, "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
    }
}

pub fn controller_revision(found: &mut Found, object: &Value) {
    if member(object, "data").is_none() {
        found.required(&Path::new("data"), "data is mandatory");
    }
    found.not_negative(&Path::new("revision"), object.get("revision"));
}

pub fn replication_controller(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    found.not_negative(&SPEC.child("minReadySeconds"), spec.get("minReadySeconds"));
    let selector =
        member(spec, "selector").filter(|selector| selector.as_object().is_some_and(|all| !all.is_empty()));
    if selector.is_none() {
        found.required(&SPEC.child("selector"), "");
    }
    found.not_negative(&SPEC.child("replicas"), spec.get("replicas"));
    let Some(own) = member(spec, "template") else {
        found.required(&SPEC.child("template"), "");
        return;
    };
    let labels = own.get("metadata").and_then(|metadata| metadata.get("labels"));
    let matches = |selector: &Value| {
        let mut wanted = selector.as_object().into_iter().flatten();
        wanted.all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
    };
    if selector.is_some_and(|selector| !matches(selector)) {
        let at = SPEC.child("template");
        let metadata = at.child("metadata");
        found.invalid(&metadata.child("labels"), labels.cloned().unwrap_or_default(), MISMATCH);
    }
    template(found, spec, None, "ReplicationController");
}

pub fn job(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    generated_selector(found, object);
    job_numbers(found, spec, &SPEC);
    match member(spec, "selector") {
        None => found.required(&SPEC.child("selector"), ""),
        Some(selector) => {
            selectors::check(found, selector, &SPEC.child("selector"));
        }
    }
    let labels = member(&spec["template"]["metadata"], "labels");
    let matched = member(spec, "selector").is_some_and(|selector| selectors::matches(selector, labels));
    job_template(found, spec, &SPEC);
    if !matched {
        let at = SPEC.child("template");
        let metadata = at.child("metadata");
        found.invalid(&metadata.child("labels"), labels.cloned().unwrap_or_default(), MISMATCH);
    }
}

fn generated_selector(found: &mut Found, job: &Value) {
    let spec = &job["spec"];
    let Some(selector) = member(spec, "selector").filter(|_| !flag(spec, "manualSelector")) else { return };
    let (name, uid) = (&job["metadata"]["name"], &job["metadata"]["uid"]);
    let expected = serde_json::json!({"job-name": name, "batch.kubernetes.io/job-name": name,
        "controller-uid": uid, "batch.kubernetes.io/controller-uid": uid});
    if !selectors::matches(selector, Some(&expected)) {
        found.invalid(&SPEC.child("selector"), selector.clone(), "`selector` not auto-generated");
    }
}

fn job_numbers(found: &mut Found, spec: &Value, at: &Path<'_>) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        found.not_negative(&at.child(key), spec.get(key));
    }
    let mode = text(spec, "completionMode");
    if !mode.is_empty() {
        found.one_of(&at.child("completionMode"), mode, &["NonIndexed", "Indexed"]);
    }
    if mode == "Indexed" && member(spec, "completions").is_none() {
        found.required(&at.child("completions"), "when completion mode is Indexed");
    }
    if mode != "Indexed" {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(value) = member(spec, key) {
                found.invalid(&at.child(key), value.clone(), "requires indexed completion mode");
            }
        }
    }
    if let Some(policy) = member(spec, "podReplacementPolicy").and_then(Value::as_str) {
        found.one_of(&at.child("podReplacementPolicy"), policy, &["Failed", "TerminatingOrFailed"]);
    }
}

fn job_template(found: &mut Found, spec: &Value, at: &Path<'_>) {
    let below = at.child("template");
    template_spec(found, &spec["template"], &below);
    let below = below.child("spec");
    let at = below.child("restartPolicy");
    match text(&spec["template"]["spec"], "restartPolicy") {
        "Always" | "" => found.required(&at, "valid values: \"OnFailure\", \"Never\""),
        policy => found.one_of(&at, policy, &["OnFailure", "Never"]),
    }
}

pub fn job_update(found: &mut Found, new: &Value, old: &Value) {
    let (spec, before) = (&new["spec"], &old["spec"]);
    let immutable = |found: &mut Found, key: &str| {
        found.immutable(&SPEC.child(key), member(spec, key), member(before, key));
    };
    // An indexed job is resized by both numbers at once.
    let elastic = text(before, "completionMode") == "Indexed"
        && number(spec, "completions") == number(spec, "parallelism")
        && number(before, "completions") == number(before, "parallelism");
    if !elastic {
        immutable(found, "completions");
    }
    immutable(found, "selector");
    // A job that waits may still be told where to run.
    if !flag(before, "suspend") {
        immutable(found, "template");
    }
    for key in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        immutable(found, key);
    }
}

pub fn cron_job(found: &mut Found, object: &Value) {
    let name = text(&object["metadata"], "name");
    if name.len() > 52 {
        let metadata = Path::new("metadata");
        found.invalid(&metadata.child("name"), name, "must be no more than 52 characters");
    }
    let spec = &object["spec"];
    let at = SPEC.child("schedule");
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        found.required(&at, "");
    } else if schedule.contains("TZ") {
        found.invalid(&at, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    } else if let Err(why) = schedule::check(schedule) {
        found.invalid(&at, schedule, why);
    }
    found.not_negative(&SPEC.child("startingDeadlineSeconds"), spec.get("startingDeadlineSeconds"));
    if let Some(zone) = member(spec, "timeZone").and_then(Value::as_str) {
        time_zone(found, zone);
    }
    let policy = text(spec, "concurrencyPolicy");
    found.one_of(&SPEC.child("concurrencyPolicy"), policy, &["Allow", "Forbid", "Replace"]);
    let below = SPEC.child("jobTemplate");
    let at = below.child("spec");
    let job = &spec["jobTemplate"]["spec"];
    job_numbers(found, job, &at);
    job_template(found, job, &at);
    if flag(job, "manualSelector") {
        let why = "must be nil or false";
        found.not_supported(&at.child("manualSelector"), true, &[why]);
    }
    if let Some(selector) = member(job, "selector") {
        found.invalid(&at.child("selector"), selector.clone(), "`selector` will be auto-generated");
    }
    for key in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        found.not_negative(&SPEC.child(key), spec.get(key));
    }
}

fn time_zone(found: &mut Found, zone: &str) {
    let at = SPEC.child("timeZone");
    // Whether the zone exists is for those who have the table; the form is what can be said here.
    let sound = zone.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte));
    let named = zone == "UTC" || zone.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase());
    if zone.is_empty() {
        found.invalid(&at, zone, "timeZone must be nil or non-empty string");
    } else if zone.eq_ignore_ascii_case("local") {
        found.invalid(
            &at,
            zone,
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        );
    } else if !sound || !named {
        found.invalid(&at, zone, format!("unknown time zone {zone}"));
    }
}

pub fn autoscaler(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    let least = number(spec, "minReplicas");
    if let Some(least) = least.filter(|least| *least < 1) {
        found.invalid(&SPEC.child("minReplicas"), least, "must be greater than or equal to 1");
    }
    let most = number(spec, "maxReplicas").unwrap_or_default();
    if most < 1 {
        found.required(&SPEC.child("maxReplicas"), "must be set and greater than 0");
    }
    if least.is_some_and(|least| most < least) {
        found.invalid(&SPEC.child("maxReplicas"), most, "must be greater than or equal to `minReplicas`");
    }
    let at = SPEC.child("scaleTargetRef");
    let target = &spec["scaleTargetRef"];
    for key in ["kind", "name"] {
        match text(target, key) {
            "" => found.required(&at.child(key), ""),
            name => found.texts(&at.child(key), name, format::path_segment(name)),
        }
    }
    let version = text(target, "apiVersion");
    if version.is_empty() {
        found.invalid(&at.child("apiVersion"), version, "apiVersion must specify API group");
    }
    metrics(found, list(spec, "metrics"), least == Some(0));
}

fn metrics(found: &mut Found, metrics: &[Value], to_zero: bool) {
    const KINDS: [(&str, &str); 5] = [
        ("ContainerResource", "containerResource"),
        ("External", "external"),
        ("Object", "object"),
        ("Pods", "pods"),
        ("Resource", "resource"),
    ];
    let at = SPEC.child("metrics");
    for (index, metric) in metrics.iter().enumerate() {
        let at = at.index(index);
        let kind = text(metric, "type");
        match KINDS.iter().find(|(name, _)| *name == kind) {
            _ if kind.is_empty() => found.required(&at.child("type"), "must specify a metric source type"),
            None => found.not_supported(&at.child("type"), kind, &KINDS.map(|(name, _)| name)),
            Some((_, source)) if member(metric, source).is_none() => {
                found.required(&at.child(source), "must populate information for the given metric source");
            }
            Some(_) => {}
        }
    }
    if to_zero && !metrics.iter().any(|metric| matches!(text(metric, "type"), "Object" | "External")) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        found.forbidden(&at, why);
    }
}
