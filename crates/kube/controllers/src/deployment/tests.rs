use std::sync::Arc;

use aro_base::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::plan::{Act, Plan, Seen, plan};
use super::rolling::Limits;
use super::sets::{DESIRED, HISTORY, MAXIMUM, REVISION};
use super::template::HASH_LABEL;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// Ten replicas of `image`, changed by what is given.
fn deployment(image: &str, change: Value) -> Arc<Deployment> {
    let mut value = json!({
        "metadata": {"name": "web", "namespace": "n", "uid": "d", "generation": 2, "annotations": {"note": "x"}},
        "spec": {"replicas": 10, "selector": {"matchLabels": {"app": "web"}}, "revisionHistoryLimit": 1, "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}}},
    });
    json_patch::merge(&mut value, &change);
    Arc::new(serde_json::from_value(value).unwrap())
}

/// A set for `image`: made at a second, with a size, of which some are available.
fn set(image: &str, made: i64, size: i32, available: i32) -> Arc<ReplicaSet> {
    resized(image, made, size, available, 10)
}

fn resized(image: &str, made: i64, size: i32, available: i32, desired: i32) -> Arc<ReplicaSet> {
    let labels = json!({"app": "web", HASH_LABEL: image});
    Arc::new(
        serde_json::from_value(json!({
            "metadata": {"name": format!("web-{image}"), "namespace": "n", "uid": image, "labels": labels, "generation": 1,
                "creationTimestamp": at(made).to_string(),
                "annotations": {REVISION: made.to_string(), DESIRED: desired.to_string(), MAXIMUM: (desired + 3).to_string(), "note": "x"}},
            "spec": {"replicas": size, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}},
            "status": {"replicas": size, "readyReplicas": available, "availableReplicas": available, "observedGeneration": 1},
        }))
        .unwrap(),
    )
}

fn seen(deployment: Arc<Deployment>, sets: Vec<Arc<ReplicaSet>>) -> Seen {
    Seen { deployment, sets, running: Vec::new(), now: at(100) }
}

/// The sizes a plan gives: `name=replicas`, `+name=replicas` for a new set and `-name` for a removed one.
fn sizes(plan: &Plan) -> Vec<String> {
    let mut shown: Vec<String> = plan
        .acts
        .iter()
        .map(|act| match act {
            Act::Create(set) => format!("+{}", set.spec.as_ref().unwrap().replicas.unwrap()),
            Act::Update(set) => {
                format!("{}={}", set.known.name_any().trim_start_matches("web-"), set.replicas)
            }
            Act::Remove(set) => format!("-{}", set.name_any().trim_start_matches("web-")),
        })
        .collect();
    shown.sort();
    shown
}

fn condition<'a>(plan: &'a Plan, kind: &str) -> (&'a str, &'a str) {
    let all = plan.status.conditions.as_ref().unwrap();
    let one = all.iter().find(|condition| condition.type_ == kind);
    one.map_or(("", ""), |one| (one.status.as_str(), one.reason.as_deref().unwrap()))
}

#[test]
fn limits_are_resolved_as_upstream_does() {
    let limits = |replicas: i32, surge: Value, unavailable: Value| {
        let change = json!({"spec": {"replicas": replicas, "strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}});
        let limits = Limits::of(&deployment("a", change));
        (limits.surge, limits.unavailable)
    };
    assert_eq!(limits(10, json!("25%"), json!("25%")), (3, 2));
    assert_eq!(limits(2, json!("0%"), json!("1%")), (0, 1), "rounding must not stop a rollout");
    assert_eq!(limits(1, json!("25%"), json!("25%")), (1, 0));
    assert_eq!(limits(0, json!("25%"), json!("25%")), (0, 0));
    assert_eq!(limits(3, json!(1), json!(5)), (1, 3), "more than all cannot be missing");
    let recreate =
        deployment("a", json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}}));
    assert_eq!((Limits::of(&recreate).surge, Limits::of(&recreate).unavailable), (0, 0));
}

#[test]
fn the_first_set_has_all_replicas_and_says_where_it_comes_from() {
    let plan = plan(&seen(deployment("a", json!({})), vec![]));
    assert_eq!(sizes(&plan), ["+10"]);
    let Act::Create(made) = &plan.acts[0] else { panic!("{plan:?}") };
    let hash = &made.metadata.labels.as_ref().unwrap()[HASH_LABEL];
    assert_eq!(made.name_any(), format!("web-{hash}"));
    let spec = made.spec.as_ref().unwrap();
    assert_eq!(spec.selector.match_labels.as_ref().unwrap()[HASH_LABEL], *hash);
    assert_eq!(
        spec.template.as_ref().unwrap().metadata.as_ref().unwrap().labels.as_ref().unwrap()[HASH_LABEL],
        *hash
    );
    let notes = made.metadata.annotations.as_ref().unwrap();
    assert_eq!(
        (notes[REVISION].as_str(), notes[DESIRED].as_str(), notes[MAXIMUM].as_str(), notes["note"].as_str()),
        ("1", "10", "13", "x")
    );
    assert_eq!(plan.revision.as_deref(), Some("1"));
    assert_eq!(condition(&plan, "Progressing"), ("True", "NewReplicaSetCreated"));
    assert_eq!(condition(&plan, "Available"), ("False", "MinimumReplicasUnavailable"));
}

#[test]
fn a_rollout_goes_step_by_step_within_its_limits() {
    let to = |image: &str| deployment(image, json!({}));
    type Case = (&'static str, Vec<Arc<ReplicaSet>>, &'static [&'static str]);
    let cases: [Case; 9] = [
        ("a new template starts with the surge", vec![set("a", 1, 10, 10)], &["+3"]),
        ("then what may be missing goes", vec![set("a", 1, 10, 10), set("b", 2, 3, 0)], &["a=8"]),
        ("then the new set grows again", vec![set("a", 1, 8, 8), set("b", 2, 3, 0)], &["b=5"]),
        (
            "and nothing happens while its pods do not come up",
            vec![set("a", 1, 8, 8), set("b", 2, 5, 0)],
            &[],
        ),
        ("each pod that comes up frees an old one", vec![set("a", 1, 8, 8), set("b", 2, 5, 2)], &["a=6"]),
        ("old pods that are not available go first", vec![set("a", 1, 8, 5), set("b", 2, 5, 3)], &["a=5"]),
        (
            "a status that is older than the size is not believed",
            vec![set("a", 1, 8, 10), set("b", 2, 5, 3)],
            &["a=5"],
        ),
        ("the last step", vec![set("a", 1, 1, 1), set("b", 2, 10, 10)], &["a=0"]),
        ("done", vec![set("a", 1, 0, 0), set("b", 2, 10, 10)], &[]),
    ];
    for (what, sets, wanted) in cases {
        assert_eq!(sizes(&plan(&seen(to("b"), sets))), wanted, "{what}");
    }
}

#[test]
fn going_back_uses_the_old_set_again_and_moves_its_revision_up() {
    let sets = vec![set("a", 1, 8, 8), set("b", 2, 5, 0)];
    let plan = plan(&seen(deployment("a", json!({})), sets));
    assert_eq!(sizes(&plan), ["a=8", "b=0"], "the broken pods go at once, and the revision is written");
    let Act::Update(back) = &plan.acts[0] else { panic!("{plan:?}") };
    assert_eq!((back.annotations[REVISION].as_str(), back.annotations[HISTORY].as_str()), ("3", "1"));
    assert_eq!(plan.revision.as_deref(), Some("3"));
}

#[test]
fn a_rollover_starts_at_nothing_and_takes_from_all_old_sets() {
    let all = vec![set("a", 1, 8, 8), set("b", 2, 5, 0)];
    assert_eq!(sizes(&plan(&seen(deployment("c", json!({})), all))), ["+0"]);
    let all = vec![set("a", 1, 8, 8), set("b", 2, 5, 0), set("c", 3, 0, 0)];
    assert_eq!(sizes(&plan(&seen(deployment("c", json!({})), all))), ["b=0"]);
}

#[test]
fn a_new_size_during_a_rollout_is_shared_out() {
    let scaled = |size: i32| deployment("b", json!({"spec": {"replicas": size}, "status": {"replicas": 13}}));
    let sets = || vec![set("a", 1, 8, 8), set("b", 2, 5, 5)];
    assert_eq!(sizes(&plan(&seen(scaled(20), sets()))), ["a=14", "b=9"], "23 in all, as they were");
    assert_eq!(sizes(&plan(&seen(scaled(5), sets()))), ["a=5", "b=3"]);
    assert_eq!(sizes(&plan(&seen(scaled(0), sets()))), ["a=0", "b=0"]);
    assert_eq!(sizes(&plan(&seen(scaled(7), vec![set("b", 2, 10, 10)]))), ["b=7"]);
    let done = vec![set("a", 1, 3, 3), resized("b", 2, 10, 10, 10)];
    let paused = deployment("b", json!({"spec": {"paused": true}}));
    assert_eq!(sizes(&plan(&seen(paused, done))), ["a=0"], "a saturated set needs no others");
}

#[test]
fn a_paused_deployment_keeps_its_template_and_follows_its_size() {
    let paused = |size: i32| deployment("b", json!({"spec": {"paused": true, "replicas": size}}));
    let same = plan(&seen(paused(10), vec![set("a", 1, 10, 10)]));
    assert_eq!(sizes(&same), Vec::<String>::new());
    assert_eq!(condition(&same, "Progressing"), ("Unknown", "DeploymentPaused"));
    assert_eq!(same.next, None, "a pause is no lack of progress");
    assert_eq!(sizes(&plan(&seen(paused(4), vec![set("a", 1, 10, 10)]))), ["a=4"]);
    let mut resumed = (*deployment("b", json!({}))).clone();
    resumed.status = Some(same.status);
    let resumed = plan(&seen(Arc::new(resumed), vec![set("a", 1, 10, 10)]));
    assert_eq!(condition(&resumed, "Progressing"), ("True", "NewReplicaSetCreated"));
}

#[test]
fn recreate_waits_until_the_last_old_pod_has_ended() {
    let to = |image: &str| {
        deployment(image, json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}}))
    };
    let mut look = seen(to("b"), vec![set("a", 1, 10, 10)]);
    assert_eq!(sizes(&plan(&look)), ["a=0"]);
    look.sets = vec![set("a", 1, 0, 0)];
    look.running = vec!["a".to_owned()];
    assert_eq!(sizes(&plan(&look)), Vec::<String>::new());
    look.running = Vec::new();
    assert_eq!(sizes(&plan(&look)), ["+10"]);
}

#[test]
fn history_beyond_its_limit_is_removed_when_the_rollout_is_complete() {
    let complete = json!({"status": {"replicas": 10, "updatedReplicas": 10, "availableReplicas": 10, "observedGeneration": 2}});
    let sets = || vec![set("a", 1, 0, 0), set("b", 2, 0, 0), set("c", 3, 1, 1), set("d", 4, 10, 10)];
    let rolling = plan(&seen(deployment("d", json!({})), sets()));
    assert_eq!(sizes(&rolling), ["c=0"]);
    let mut done = sets();
    done[2] = set("c", 3, 0, 0);
    assert_eq!(sizes(&plan(&seen(deployment("d", complete.clone()), done))), ["-a", "-b"]);
    assert_eq!(sizes(&plan(&seen(deployment("d", complete), sets()))), ["-a", "-b", "c=0"]);
}

#[test]
fn conditions_tell_how_a_rollout_goes() {
    let sets = || vec![set("a", 1, 8, 8), set("b", 2, 5, 0)];
    let told = |reason: &str, second: i64, shown: i32| {
        json!({"status": {"replicas": 13, "updatedReplicas": shown, "readyReplicas": 8, "availableReplicas": 8, "observedGeneration": 2,
            "conditions": [{"type": "Progressing", "status": "True", "reason": reason, "message": "",
                "lastUpdateTime": at(second).to_string(), "lastTransitionTime": at(0).to_string()}]}})
    };
    let moving = plan(&seen(deployment("b", told("NewReplicaSetCreated", 0, 3)), sets()));
    assert_eq!(condition(&moving, "Progressing"), ("True", "ReplicaSetUpdated"));
    let all = moving.status.conditions.as_ref().unwrap();
    let progressing = all.iter().find(|condition| condition.type_ == "Progressing").unwrap();
    assert_eq!(progressing.last_update_time.as_ref().unwrap().0, at(100));
    assert_eq!(progressing.last_transition_time.as_ref().unwrap().0, at(0));
    assert_eq!(moving.next, Some(std::time::Duration::from_secs(601)));
    let waiting = plan(&seen(deployment("b", told("ReplicaSetUpdated", 0, 5)), sets()));
    assert_eq!(
        (condition(&waiting, "Progressing").1, waiting.next),
        ("ReplicaSetUpdated", Some(std::time::Duration::from_secs(501)))
    );
    let mut late = seen(deployment("b", told("ReplicaSetUpdated", 0, 5)), sets());
    late.now = at(601);
    let late = plan(&late);
    assert_eq!((condition(&late, "Progressing"), late.next), (("False", "ProgressDeadlineExceeded"), None));
    let done = plan(&seen(
        deployment("b", told("ReplicaSetUpdated", 0, 5)),
        vec![set("a", 1, 0, 0), set("b", 2, 10, 10)],
    ));
    assert_eq!((condition(&done, "Progressing"), done.next), (("True", "NewReplicaSetAvailable"), None));
    assert_eq!(condition(&done, "Available"), ("True", "MinimumReplicasAvailable"));
    let found = plan(&seen(deployment("b", json!({})), vec![set("b", 2, 10, 0)]));
    assert_eq!(condition(&found, "Progressing"), ("True", "ReplicaSetUpdated"));
}
