use aro_base::Timestamp;
use aro_bundle::{Action, Event, EventType};
use aro_ocm::{ClusterState, NodePoolId, NodePoolStateValue, Time};
use serde_json::{Value, json};

use super::scripted::{CLUSTER, record};
use crate::maestro::Received;
use crate::provisioning::state::{observe_cluster, observe_pool};
use crate::records::{DeletionRequest, NodePoolObserved, NodePoolProvisioned, NodePoolRecord, TraceContext};

fn now() -> Time {
    Time(Timestamp::from_second(1_900_000_000).unwrap())
}

fn values(values: &[(&str, Value)]) -> Value {
    let value = |(name, value): &(&str, Value)| {
        let field = match value {
            Value::Number(_) => json!({"type": "Integer", "integer": value}),
            value => json!({"type": "String", "string": value}),
        };
        json!({"name": name, "fieldValue": field})
    };
    values.iter().map(value).collect()
}

/// A status as it comes: the inner work's status inside of the bundle's.
fn received(kind: &str, reported: &[(&str, Value)]) -> Received {
    let inner = json!({"conditions": [], "resourceStatus": {"manifests": [{
        "resourceMeta": {"ordinal": 0, "kind": kind, "name": "x", "namespace": "n"},
        "conditions": [{"type": "Applied", "status": "True", "reason": "a", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "statusFeedback": {"values": values(reported)},
    }]}});
    let status = json!({"conditions": [], "resourceStatus": [{
        "resourceMeta": {"ordinal": 0, "kind": "ManifestWork", "name": CLUSTER, "namespace": "local-cluster"},
        "conditions": [],
        "statusFeedback": {"values": [
            {"name": "status", "fieldValue": {"type": "JsonRaw", "jsonRaw": inner.to_string()}},
            {"name": "generation", "fieldValue": {"type": "Integer", "integer": 3}},
        ]},
    }]});
    let mut event = Event::new("e", "agent", EventType::status(Action::Update), "mgmt-1");
    event.resource_id = Some("bundle".to_owned());
    event.sequence_id = Some("1".to_owned());
    event.metadata = Some(
        json!({"labels": {"api.openshift.com/id": CLUSTER}, "annotations": {"aro.dev/object": CLUSTER}})
            .to_string(),
    );
    Received::read(&event.with_payload(&status).unwrap()).unwrap()
}

fn hosted_cluster(generation: &str, available: &str, state: Option<&str>) -> Received {
    let mut reported = vec![
        ("record-generation", json!(generation)),
        ("Available-Status", json!(available)),
        ("Available-Reason", json!("AsExpected")),
        ("Available-Message", json!("waiting for etcd")),
        ("ControlPlaneEndpoint-Host", json!("api.c1")),
        ("ControlPlaneEndpoint-Port", json!(443)),
    ];
    if let Some(state) = state {
        reported.push(("VersionHistory0-State", json!(state)));
        reported.push(("VersionHistory0-Version", json!("4.20.8")));
        reported.push(("VersionHistory0-StartedTime", json!("2026-01-01T00:00:00Z")));
    }
    received("HostedCluster", &reported)
}

#[test]
fn an_installation_ends_when_the_cluster_is_available_and_a_version_is_completed() {
    let mut record = record();
    record.set_state(ClusterState::Installing, "");
    assert!(observe_cluster(&mut record, &hosted_cluster("1", "False", None), now()));
    assert_eq!(record.state(), ClusterState::Installing);
    let description = record.status_mut().description.clone().unwrap();
    assert!(description.contains("waiting for etcd"), "{description}");
    observe_cluster(&mut record, &hosted_cluster("1", "True", Some("Partial")), now());
    assert_eq!(record.state(), ClusterState::Installing, "available comes before the version");
    assert!(observe_cluster(&mut record, &hosted_cluster("1", "True", Some("Completed")), now()));
    assert_eq!(record.state(), ClusterState::Ready);
    assert_eq!(record.observed.endpoint.as_ref().unwrap().port, Some(443));
    assert_eq!(record.observed.version_history[0].version.as_deref(), Some("4.20.8"));
    let again = observe_cluster(&mut record, &hosted_cluster("1", "True", Some("Completed")), now());
    assert!(!again, "the same status writes nothing");
}

#[test]
fn an_update_ends_when_the_management_cluster_has_its_generation() {
    let mut record = record();
    record.generation = 2;
    record.set_state(ClusterState::Updating, "");
    observe_cluster(&mut record, &hosted_cluster("1", "True", Some("Completed")), now());
    assert_eq!(record.state(), ClusterState::Updating, "a status of the former generation");
    observe_cluster(&mut record, &hosted_cluster("2", "True", Some("Completed")), now());
    assert_eq!(record.state(), ClusterState::Ready);
}

#[test]
fn a_cluster_that_is_being_deleted_does_not_become_ready() {
    let mut record = record();
    record.set_state(ClusterState::Uninstalling, "");
    record.deletion = Some(DeletionRequest { requested: now(), trace: TraceContext::default() });
    observe_cluster(&mut record, &hosted_cluster("1", "True", Some("Completed")), now());
    assert_eq!(record.state(), ClusterState::Uninstalling);
}

fn pool(state: NodePoolStateValue, pool: Value) -> NodePoolRecord {
    let mut record = NodePoolRecord {
        cluster_id: super::scripted::record().id,
        id: NodePoolId::parse("np1").unwrap(),
        pool: serde_json::from_value(pool).unwrap(),
        created: now(),
        generation: 1,
        trace: TraceContext::default(),
        deletion: None,
        observed: NodePoolObserved::default(),
        provisioning: NodePoolProvisioned::default(),
    };
    record.set_state(state, "", now());
    record
}

fn node_pool(ready: &str, replicas: Option<i64>) -> Received {
    let mut reported = vec![
        ("record-generation", json!("1")),
        ("Ready-Status", json!(ready)),
        ("Ready-Reason", json!("NotFound")),
        ("Ready-Message", json!("no machine has joined")),
    ];
    if let Some(replicas) = replicas {
        reported.push(("Replicas", json!(replicas)));
    }
    received("NodePool", &reported)
}

#[test]
fn a_pool_is_ready_with_its_number_of_nodes() {
    for (wanted, replicas, ready, expected) in [
        (json!({"replicas": 2}), Some(1), "True", NodePoolStateValue::Installing),
        (json!({"replicas": 2}), Some(2), "False", NodePoolStateValue::Installing),
        (json!({"replicas": 2}), Some(2), "True", NodePoolStateValue::Ready),
        (json!({"replicas": 0}), None, "True", NodePoolStateValue::Ready),
        (
            json!({"autoscaling": {"min_replica": 1, "max_replica": 3}}),
            Some(2),
            "True",
            NodePoolStateValue::Ready,
        ),
        (
            json!({"autoscaling": {"min_replica": 1, "max_replica": 3}}),
            None,
            "True",
            NodePoolStateValue::Installing,
        ),
    ] {
        let mut record = pool(NodePoolStateValue::Installing, wanted.clone());
        observe_pool(&mut record, &node_pool(ready, replicas), now());
        assert_eq!(record.state(), expected, "{wanted} {replicas:?} {ready}");
        let current = record.pool.status.as_ref().unwrap().current_replicas;
        assert_eq!(current, Some(replicas.unwrap_or_default()));
    }
}

#[test]
fn a_pool_that_does_not_become_ready_says_why() {
    let mut record = pool(NodePoolStateValue::Installing, json!({"replicas": 2}));
    observe_pool(&mut record, &node_pool("False", Some(0)), now());
    let message = record.pool.status.as_ref().unwrap().message.clone().unwrap();
    assert_eq!(message, "NodePool is not ready: NotFound no machine has joined");
}
