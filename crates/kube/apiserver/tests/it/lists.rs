//! Lists and watches: their options, their items, and how far back they reach.

use std::sync::Arc;
use std::time::Duration;

use aro_kube_apiserver::ClusterService;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::support::{Caller, World, body_limits};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEADLINE: Duration = Duration::from_secs(20);

async fn make(world: &World, count: usize) {
    for number in 0..count {
        let map = json!({"metadata": {"name": format!("m{number:03}"), "labels": {"odd": (number % 2).to_string()}}});
        world.done(&Caller::admin(), "POST", MAPS, &map).await;
    }
}

/// The code of a watch, and the first line of it.
async fn first_line(world: &World, path: &str) -> (u16, Value) {
    let peer = Caller::admin().user.map(Arc::new);
    let service =
        ClusterService { cluster: world.cluster.clone(), peer, body: body_limits(1 << 20), observer: None };
    let request = Request::get(path).body(Full::<Bytes>::default()).unwrap();
    let answer = service.oneshot(request).await.unwrap();
    let code = answer.status().as_u16();
    let mut body = answer.into_body();
    let mut read = Vec::new();
    while !read.contains(&b'\n') {
        let frame = tokio::time::timeout(DEADLINE, body.frame()).await.expect("a line in time");
        let Some(frame) = frame else { break };
        read.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    let line = read.split(|byte| *byte == b'\n').next().unwrap_or_default();
    (code, serde_json::from_slice(line).unwrap_or(Value::Null))
}

#[tokio::test]
async fn watch_that_asks_for_more_time_than_there_is_does_not_panic() {
    let world = World::new().await;
    make(&world, 1).await;
    for seconds in ["18446744073709551615", "9223372036854775807", "-1", "0", "-9999999999999999999999"] {
        let path = format!("{MAPS}?watch=1&timeoutSeconds={seconds}");
        let (code, line) = first_line(&world, &path).await;
        assert_eq!((code, line["type"].as_str()), (200, Some("ADDED")), "{seconds}: {line}");
    }
    world.end().await;
}

#[tokio::test]
async fn negative_limit_is_ignored() {
    let world = World::new().await;
    make(&world, 3).await;
    let list = world.done(&Caller::admin(), "GET", &format!("{MAPS}?limit=-1"), &Value::Null).await;
    // Beside ours there is the root certificate's.
    assert!(list["items"].as_array().unwrap().len() >= 3, "{list}");
    assert!(list["metadata"].get("continue").is_none(), "{list}");
    world.end().await;
}

#[tokio::test]
async fn items_of_typed_lists_have_no_type_and_custom_ones_do() {
    let world = World::new().await;
    let admin = Caller::admin();
    make(&world, 2).await;
    let list = world.done(&admin, "GET", MAPS, &Value::Null).await;
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("ConfigMapList"), &json!("v1")));
    let untyped = |item: &Value| item.get("kind").is_none() && item.get("apiVersion").is_none();
    let items = list["items"].as_array().unwrap();
    assert!(items.iter().all(|item| untyped(item) && item["metadata"]["name"].is_string()), "{list}");
    let one = world.done(&admin, "GET", &format!("{MAPS}/m000"), &Value::Null).await;
    assert_eq!((&one["kind"], &one["apiVersion"]), (&json!("ConfigMap"), &json!("v1")), "one alone has it");
    let deleted = world.done(&admin, "DELETE", &format!("{MAPS}?labelSelector=odd=0"), &Value::Null).await;
    assert!(deleted["items"].as_array().unwrap().iter().all(untyped), "{deleted}");
    let table = admin.clone().header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = world.done(&table, "GET", MAPS, &Value::Null).await;
    assert_eq!(table["kind"], "Table");
    let partial = &table["rows"][0]["object"];
    assert_eq!(partial["kind"], "PartialObjectMetadata", "{partial}");

    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "cows.farm.test"},
        "spec": {"group": "farm.test", "scope": "Namespaced",
            "names": {"plural": "cows", "singular": "cow", "kind": "Cow", "listKind": "CowList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    world.done(&admin, "POST", definitions, &definition).await;
    let served = |crd: &Value| {
        let conditions = crd["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|one| one["type"] == "Established" && one["status"] == "True")
    };
    world.until(&format!("{definitions}/cows.farm.test"), "established", served).await;
    let cows = "/apis/farm.test/v1/namespaces/default/cows";
    let cow = json!({"apiVersion": "farm.test/v1", "kind": "Cow", "metadata": {"name": "elsa"}});
    world.done(&admin, "POST", cows, &cow).await;
    let list = world.done(&admin, "GET", cows, &Value::Null).await;
    assert_eq!(
        (&list["items"][0]["kind"], &list["items"][0]["apiVersion"]),
        (&json!("Cow"), &json!("farm.test/v1"))
    );
    world.end().await;
}

#[tokio::test]
async fn pages_show_one_version_and_count_what_remains() {
    let world = World::new().await;
    let admin = Caller::admin();
    make(&world, 7).await;
    let whole = world.done(&admin, "GET", MAPS, &Value::Null).await;
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap();
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let total = names(&whole).len();
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let path = format!("{MAPS}?limit=3&continue={token}");
        let page = world.done(&admin, "GET", &path, &Value::Null).await;
        seen.extend(names(&page));
        match page["metadata"]["continue"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
        assert_eq!(page["metadata"]["remainingItemCount"], total - seen.len(), "{page}");
        // What happens meanwhile is not seen.
        let name = format!("z{}", seen.len());
        world.done(&admin, "POST", MAPS, &json!({"metadata": {"name": name}})).await;
        if seen.len() == 3 {
            world.done(&admin, "DELETE", &format!("{MAPS}/m005"), &Value::Null).await;
        }
    }
    assert_eq!(seen, names(&whole));
    let selected =
        world.done(&admin, "GET", &format!("{MAPS}?limit=1&labelSelector=odd"), &Value::Null).await;
    assert!(selected["metadata"]["continue"].is_string(), "{selected}");
    assert!(
        selected["metadata"].get("remainingItemCount").is_none(),
        "a selection is not counted: {selected}"
    );
    world.end().await;
}

#[tokio::test]
async fn watch_from_before_the_history_gets_410() {
    let world = World::with_history(5).await;
    make(&world, 200).await;
    let (code, line) = first_line(&world, &format!("{MAPS}?watch=1&resourceVersion=1")).await;
    assert_eq!((code, line["type"].as_str()), (200, Some("ERROR")), "{line}");
    let status = &line["object"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")), "{status}");
    let message = status["message"].as_str().unwrap();
    assert!(message.starts_with("too old resource version: 1 ("), "{message}");
    world.end().await;
}

#[tokio::test]
async fn watch_with_a_selector_sends_its_initial_events_and_its_head_at_once() {
    let world = World::new().await;
    make(&world, 600).await;
    let (code, line) = first_line(&world, &format!("{MAPS}?watch=1&fieldSelector=metadata.name=m599")).await;
    assert_eq!((code, &line["object"]["metadata"]["name"]), (200, &json!("m599")), "{line}");
    world.end().await;
}
