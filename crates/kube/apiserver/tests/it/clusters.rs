use serde_json::{Value, json};

use crate::support::{Caller, World};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn a_stopped_cluster_answers_nobody_and_comes_back_with_what_it_had() {
    let mut world = World::new().await;
    let admin = Caller::admin();
    world.done(&admin, "POST", MAPS, &json!({"metadata": {"name": "kept"}})).await;
    world.clusters.stop("one").unwrap();
    let (code, _) = world.call(&admin, "POST", MAPS, &json!({"metadata": {"name": "late"}})).await;
    assert_eq!(code, 503);
    assert!(world.clusters.create("one").await.is_err(), "its name is taken");
    world.cluster = world.clusters.ensure("one").await.unwrap();
    world.done(&admin, "GET", &format!("{MAPS}/kept"), &Value::Null).await;
    assert_eq!(world.call(&admin, "GET", &format!("{MAPS}/late"), &Value::Null).await.0, 404);
    world.end().await;
}

#[tokio::test]
async fn a_stopped_cluster_can_be_deleted_and_its_name_is_free_again() {
    let mut world = World::new().await;
    let admin = Caller::admin();
    world.done(&admin, "POST", MAPS, &json!({"metadata": {"name": "gone"}})).await;
    world.clusters.stop("one").unwrap();
    world.clusters.delete("one").await.unwrap();
    assert!(world.clusters.delete("one").await.is_err());
    world.cluster = world.clusters.create("one").await.unwrap();
    assert_eq!(world.call(&admin, "GET", &format!("{MAPS}/gone"), &Value::Null).await.0, 404);
    world.end().await;
}
