//! Field ownership of what is written through `scale`, and by the server itself.

use serde_json::{Value, json};

use crate::support::{Caller, World};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment() -> Value {
    json!({"metadata": {"name": "d"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

/// Manager, operation and subresource of each entry, those who own the replicas marked.
fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let show = |entry: &Value| {
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        let owns = if entry["fieldsV1"]["f:spec"]["f:replicas"].is_object() { "*" } else { "" };
        format!(
            "{} {} {} {}{owns}",
            text("manager"),
            text("operation"),
            text("apiVersion"),
            text("subresource")
        )
    };
    entries.iter().map(show).collect()
}

async fn owners_of_d(world: &World) -> Vec<String> {
    owners(&world.done(&Caller::admin(), "GET", &format!("{DEPLOYMENTS}/d"), &Value::Null).await)
}

#[tokio::test]
async fn scaling_is_owned_through_the_scale_subresource() {
    let world = World::new().await;
    let admin = Caller::admin();
    world.done(&admin, "POST", &format!("{DEPLOYMENTS}?fieldManager=maker"), &deployment()).await;
    let scale = format!("{DEPLOYMENTS}/d/scale");
    let wanted = json!({"spec": {"replicas": 3}});
    world.done(&admin, "PATCH", &format!("{scale}?fieldManager=patcher"), &wanted).await;
    assert_eq!(owners_of_d(&world).await, ["patcher Update apps/v1 scale*", "maker Update apps/v1 "]);
    let mut view = world.done(&admin, "GET", &scale, &Value::Null).await;
    view["spec"]["replicas"] = json!(4);
    world.done(&admin, "PUT", &format!("{scale}?fieldManager=putter"), &view).await;
    assert_eq!(owners_of_d(&world).await, ["putter Update apps/v1 scale*", "maker Update apps/v1 "]);
    world.end().await;
}

#[tokio::test]
async fn apply_to_scale_does_not_take_replicas_from_another_manager_silently() {
    let world = World::new().await;
    let admin = Caller::admin();
    world.done(&admin, "POST", &format!("{DEPLOYMENTS}?fieldManager=maker"), &deployment()).await;
    let scale = format!("{DEPLOYMENTS}/d/scale");
    world
        .done(&admin, "PATCH", &format!("{scale}?fieldManager=putter"), &json!({"spec": {"replicas": 4}}))
        .await;
    let applier = admin.clone().header("content-type", "application/apply-patch+yaml");
    let config = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 5}});
    let path = format!("{scale}?fieldManager=applier");
    let (code, status) = world.call(&applier, "PATCH", &path, &config).await;
    assert_eq!(code, 409, "{status}");
    assert_eq!(
        status["message"],
        "Apply failed with 1 conflict: conflict with \"putter\" with subresource \"scale\" using autoscaling/v1: .spec.replicas"
    );
    let answer = world.done(&applier, "PATCH", &format!("{path}&force=true"), &config).await;
    assert_eq!(answer["spec"]["replicas"], 5);
    assert_eq!(owners_of_d(&world).await, ["applier Apply apps/v1 scale*", "maker Update apps/v1 "]);
    let other = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 5}});
    let (code, status) = world.call(&applier, "PATCH", &path, &other).await;
    assert_eq!(
        (code, status["message"].as_str()),
        (400, Some("invalid object type: apps/v1, Kind=Deployment"))
    );
    world.end().await;
}

#[tokio::test]
async fn conditions_of_a_definition_are_owned_by_the_server() {
    let world = World::new().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let definition = json!({"metadata": {"name": "things.x.io"}, "spec": {"group": "x.io", "scope": "Cluster",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    let path = format!("{definitions}?fieldManager=maker");
    world.done(&Caller::admin(), "POST", &path, &definition).await;
    let established = |crd: &Value| {
        let conditions = crd["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|one| one["type"] == "Established" && one["status"] == "True")
    };
    let path = format!("{definitions}/things.x.io");
    let crd = world.until(&path, "an established definition", established).await;
    assert_eq!(
        owners(&crd),
        ["kube-apiserver Update apiextensions.k8s.io/v1 status", "maker Update apiextensions.k8s.io/v1 "]
    );
    let owned = &crd["metadata"]["managedFields"][0]["fieldsV1"];
    let names: Vec<&String> = owned.as_object().unwrap().keys().collect();
    assert_eq!(names, ["f:status"], "{owned}");
    let conditions = &owned["f:status"]["f:conditions"];
    for kind in ["Established", "NamesAccepted"] {
        assert!(conditions[format!("k:{{\"type\":\"{kind}\"}}")].is_object(), "{owned}");
    }
    assert!(owned["f:status"]["f:acceptedNames"]["f:kind"].is_object(), "{owned}");
    world.end().await;
}
