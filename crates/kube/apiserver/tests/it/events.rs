use aro_base::SignedDuration;
use serde_json::{Value, json};

use crate::support::{Caller, World};

const EVENTS: &str = "/api/v1/namespaces/default/events";
const NEW_EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

fn event(name: &str) -> Value {
    json!({"metadata": {"name": name}, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}, "reason": "R"})
}

async fn names(world: &World, path: &str) -> Vec<String> {
    let list = world.done(&Caller::admin(), "GET", path, &Value::Null).await;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn events_are_gone_an_hour_after_they_were_last_written() {
    let world = World::new().await;
    let admin = Caller::admin();
    world.done(&admin, "POST", EVENTS, &event("old")).await;
    world.done(&admin, "POST", EVENTS, &event("again")).await;
    world.clock.advance(SignedDuration::from_mins(30));
    world.done(&admin, "PATCH", &format!("{EVENTS}/again"), &json!({"count": 2})).await;
    world.done(&admin, "POST", EVENTS, &event("new")).await;
    world.clock.advance(SignedDuration::from_mins(29));
    assert_eq!(names(&world, EVENTS).await, ["again", "new", "old"]);
    world.clock.advance(SignedDuration::from_mins(1));
    assert_eq!(names(&world, NEW_EVENTS).await, ["again", "new"]);
    assert_eq!(world.call(&admin, "GET", &format!("{EVENTS}/old"), &Value::Null).await.0, 404);
    // A name that is free again can be used again.
    world.done(&admin, "POST", EVENTS, &event("old")).await;
    world.clock.advance(SignedDuration::from_mins(30));
    assert_eq!(names(&world, EVENTS).await, ["old"]);
    world.end().await;
}

#[tokio::test]
async fn events_of_an_earlier_run_grow_old_too() {
    let mut world = World::new().await;
    world.done(&Caller::admin(), "POST", EVENTS, &event("old")).await;
    world.clusters.stop("one").unwrap();
    world.cluster = world.clusters.ensure("one").await.unwrap();
    assert_eq!(names(&world, EVENTS).await, ["old"]);
    world.clock.advance(SignedDuration::from_hours(1));
    assert!(names(&world, EVENTS).await.is_empty());
    world.end().await;
}
