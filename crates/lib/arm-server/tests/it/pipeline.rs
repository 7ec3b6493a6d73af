//! The stages before a handler, and what surrounds it.

use serde_json::json;

use crate::farm::{SUBSCRIPTION, SUSPENDED, Server, at, farm_path, request};

#[tokio::test]
async fn every_stage_refuses_with_its_own_error() {
    let server = Server::start();
    let farm = farm_path("north");
    let cases = [
        ("GET", "/nowhere".to_owned(), 404, "NotFound"),
        ("GET", "/subscriptions/%FF".to_owned(), 400, "InvalidResourceName"),
        ("PATCH", at(&farm), 405, "MethodNotAllowed"),
        ("GET", at(&farm.replace(SUBSCRIPTION, "me")), 400, "InvalidSubscriptionID"),
        ("GET", at(&farm.replace("/rg/", "/r g./").replace(' ', "%20")), 400, "InvalidResourceGroupName"),
        ("GET", farm.clone(), 400, "InvalidParameter"),
        ("GET", format!("{farm}?api-version=1999-01-01"), 400, "InvalidResourceType"),
        ("GET", at(&farm.replace("0001", "0003")), 400, "InvalidSubscriptionState"),
        ("PUT", at(&farm.replace(SUBSCRIPTION, SUSPENDED)), 409, "InvalidSubscriptionState"),
        ("GET", at(&farm), 404, "ResourceNotFound"),
    ];
    for (method, path, status, code) in cases {
        let reply = server.send(request(method, &path), "").await;
        assert_eq!((reply.status, reply.code()), (status, code), "{method} {path}: {reply:?}");
        assert_eq!(reply.header("x-ms-error-code"), code, "{method} {path}");
        assert!(!reply.header("x-ms-request-id").is_empty(), "{method} {path}");
    }
    let refused = server.send(request("PATCH", &at(&farm)), "").await;
    assert_eq!(refused.header("allow"), "GET, PUT, DELETE");
}

#[tokio::test]
async fn bodies_have_a_limit_and_a_media_type() {
    let server = Server::start();
    let path = at(&farm_path("north"));
    let large = server.put(&path, &json!({"text": "x".repeat(2000)})).await;
    assert_eq!((large.status, large.code()), (400, "InvalidResource"));
    let text = server.send(request("PUT", &path).header("content-type", "text/plain"), "{}").await;
    assert_eq!((text.status, text.code()), (415, "UnsupportedMediaType"));
    let broken = request("PUT", &path).header("content-type", "application/json; charset=utf-8");
    let broken = server.send(broken, "{").await;
    assert_eq!((broken.status, broken.code()), (400, "InvalidRequestContent"));
}

#[tokio::test]
async fn a_panic_is_an_internal_error_and_the_server_goes_on() {
    let server = Server::start();
    let collapse = at(&format!("{}/collapse", farm_path("north")));
    let reply = server.send(request("POST", &collapse), "").await;
    assert_eq!((reply.status, reply.code()), (500, "InternalServerError"), "{reply:?}");
    assert!(!reply.body.to_string().contains("barn"), "{reply:?}");
    let text = server.metrics.encode();
    assert!(text.contains("farm_http_request_panics_total{"), "{text}");
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn metrics_are_labelled_by_pattern_and_never_by_what_a_caller_wrote() {
    let server = Server::start();
    server.get(&at(&farm_path("secret-name"))).await;
    server.get("/secret-path").await;
    let text = server.metrics.encode();
    assert!(!text.contains("secret"), "{text}");
    assert!(text.contains("/providers/contoso.farm/farms/{farm}"), "{text}");
    assert!(text.contains("route=\"unmatched\""), "{text}");
    assert!(text.contains("api_version=\"2025-01-01\""), "{text}");
}

#[tokio::test]
async fn a_client_gets_its_own_id_back_when_it_asks_for_it() {
    let server = Server::start();
    let path = at(&farm_path("north"));
    let with = |return_it: &'static str| {
        let request = request("GET", &path)
            .header("x-ms-client-request-id", "mine")
            .header("x-ms-return-client-request-id", return_it);
        server.send(request, "")
    };
    assert_eq!(with("true").await.header("x-ms-client-request-id"), "mine");
    assert_eq!(with("false").await.header("x-ms-client-request-id"), "");
}
