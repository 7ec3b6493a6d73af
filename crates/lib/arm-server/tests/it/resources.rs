//! Resources, lists and long-running operations of the scratch provider.

use aro_arm::operation::{OperationError, ProvisioningState};
use serde_json::json;

use crate::farm::{Server, at, farm_path, request};

#[tokio::test]
async fn a_resource_is_stored_under_its_canonical_id_and_found_in_any_case() {
    let server = Server::start();
    let created = server.put(&at(&farm_path("North")), &json!({"harvests": 2})).await;
    assert_eq!((created.status, created.header("etag")), (201, "\"1\""), "{created:?}");
    assert_eq!(created.body["id"], farm_path("North"));
    let found = server.get(&at(&farm_path("NORTH").to_uppercase())).await;
    assert_eq!((found.status, &found.body["harvests"]), (200, &json!(2)), "{found:?}");
    let old = server.get(&format!("{}?api-version=2024-01-01-preview", farm_path("north"))).await;
    assert_eq!((old.status, old.body.get("harvests")), (200, None), "{old:?}");
}

#[tokio::test]
async fn a_child_has_its_own_api_versions_and_needs_no_subscription_state() {
    let server = Server::start();
    let field = format!("{}/fields/West", farm_path("north")).replace("0001", "0009");
    let created = server.put(&at(&field), &json!({})).await;
    assert_eq!((created.status, &created.body["id"]), (201, &json!(field)));
    let refused = server.get(&format!("{field}?api-version=2024-01-01-preview")).await;
    assert_eq!((refused.status, refused.code()), (400, "InvalidResourceType"));
    let message = refused.body["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("'farms/fields'") && message.contains("'2025-01-01'"), "{message}");
}

#[tokio::test]
async fn preconditions_guard_writes_and_save_reads() {
    let server = Server::start();
    let path = at(&farm_path("north"));
    let put = |header: &'static str, value: &'static str| {
        let request = request("PUT", &path).header("content-type", "application/json").header(header, value);
        server.send(request, "{}")
    };
    assert_eq!(put("if-match", "*").await.status, 412);
    assert_eq!(put("if-none-match", "*").await.status, 201);
    assert_eq!(put("if-none-match", "*").await.status, 412);
    assert_eq!(put("if-match", "\"1\"").await.status, 200);
    let unmodified = server.send(request("GET", &path).header("if-none-match", "\"2\""), "").await;
    assert_eq!((unmodified.status, unmodified.header("etag")), (304, "\"2\""));
}

#[tokio::test]
async fn a_list_is_walked_by_its_links() {
    let server = Server::start();
    for name in ["a", "b", "c", "d", "e"] {
        server.put(&at(&farm_path(name)), &json!({"name": name})).await;
    }
    let (list, _) =
        farm_path("").rsplit_once('/').map(|(list, rest)| (list.to_owned(), rest.to_owned())).unwrap();
    let mut next = format!("{}&$top=2", at(&list));
    let mut names = Vec::new();
    loop {
        let page = server.get(&next).await;
        assert_eq!(page.status, 200, "{page:?}");
        let value = page.body["value"].as_array().cloned().unwrap();
        assert!(value.len() <= 2);
        names.extend(value.iter().map(|item| item["name"].as_str().unwrap_or_default().to_owned()));
        let Some(link) = page.body.get("nextLink").and_then(serde_json::Value::as_str) else { break };
        next = link.strip_prefix("http://farm.test").unwrap().to_owned();
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    assert_eq!(server.get(&format!("{}&$top=none", at(&list))).await.code(), "InvalidParameter");
}

#[tokio::test]
async fn a_long_running_operation_is_followed_by_its_headers() {
    let server = Server::start();
    let path = at(&farm_path("north"));
    server.put(&path, &json!({})).await;
    let accepted = server.send(request("DELETE", &path), "").await;
    assert_eq!((accepted.status, accepted.header("retry-after")), (202, "1"), "{accepted:?}");
    let link = |name: &str| accepted.header(name).strip_prefix("http://farm.test").unwrap().to_owned();
    let (status, result) = (link("azure-asyncoperation"), link("location"));

    let running = server.get(&status).await;
    assert_eq!((running.status, running.header("retry-after")), (200, "1"));
    assert_eq!(running.body["status"], "Deleting");
    let pending = server.get(&result).await;
    assert_eq!((pending.status, pending.header("location")), (202, accepted.header("location")));

    let finish = |state, error| {
        let mut deletions = server.farm.deletions.lock().unwrap();
        let deletion = deletions.get_mut("op1").unwrap();
        (deletion.state, deletion.error) = (state, error);
    };
    finish(ProvisioningState::Succeeded, None);
    let ended = server.get(&status).await;
    assert_eq!((&ended.body["status"], ended.header("retry-after")), (&json!("Succeeded"), ""));
    assert!(ended.body["endTime"].is_string(), "{ended:?}");
    assert_eq!(server.get(&result).await.status, 204);

    let error = OperationError {
        code: "Conflict".to_owned(),
        message: "the cows are out".to_owned(),
        target: None,
        details: Vec::new(),
    };
    finish(ProvisioningState::Failed, Some(error));
    let failed = server.get(&result).await;
    assert_eq!((failed.status, failed.code()), (409, "Conflict"));
    assert_eq!(server.get(&status.replace("op1", "op2")).await.status, 404);
}
