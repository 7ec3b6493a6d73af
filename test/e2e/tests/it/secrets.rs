//! No secret in a log.

use anyhow::{Context, Result};
use aro_arm::hcp::version::ApiVersion;
use aro_fixtures::{Names, cluster_body};
use aro_harness::{Process, StoreChoice};
use serde_json::json;

use crate::support::at;

#[tokio::test(flavor = "multi_thread")]
async fn bodies_query_strings_and_credentials_never_reach_the_log() -> Result<()> {
    let mut process = Process::start_with(StoreChoice::Embedded, &[("telemetry.log", "trace")]).await?;
    let (arm, names) = (process.arm()?, Names::default());
    let arm =
        arm.with("authorization", "Bearer marker-token").with("x-ms-arm-signed-user-token", "marker-signed");
    arm.register(&names.subscription).await?;
    let mut body = cluster_body(&names, "c1", ApiVersion::V2026_10_01);
    body["tags"] = json!({"marker-tag": "marker-value"});
    let path = format!("{}&sig=marker-query", at(&names.cluster("c1"), ApiVersion::V2026_10_01));
    arm.put(&path, &body).await?.expect(201)?;
    arm.get(&path).await?.expect(200)?;
    let ask = at(&format!("{}/requestAdminCredential", names.cluster("c1")), ApiVersion::V2026_10_01);
    arm.post(&ask, Some(&json!({"certificateSigningRequest": "marker-csr"}))).await?.expect(400)?;
    let status = process.interrupt()?;
    assert!(status.success(), "a clean stop");
    let log = process.log_text();
    let line =
        log.lines().find(|line| line.contains("hcpOpenShiftClusters/c1")).context("requests are logged")?;
    assert!(!line.is_empty());
    for marker in ["marker-token", "marker-signed", "marker-value", "marker-query", "marker-csr"] {
        let leak = log.lines().find(|line| line.contains(marker));
        assert!(leak.is_none(), "{marker} leaked: {}", leak.unwrap_or_default());
    }
    Ok(())
}
