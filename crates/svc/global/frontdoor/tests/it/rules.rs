use anyhow::Result;
use http::{Method, StatusCode};

use crate::support::{Behaviour, CONFIGURATION, Fixture, KEYS};

#[tokio::test]
async fn the_two_documents_are_served_as_json() -> Result<()> {
    let door = Fixture::start(|config| config).await?;
    door.set(CONFIGURATION, Behaviour::Serve(br#"{"issuer":"x"}"#.to_vec()));
    door.set(KEYS, Behaviour::Serve(br#"{"keys":[]}"#.to_vec()));
    for (path, body) in [(CONFIGURATION, r#"{"issuer":"x"}"#), (KEYS, r#"{"keys":[]}"#)] {
        let response = door.get(path).await?;
        assert_eq!((response.status(), response.body().as_ref()), (StatusCode::OK, body.as_bytes()));
        assert_eq!(response.headers()["content-type"], "application/json");
        assert_eq!(response.headers()["x-cache"], "TCP_MISS");
        let head = door.request(Method::HEAD, path).await?;
        assert_eq!((head.status(), head.body().len()), (StatusCode::OK, 0));
        assert_eq!(head.headers()["content-length"], body.len().to_string());
    }
    assert_eq!(door.origin.seen.lock()[0], format!("/$web{CONFIGURATION} account.example.com"));
    Ok(())
}

#[tokio::test]
async fn everything_else_is_refused_and_never_reaches_the_origin() -> Result<()> {
    let door = Fixture::start(|config| config).await?;
    for path in [
        "/",
        "/index.html",
        "/33e0/2abc/.well-known/other",
        "/33e0/..%2f/openid/v1/jwks",
        "/33e0/2ABC/openid/v1/jwks",
    ] {
        let response = door.get(path).await?;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(door.get(&format!("{KEYS}?x=1")).await?.status(), StatusCode::FORBIDDEN);
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
        assert_eq!(door.request(method, KEYS).await?.status(), StatusCode::FORBIDDEN);
    }
    assert_eq!(door.origin.count(), 0);
    let metrics = door.metrics.encode();
    assert!(metrics.contains(r#"frontdoor_requests_total{outcome="blocked"} 10"#), "{metrics}");
    Ok(())
}

#[tokio::test]
async fn failures_of_the_origin_are_gateway_errors_without_its_text() -> Result<()> {
    let door = Fixture::start(|config| aro_frontdoor::FrontdoorConfig {
        origin_timeout: aro_runtime::Period::millis(200),
        ..config
    })
    .await?;
    for (behaviour, expected) in [
        (Behaviour::Status(StatusCode::INTERNAL_SERVER_ERROR), StatusCode::BAD_GATEWAY),
        (Behaviour::Status(StatusCode::FOUND), StatusCode::BAD_GATEWAY),
        (Behaviour::Status(StatusCode::NOT_FOUND), StatusCode::NOT_FOUND),
        (Behaviour::Status(StatusCode::FORBIDDEN), StatusCode::NOT_FOUND),
        (Behaviour::Serve(b"<html>".to_vec()), StatusCode::BAD_GATEWAY),
        (Behaviour::Serve(vec![b' '; 1024 * 1024 + 1]), StatusCode::BAD_GATEWAY),
        (Behaviour::Never, StatusCode::GATEWAY_TIMEOUT),
    ] {
        door.set(KEYS, behaviour);
        let response = door.get(KEYS).await?;
        assert_eq!(response.status(), expected);
        assert!(!String::from_utf8_lossy(response.body()).contains("internal"));
        assert_eq!(response.headers()["cache-control"], "no-store");
    }
    Ok(())
}
