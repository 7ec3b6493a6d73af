use std::sync::Arc;

use anyhow::Result;
use aro_frontdoor::FrontdoorConfig;
use aro_runtime::Period;
use http::StatusCode;
use tokio::sync::Notify;

use crate::support::{Behaviour, Fixture, KEYS};

#[tokio::test]
async fn a_document_is_fetched_once_while_it_is_fresh() -> Result<()> {
    let door = Fixture::start(|config| config).await?;
    door.set(KEYS, Behaviour::Serve(b"{}".to_vec()));
    for expected in ["TCP_MISS", "TCP_HIT", "TCP_HIT"] {
        let response = door.get(KEYS).await?;
        assert_eq!(response.headers()["x-cache"], expected);
        assert!(response.headers()["cache-control"].to_str()?.starts_with("public, max-age="));
    }
    assert_eq!(door.origin.count(), 1);
    Ok(())
}

#[tokio::test]
async fn requests_at_the_same_time_cause_one_fetch() -> Result<()> {
    let door = Arc::new(Fixture::start(|config| config).await?);
    let until = Arc::new(Notify::new());
    door.set(KEYS, Behaviour::Held(until.clone(), b"{}".to_vec()));
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let door = door.clone();
        callers.spawn(async move { door.get(KEYS).await.map(|response| response.status()) });
    }
    door.origin.until_asked(1).await?;
    until.notify_one();
    while let Some(status) = callers.join_next().await {
        assert_eq!(status??, StatusCode::OK);
    }
    assert_eq!(door.origin.count(), 1);
    Ok(())
}

#[tokio::test]
async fn a_client_that_leaves_does_not_block_the_others() -> Result<()> {
    let door = Arc::new(Fixture::start(|config| config).await?);
    door.set(KEYS, Behaviour::Never);
    let mut first = tokio::task::JoinSet::new();
    let leaving = door.clone();
    first.spawn(async move { leaving.get(KEYS).await.map(|response| response.status()) });
    door.origin.until_asked(1).await?;
    first.shutdown().await;
    door.set(KEYS, Behaviour::Serve(b"{}".to_vec()));
    assert_eq!(door.get(KEYS).await?.status(), StatusCode::OK);
    Ok(())
}

#[tokio::test]
async fn an_old_document_is_served_while_the_origin_fails_and_not_once_it_is_absent() -> Result<()> {
    let door = Fixture::start(|config| FrontdoorConfig { max_age: Period::millis(0), ..config }).await?;
    door.set(KEYS, Behaviour::Serve(br#"{"keys":[1]}"#.to_vec()));
    assert_eq!(door.get(KEYS).await?.status(), StatusCode::OK);
    door.set(KEYS, Behaviour::Status(StatusCode::SERVICE_UNAVAILABLE));
    let stale = door.get(KEYS).await?;
    assert_eq!((stale.status(), stale.body().as_ref()), (StatusCode::OK, br#"{"keys":[1]}"#.as_slice()));
    let metrics = door.metrics.encode();
    assert!(metrics.contains(r#"frontdoor_requests_total{outcome="stale"} 1"#), "{metrics}");
    door.set(KEYS, Behaviour::Status(StatusCode::NOT_FOUND));
    assert_eq!(door.get(KEYS).await?.status(), StatusCode::NOT_FOUND);
    door.set(KEYS, Behaviour::Status(StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(door.get(KEYS).await?.status(), StatusCode::BAD_GATEWAY, "an absent document is forgotten");
    Ok(())
}

#[tokio::test]
async fn requests_behind_a_hanging_origin_all_end_soon() -> Result<()> {
    let door = Arc::new(
        Fixture::start(|config| FrontdoorConfig { origin_timeout: Period::millis(300), ..config }).await?,
    );
    door.set(KEYS, Behaviour::Never);
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let door = door.clone();
        callers.spawn(async move { door.get(KEYS).await.map(|response| response.status()) });
    }
    // One after another they would take longer than a request of this test may.
    while let Some(status) = callers.join_next().await {
        assert_eq!(status??, StatusCode::GATEWAY_TIMEOUT);
    }
    Ok(())
}
