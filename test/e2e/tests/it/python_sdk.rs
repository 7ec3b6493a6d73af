//! The official Python SDK, unmodified, both the released and the preview version.

use anyhow::{Result, ensure};
use aro_arm::hcp::version::ApiVersion;
use aro_fixtures::{Names, cluster_body, external_auth_body, node_pool_body};
use aro_harness::Stack;
use serde_json::json;
use tokio::process::Command;

use crate::clients;
use crate::credentials::{ADMIN, certificate_request};

async fn walk(package: &str, version: ApiVersion) -> Result<()> {
    let packages = clients::installed("python")?.join(package);
    let mut stack = Stack::start().await?;
    let names = Names { group: "rg-sdk".to_owned(), ..Names::default() };
    stack.arm().register(&names.subscription).await?;
    stack.run_backend()?;
    let directory = tempfile::tempdir()?;
    let bodies = directory.path().join("bodies.json");
    let content = json!({
        "cluster": cluster_body(&names, "sdk-cluster", version),
        "nodePool": node_pool_body(version),
        "externalAuth": external_auth_body(version),
        "certificateSigningRequest": certificate_request(ADMIN)?,
    });
    std::fs::write(&bodies, content.to_string())?;
    let output = Command::new("python3")
        .arg(clients::directory().join("sdk_walk.py"))
        .args([&stack.base_url(), &names.subscription])
        .arg(&bodies)
        .env("PYTHONPATH", packages)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .kill_on_drop(true)
        .output()
        .await?;
    clients::succeeded(&output, "walk with the SDK")?;
    ensure!(String::from_utf8_lossy(&output.stdout).ends_with("walk complete\n"), "it went to the end");
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_released_sdk_drives_all_three_resources() -> Result<()> {
    walk("sdk-ga", ApiVersion::V2026_10_01).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_preview_sdk_drives_all_three_resources() -> Result<()> {
    walk("sdk-preview", ApiVersion::V2026_09_01Preview).await
}
