//! Workloads: `apps` and `batch`.

use aro_kube_apimachinery::meta::Object;
use serde_json::{Value, json};

use crate::defaults::{
    below, child, children, default_if_absent, default_if_empty, is_absent, is_empty, text,
};

pub fn deployment(spec: &mut Object) {
    default_if_absent(spec, "replicas", 1);
    rolling_update(spec, "strategy", json!("25%"), json!("25%"));
    default_if_absent(spec, "revisionHistoryLimit", 10);
    default_if_absent(spec, "progressDeadlineSeconds", 600);
}

pub fn daemon_set(spec: &mut Object) {
    rolling_update(spec, "updateStrategy", json!(1), json!(0));
    default_if_absent(spec, "revisionHistoryLimit", 10);
}

fn rolling_update(spec: &mut Object, key: &str, unavailable: Value, surge: Value) {
    let Some(strategy) = below(spec, key) else { return };
    default_if_empty(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate"
        && let Some(update) = below(strategy, "rollingUpdate")
    {
        default_if_absent(update, "maxUnavailable", unavailable);
        default_if_absent(update, "maxSurge", surge);
    }
}

pub fn stateful_set(spec: &mut Object) {
    default_if_empty(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = below(spec, "updateStrategy") {
        if is_empty(strategy, "type") {
            strategy.insert("type".to_owned(), "RollingUpdate".into());
            default_if_absent(strategy, "rollingUpdate", Object::new());
        }
        if text(strategy, "type") == "RollingUpdate"
            && let Some(update) = child(strategy, "rollingUpdate")
        {
            default_if_absent(update, "partition", 0);
        }
    }
    if let Some(policy) = below(spec, "persistentVolumeClaimRetentionPolicy") {
        default_if_empty(policy, "whenDeleted", "Retain");
        default_if_empty(policy, "whenScaled", "Retain");
    }
    default_if_absent(spec, "replicas", 1);
    default_if_absent(spec, "revisionHistoryLimit", 10);
    for template in children(spec, "volumeClaimTemplates") {
        default_if_empty(template, "apiVersion", "v1");
        default_if_empty(template, "kind", "PersistentVolumeClaim");
    }
}

pub fn replica_set(spec: &mut Object) {
    default_if_absent(spec, "replicas", 1);
}

pub fn job(job: &mut Object) {
    let labels = job.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels")).cloned();
    if let Some(labels) = labels.filter(Value::is_object)
        && let Some(metadata) = below(job, "metadata")
    {
        default_if_empty(metadata, "labels", labels);
    }
    if let Some(spec) = child(job, "spec") {
        job_defaults(spec);
    }
}

/// The template of a CronJob keeps what was written; only a Job itself gets the rest.
fn job_defaults(spec: &mut Object) {
    if is_absent(spec, "completions") && is_absent(spec, "parallelism") {
        spec.insert("completions".to_owned(), 1.into());
    }
    default_if_absent(spec, "parallelism", 1);
    let limit = if is_absent(spec, "backoffLimitPerIndex") { 6 } else { i32::MAX };
    default_if_absent(spec, "backoffLimit", limit);
    default_if_absent(spec, "completionMode", "NonIndexed");
    default_if_absent(spec, "suspend", false);
    let replacement = if is_absent(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
    default_if_absent(spec, "podReplacementPolicy", replacement);
    default_if_absent(spec, "manualSelector", false);
}

pub fn cron_job(spec: &mut Object) {
    default_if_empty(spec, "concurrencyPolicy", "Allow");
    default_if_absent(spec, "suspend", false);
    default_if_absent(spec, "successfulJobsHistoryLimit", 3);
    default_if_absent(spec, "failedJobsHistoryLimit", 1);
}

pub fn pod_condition_pattern(pattern: &mut Object) {
    default_if_empty(pattern, "status", "True");
}
