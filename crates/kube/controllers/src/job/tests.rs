use std::sync::Arc;
use std::time::Duration;

use aro_base::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::backoff::Backoff;
use super::member::{FINALIZER, INDEX, Wanted, make};
use super::plan::{Plan, Seen, plan, tidy};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn job(change: Value) -> Arc<Job> {
    let mut value = json!({
        "metadata": {"name": "work", "namespace": "n", "uid": "j"},
        "spec": {"completions": 3, "parallelism": 2, "backoffLimit": 2, "selector": {},
            "template": {"metadata": {"labels": {"job": "work"}}, "spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]}}},
        "status": {"startTime": at(0).to_string()},
    });
    json_patch::merge(&mut value, &change);
    Arc::new(serde_json::from_value(value).unwrap())
}

fn pod(name: &str, phase: &str, change: Value) -> Arc<Pod> {
    let ended = matches!(phase, "Succeeded" | "Failed");
    let state = if ended {
        json!({"terminated": {"exitCode": 1, "finishedAt": at(50).to_string()}})
    } else {
        json!({})
    };
    let mut value = json!({
        "metadata": {"name": name, "namespace": "n", "uid": name, "finalizers": [FINALIZER], "creationTimestamp": at(1).to_string()},
        "spec": {"containers": [], "nodeName": "x"},
        "status": {"phase": phase, "containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state}]},
    });
    json_patch::merge(&mut value, &change);
    Arc::new(serde_json::from_value(value).unwrap())
}

fn with_index(name: &str, phase: &str, index: u32) -> Arc<Pod> {
    pod(name, phase, json!({"metadata": {"annotations": {INDEX: index.to_string()}}}))
}

fn free() -> Value {
    json!({"metadata": {"finalizers": []}})
}

fn look(job: &Arc<Job>, pods: &[Arc<Pod>]) -> Plan {
    plan(&Seen { job: job.clone(), pods: pods.to_vec(), backoff: Backoff::default(), now: at(100) })
}

fn status(value: Value) -> JobStatus {
    tidy(serde_json::from_value(value).unwrap())
}

fn conditions(plan: &Plan) -> Vec<String> {
    let all = plan.status.conditions.iter().flatten();
    all.map(|known| format!("{}={} {}", known.type_, known.status, known.reason.as_deref().unwrap()))
        .collect()
}

fn names(pods: &[Arc<Pod>]) -> Vec<String> {
    pods.iter().map(|pod| pod.name_any()).collect()
}

/// The job as it is when the plan's status is written.
fn written(job: &Arc<Job>, plan: &Plan) -> Arc<Job> {
    Arc::new(Job { status: Some(plan.status.clone()), ..(**job).clone() })
}

#[test]
fn as_many_pods_work_as_are_allowed_and_needed() {
    assert_eq!(look(&job(json!({})), &[]).make.len(), 2);
    let one_left = job(json!({"status": {"succeeded": 2}}));
    assert_eq!(look(&one_left, &[]).make.len(), 1);
    assert_eq!(look(&one_left, &[pod("a", "Running", json!({}))]).make.len(), 0);
    let running = [pod("a", "Running", json!({})), pod("b", "Pending", json!({}))];
    let fewer = look(&job(json!({"spec": {"parallelism": 1}})), &running);
    assert_eq!(names(&fewer.discard), ["b"], "the one that got least far");
    let any = job(json!({"spec": {"completions": null}}));
    assert_eq!(look(&any, &[]).make.len(), 2);
    assert_eq!(look(&any, &[pod("a", "Succeeded", json!({})), pod("b", "Running", json!({}))]).make.len(), 0);
}

#[test]
fn a_pod_is_noted_then_released_then_counted() {
    let start = job(json!({}));
    let ended = pod("a", "Succeeded", json!({}));
    let noted =
        look(&start, &[ended.clone(), pod("b", "Running", json!({})), pod("c", "Running", json!({}))]);
    assert_eq!(names(&noted.strip), ["a"]);
    let wanted = status(json!({"active": 2, "ready": 0, "terminating": 0, "startTime": at(0).to_string(),
        "uncountedTerminatedPods": {"succeeded": ["a"]}}));
    assert_eq!(noted.status, wanted);
    // Before it is released, the same look changes nothing: a crash here counts nothing twice.
    let job = written(&start, &noted);
    let again = look(&job, &[ended, pod("b", "Running", json!({})), pod("c", "Running", json!({}))]);
    assert_eq!((again.status, names(&again.strip)), (wanted, vec!["a".to_owned()]));
    let counted = look(
        &job,
        &[pod("a", "Succeeded", free()), pod("b", "Running", json!({})), pod("c", "Running", json!({}))],
    );
    assert_eq!(counted.status.succeeded, Some(1));
    assert_eq!(counted.status.uncounted_terminated_pods, Some(UncountedTerminatedPods::default()));
    // And when it is gone altogether.
    assert_eq!(look(&job, &[]).status.succeeded, Some(1));
    assert_eq!(look(&written(&job, &counted), &[pod("a", "Succeeded", free())]).status.succeeded, Some(1));
}

#[test]
fn it_is_complete_when_everything_is_counted() {
    let start = job(json!({"status": {"succeeded": 2}}));
    let first = look(&start, &[pod("c", "Succeeded", json!({}))]);
    assert_eq!(conditions(&first), ["SuccessCriteriaMet=True CompletionsReached"]);
    assert!(first.make.is_empty() && first.delete.is_empty() && !first.ends);
    let last = look(&written(&start, &first), &[pod("c", "Succeeded", free())]);
    assert_eq!(
        conditions(&last),
        ["SuccessCriteriaMet=True CompletionsReached", "Complete=True CompletionsReached"]
    );
    assert_eq!(
        (last.status.succeeded, last.status.completion_time),
        (Some(3), Some(crate::replica_set::time(at(100))))
    );
}

#[test]
fn it_fails_when_too_many_pods_failed() {
    let start = job(json!({"status": {"failed": 2}}));
    let pods = [pod("a", "Failed", json!({})), pod("b", "Running", json!({}))];
    let first = look(&start, &pods);
    assert!(first.ends, "said before anything is deleted");
    assert_eq!(conditions(&first), ["FailureTarget=True BackoffLimitExceeded"]);
    let job = written(&start, &first);
    let second = look(&job, &pods);
    assert_eq!((second.ends, names(&second.delete)), (false, vec!["b".to_owned()]));
    let leaving =
        pod("b", "Running", json!({"metadata": {"deletionTimestamp": at(99).to_string(), "finalizers": []}}));
    let third = look(&job, &[pod("a", "Failed", free()), leaving]);
    assert_eq!(conditions(&third), ["FailureTarget=True BackoffLimitExceeded"], "one is on its way out");
    let last = look(&job, &[]);
    assert_eq!(
        conditions(&last),
        ["FailureTarget=True BackoffLimitExceeded", "Failed=True BackoffLimitExceeded"]
    );
    assert_eq!((last.status.failed, last.status.completion_time), (Some(3), None));
}

#[test]
fn pauses_between_failures_grow() {
    let seen = |failures: u32, now: i64| Seen {
        job: job(json!({"spec": {"backoffLimit": 9}})),
        pods: Vec::new(),
        backoff: Backoff { failures, last: Some(at(50)) },
        now: at(now),
    };
    for (failures, wait) in [(1, 10), (2, 20), (3, 40), (40, 600)] {
        let early = plan(&seen(failures, 50));
        assert_eq!((early.make.len(), early.next), (0, Some(Duration::from_secs(wait))), "after {failures}");
        assert_eq!(plan(&seen(failures, 50 + wait as i64)).make.len(), 2);
    }
    let failed = look(&job(json!({"spec": {"backoffLimit": 9}})), &[pod("a", "Failed", json!({}))]);
    assert_eq!(failed.backoff, Backoff { failures: 1, last: Some(at(50)) });
    let both = look(&job(json!({})), &[pod("a", "Failed", json!({})), pod("b", "Succeeded", json!({}))]);
    assert_eq!(both.backoff, Backoff::default(), "a success as late as the failure forgets it");
}

#[test]
fn the_deadline_and_restarts_end_it() {
    let late = look(&job(json!({"spec": {"activeDeadlineSeconds": 100}})), &[]);
    assert_eq!(conditions(&late)[0], "FailureTarget=True DeadlineExceeded");
    let soon = look(
        &job(json!({"spec": {"activeDeadlineSeconds": 130}})),
        &[pod("a", "Running", json!({})), pod("b", "Running", json!({}))],
    );
    assert_eq!(soon.next, Some(Duration::from_secs(30)));
    let restarts = json!({"status": {"containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 2}]}});
    let restarting = job(json!({"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}}));
    assert_eq!(
        conditions(&look(&restarting, &[pod("a", "Running", restarts)])),
        ["FailureTarget=True BackoffLimitExceeded"]
    );
}

#[test]
fn a_suspended_job_has_no_pods_and_its_time_starts_over() {
    let suspended = job(json!({"spec": {"suspend": true}}));
    let plan = look(&suspended, &[pod("a", "Running", json!({}))]);
    assert_eq!((names(&plan.discard), plan.make.len()), (vec!["a".to_owned()], 0));
    assert_eq!(
        (conditions(&plan), plan.status.start_time.clone()),
        (vec!["Suspended=True JobSuspended".to_owned()], None)
    );
    let resumed = Arc::new(Job { status: Some(plan.status), ..(*job(json!({}))).clone() });
    let plan = look(&resumed, &[]);
    assert_eq!((conditions(&plan), plan.make.len()), (vec!["Suspended=False JobResumed".to_owned()], 2));
    assert_eq!(plan.status.start_time, Some(crate::replica_set::time(at(100))));
}

#[test]
fn indexes_are_run_once_each() {
    let indexed = job(
        json!({"spec": {"completionMode": "Indexed", "completions": 4, "parallelism": 3}, "status": {"completedIndexes": "1", "succeeded": 1}}),
    );
    let pods =
        [with_index("a", "Succeeded", 0), with_index("b", "Running", 2), with_index("b2", "Pending", 2)];
    let plan = look(&indexed, &pods);
    assert_eq!(names(&plan.discard), ["b2"], "two have one index");
    let plan = look(&indexed, &pods[..2]);
    assert_eq!(plan.make, [Wanted { index: Some(3), failures: None }]);
    assert_eq!((plan.status.completed_indexes.as_deref(), plan.status.succeeded), (Some("0,1"), Some(2)));
    assert_eq!(names(&plan.strip), ["a"]);
    assert!(plan.status.uncounted_terminated_pods.unwrap().succeeded.is_none(), "the index says all");
    let made = make(&indexed, &plan.make[0]);
    assert_eq!(made.metadata.generate_name.as_deref(), Some("work-3-"));
    assert_eq!((made.annotations()[INDEX].as_str(), made.labels()[INDEX].as_str()), ("3", "3"));
    let spec = made.spec.unwrap();
    assert_eq!(spec.hostname.as_deref(), Some("work-3"));
    assert_eq!(spec.containers[0].env.as_ref().unwrap()[0].name, "JOB_COMPLETION_INDEX");
}

#[test]
fn failures_can_be_counted_for_each_index() {
    let each = job(
        json!({"spec": {"completionMode": "Indexed", "completions": 2, "backoffLimit": 100, "backoffLimitPerIndex": 1}}),
    );
    let failed = |count: &str| {
        let notes = json!({INDEX: "0", "batch.kubernetes.io/job-index-failure-count": count});
        pod("a", "Failed", json!({"metadata": {"annotations": notes}}))
    };
    let again = look(&each, &[failed("0"), with_index("b", "Running", 1)]);
    assert_eq!(again.make, [Wanted { index: Some(0), failures: Some((1, 0)) }]);
    assert!(again.strip.is_empty(), "it knows the count until there is another");
    let lost = look(&each, &[failed("1"), with_index("b", "Running", 1)]);
    assert_eq!((lost.make.len(), lost.status.failed_indexes.as_deref()), (0, Some("0")));
    let over = look(&each, &[failed("1"), with_index("b", "Succeeded", 1)]);
    assert_eq!(conditions(&over), ["FailureTarget=True FailedIndexes"]);
}

#[test]
fn rules_decide_about_failures_and_success() {
    let rule = |action: &str| json!({"spec": {"podFailurePolicy": {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [1]}}]}}});
    let failed = [pod("a", "Failed", json!({}))];
    let fatal = look(&job(rule("FailJob")), &failed);
    assert_eq!(conditions(&fatal), ["FailureTarget=True PodFailurePolicy"]);
    let message = fatal.status.conditions.unwrap()[0].message.clone().unwrap();
    assert_eq!(message, "Container c for pod n/a failed with exit code 1 matching FailJob rule at index 0");
    let ignored = look(&job(rule("Ignore")), &failed);
    assert_eq!(names(&ignored.strip), ["a"]);
    assert_eq!(ignored.status.uncounted_terminated_pods, Some(UncountedTerminatedPods::default()));
    let leader = job(
        json!({"spec": {"completionMode": "Indexed", "successPolicy": {"rules": [{"succeededIndexes": "0"}]}}}),
    );
    let enough = look(&leader, &[with_index("a", "Succeeded", 0), with_index("b", "Running", 1)]);
    assert_eq!(conditions(&enough), ["SuccessCriteriaMet=True SuccessPolicy"]);
    assert_eq!(names(&enough.delete), ["b"]);
}
