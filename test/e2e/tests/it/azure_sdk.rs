//! Microsoft's Python SDKs, unmodified, synchronous and asynchronous, against a region's cloud: through the proxy, under Azure's
//! own host names.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aro_harness::{Process, StoreChoice};
use tokio::process::Command;

use crate::azure_cli::environment;
use crate::clients;

/// The longest that a walk may take.
const DEADLINE: Duration = Duration::from_mins(3);

async fn walk(mode: &str) -> Result<()> {
    let packages = clients::installed("python")?.join("azure");
    let region = Process::start(StoreChoice::Embedded).await?;
    let running = Command::new("python3")
        .arg(clients::directory().join("azure_sdk_walk.py"))
        .arg(mode)
        .envs(environment(&region)?)
        .env("PYTHONPATH", packages)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(DEADLINE, running).await.context("the walk ends")??;
    clients::succeeded(&output, &format!("walk with the {mode} clients"))?;
    ensure!(String::from_utf8_lossy(&output.stdout).ends_with("walk complete\n"), "it went to the end");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_synchronous_sdks_drive_a_customers_resources() -> Result<()> {
    walk("sync").await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_asynchronous_sdks_drive_a_customers_resources() -> Result<()> {
    walk("async").await
}
