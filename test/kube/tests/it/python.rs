//! The official Python client, unmodified.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use crate::support::{cache, kubeconfig, region};

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_walks_through_everything_it_offers() -> Result<()> {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients");
    let output = Command::new(clients.join("setup.sh")).arg("python").output().await?;
    ensure!(output.status.success(), "install: {}", String::from_utf8_lossy(&output.stderr));
    let packages = cache().context("a cache")?.join("clients").join("kubernetes");
    let region = region(&["one", "two"]).await?;
    let output = Command::new("python3")
        .arg(clients.join("kube_walk.py"))
        .arg(kubeconfig(&region))
        .arg("two")
        .env("PYTHONPATH", packages)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .kill_on_drop(true)
        .output()
        .await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    ensure!(
        output.status.success() && out.ends_with("walk complete\n"),
        "{out}\n{err}\n{}",
        region.log_text()
    );
    Ok(())
}
