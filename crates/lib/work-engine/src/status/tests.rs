use aro_crds::work::v1::{ConditionRule, ConditionRuleType, FeedbackRule, FeedbackType, JsonPath};
use serde_json::{Value, json};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn meta(ordinal: i32, name: &str) -> ManifestResourceMeta {
    ManifestResourceMeta {
        ordinal,
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        resource: "configmaps".to_owned(),
        name: name.to_owned(),
        namespace: "default".to_owned(),
    }
}

fn there(data: &Value) -> Known<Arc<Live>> {
    Known::There(Arc::new(Live::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data}))))
}

fn feedback() -> Choice {
    let path = JsonPath { name: "d".to_owned(), version: String::new(), path: ".data.a".to_owned() };
    let rule = FeedbackRule { kind: FeedbackType::JsonPaths, json_paths: vec![path] };
    Choice { feedback: vec![rule], ..Choice::default() }
}

fn seen(name: &str, known: Known<Arc<Live>>) -> Seen {
    Seen { meta: meta(0, name), choice: feedback(), failure: None, known }
}

fn frame(old: &ManifestWorkStatus, second: i64) -> Frame<'_> {
    Frame { generation: 1, old, now: at(second), max_json_raw: 1024 }
}

/// Type, status and reason of each.
fn shown(conditions: &[Condition]) -> Vec<(&str, &str, &str)> {
    conditions.iter().map(|c| (c.type_.as_str(), c.status.as_str(), c.reason.as_str())).collect()
}

#[test]
fn a_status_is_written_as_the_original_writes_it() {
    let seen = [seen("from-mqtt", there(&json!({"a": "b"})))];
    let status = of_work(frame(&ManifestWorkStatus::default(), 0), &seen);
    // The second event of the capture, in the shape of a ManifestWork.
    assert_eq!(
        serde_json::to_value(&status).unwrap(),
        json!({
            "conditions": [
                {"type": "Applied", "status": "True", "observedGeneration": 1, "lastTransitionTime": "1970-01-01T00:00:00Z",
                    "reason": "AppliedManifestWorkComplete", "message": "Apply manifest work complete"},
                {"type": "Available", "status": "True", "observedGeneration": 1, "lastTransitionTime": "1970-01-01T00:00:00Z",
                    "reason": "ResourcesAvailable", "message": "All resources are available"},
            ],
            "resourceStatus": {"manifests": [{
                "resourceMeta": {"ordinal": 0, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps",
                    "name": "from-mqtt", "namespace": "default"},
                "statusFeedback": {"values": [{"name": "d", "fieldValue": {"type": "String", "string": "b"}}]},
                "conditions": [
                    {"type": "Applied", "status": "True", "observedGeneration": 1,
                        "lastTransitionTime": "1970-01-01T00:00:00Z", "reason": "AppliedManifestComplete",
                        "message": "Apply manifest complete"},
                    {"type": "Available", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z",
                        "reason": "ResourceAvailable", "message": "Resource is available"},
                    {"type": "StatusFeedbackSynced", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z",
                        "reason": "StatusFeedbackSynced", "message": ""},
                ],
            }]},
        })
    );
}

#[test]
fn the_same_again_is_the_same_and_a_new_value_has_a_new_time() {
    let first = of_work(frame(&ManifestWorkStatus::default(), 10), &[seen("a", there(&json!({"a": "1"})))]);
    let again = of_work(frame(&first, 20), &[seen("a", there(&json!({"a": "1"})))]);
    assert_eq!(first, again);
    let changed = of_work(frame(&first, 20), &[seen("a", there(&json!({"a": "2"})))]);
    let times: Vec<i64> = changed.resource_status.manifests[0]
        .conditions
        .iter()
        .map(|condition| condition.last_transition_time.0.as_second())
        .collect();
    assert_eq!(times, [10, 10, 20]);
}

#[test]
fn what_is_wrong_with_one_object_is_said_of_it_and_counted_for_the_work() {
    let failure = Failure::UnknownKind("x/v1, Kind=Y".to_owned());
    let broken = ManifestResourceMeta { resource: String::new(), ..meta(1, "b") };
    let all = [
        seen("a", there(&json!({"a": "1"}))),
        Seen {
            meta: broken,
            choice: Choice::default(),
            failure: Some(Arc::new(failure)),
            known: Known::Unknown,
        },
    ];
    let status = of_work(frame(&ManifestWorkStatus::default(), 0), &all);
    assert_eq!(
        shown(&status.conditions),
        [
            ("Applied", "False", "AppliedManifestWorkFailed"),
            ("Available", "Unknown", "ResourcesStatusUnknown")
        ]
    );
    let manifest = &status.resource_status.manifests[1].conditions;
    assert_eq!(
        shown(manifest),
        [("Applied", "False", "AppliedManifestFailed"), ("Available", "Unknown", "IncompleteResourceMeta")]
    );
    assert_eq!(
        manifest[0].message,
        "Failed to apply manifest: the server doesn't have a resource type \"x/v1, Kind=Y\""
    );
    let absent = of_work(frame(&status, 0), &[seen("a", Known::Absent), seen("c", there(&json!({})))]);
    assert_eq!(absent.conditions[1].message, "1 of 2 resources are not available");
    assert_eq!(
        absent.resource_status.manifests[0].status_feedback.values,
        [],
        "what is not there has no values"
    );
}

#[test]
fn a_complete_object_stays_complete_and_freezes_the_work() {
    let rule = ConditionRule {
        condition: "Complete".to_owned(),
        kind: ConditionRuleType::Cel,
        cel_expressions: vec!["object.data.a == 'done'".to_owned()],
        ..ConditionRule::default()
    };
    let with_rule = |known| {
        let choice = Choice { rules: vec![rule.clone()], ..Choice::default() };
        Seen { meta: meta(0, "a"), choice, failure: None, known }
    };
    let running = of_work(frame(&ManifestWorkStatus::default(), 0), &[with_rule(there(&json!({"a": "no"})))]);
    assert!(!is_frozen(&running, 1));
    let done = of_work(frame(&running, 1), &[with_rule(there(&json!({"a": "done"})))]);
    assert!(is_frozen(&done, 1) && !is_frozen(&done, 2));
    assert!(is_complete(&done, &meta(7, "a"), 1));
    let later = of_work(frame(&done, 2), &[with_rule(Known::Absent)]);
    assert!(is_frozen(&later, 1));
    let next = of_work(Frame { generation: 2, ..frame(&done, 3) }, &[with_rule(there(&json!({"a": "no"})))]);
    assert!(!is_frozen(&next, 2), "a new generation begins anew");
}

#[test]
fn a_work_that_goes_says_so_beside_what_it_was() {
    let was = of_work(frame(&ManifestWorkStatus::default(), 0), &[seen("a", there(&json!({})))]);
    let goes = of_leaving(frame(&was, 5), "one is left");
    assert_eq!(shown(&goes.conditions)[2], ("Deleting", "True", "WorkDeleting"));
    let later = of_leaving(frame(&goes, 9), "none is left");
    assert_eq!(later.conditions.len(), 3);
    assert_eq!(later.conditions[2].last_transition_time.0.as_second(), 5);
    assert_eq!(later.conditions[2].message, "none is left");
}
