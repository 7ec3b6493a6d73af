//! What the server decides about an object beyond the rules of its type.

use serde_json::{Value, json};

use crate::support::{Caller, World};

const PODS: &str = "/api/v1/namespaces/default/pods";
const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

async fn class(world: &World, body: Value) -> (u16, Value) {
    world.call(&Caller::admin(), "POST", CLASSES, &body).await
}

async fn pod(world: &World, name: &str, spec: Value) -> (u16, Value) {
    let mut body = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (member, value) in spec.as_object().unwrap() {
        body["spec"][member] = value.clone();
    }
    world.call(&Caller::admin(), "POST", PODS, &body).await
}

async fn ready() -> World {
    let world = World::new().await;
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    world.until(account, "the default account", |account| account["metadata"]["uid"].is_string()).await;
    let (code, answer) = class(&world, json!({"metadata": {"name": "high"}, "value": 1000})).await;
    assert_eq!(code, 201, "{answer}");
    let never = json!({"metadata": {"name": "never"}, "value": 5, "preemptionPolicy": "Never"});
    assert_eq!(class(&world, never).await.0, 201);
    world
}

fn computed(given: i64, computed: i64) -> String {
    format!(
        "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {computed} from the given PriorityClass name"
    )
}

#[tokio::test]
async fn pod_cannot_give_itself_a_priority_that_its_class_does_not_have() {
    let world = ready().await;
    for (name, spec, why) in [
        ("a", json!({"priority": 2_000_000_000}), computed(2_000_000_000, 0)),
        ("b", json!({"priorityClassName": "high", "priority": 1001}), computed(1001, 1000)),
        ("c", json!({"priorityClassName": "none", "priority": 3}), "no PriorityClass with name none was found".to_owned()),
        (
            "d",
            json!({"preemptionPolicy": "Never"}),
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name".to_owned(),
        ),
        (
            "e",
            json!({"priorityClassName": "never", "preemptionPolicy": "PreemptLowerPriority"}),
            "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name".to_owned(),
        ),
    ] {
        let (code, answer) = pod(&world, name, spec).await;
        assert_eq!(code, 403, "{name}: {answer}");
        assert_eq!(answer["message"], format!("pods {name:?} is forbidden: {why}"));
    }
    for (name, spec, priority, policy) in [
        ("f", json!({"priority": 0}), 0, "PreemptLowerPriority"),
        ("g", json!({"priorityClassName": "high", "priority": 1000}), 1000, "PreemptLowerPriority"),
        ("h", json!({"priorityClassName": "never"}), 5, "Never"),
        // Upstream restricts system classes by quota only, and has none by default.
        ("i", json!({"priorityClassName": "system-node-critical"}), 2_000_001_000, "PreemptLowerPriority"),
    ] {
        let (code, answer) = pod(&world, name, spec).await;
        assert_eq!(code, 201, "{name}: {answer}");
        let got = (answer["spec"]["priority"].as_i64(), answer["spec"]["preemptionPolicy"].as_str());
        assert_eq!(got, (Some(priority), Some(policy)), "{name}");
    }
    world.end().await;
}

#[tokio::test]
async fn pod_keeps_its_priority_when_an_update_leaves_it_out() {
    let world = ready().await;
    let (_, mut made) = pod(&world, "a", json!({"priorityClassName": "never"})).await;
    let spec = made["spec"].as_object_mut().unwrap();
    spec.remove("priority");
    spec.remove("preemptionPolicy");
    made["metadata"]["labels"] = json!({"a": "b"});
    let updated = world.done(&Caller::admin(), "PUT", &format!("{PODS}/a"), &made).await;
    assert_eq!(updated["spec"]["priority"], 5);
    assert_eq!(updated["spec"]["preemptionPolicy"], "Never");
    world.end().await;
}

#[tokio::test]
async fn second_default_priority_class_is_refused_and_the_first_names_itself_in_pods() {
    let world = ready().await;
    let default =
        |name: &str, value: i64| json!({"metadata": {"name": name}, "value": value, "globalDefault": true});
    assert_eq!(class(&world, default("first", 42)).await.0, 201);
    let (code, answer) = class(&world, default("second", 43)).await;
    assert_eq!(code, 403, "{answer}");
    assert_eq!(
        answer["message"],
        "priorityclasses.scheduling.k8s.io \"second\" is forbidden: PriorityClass first is already marked as default. Only one default can exist"
    );
    let mark = json!({"globalDefault": true});
    assert_eq!(world.call(&Caller::admin(), "PATCH", &format!("{CLASSES}/high"), &mark).await.0, 403);
    world.done(&Caller::admin(), "PATCH", &format!("{CLASSES}/first"), &json!({"description": "x"})).await;
    let (_, made) = pod(&world, "a", json!({})).await;
    assert_eq!(made["spec"]["priorityClassName"], "first");
    assert_eq!(made["spec"]["priority"], 42);
    assert_eq!(pod(&world, "b", json!({"priority": 0})).await.0, 403);
    world.end().await;
}
