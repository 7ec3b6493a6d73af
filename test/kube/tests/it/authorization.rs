//! Every route of discovery as every kind of caller, against answers of a real API server that are checked in.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aro_kube_e2e::client::Client;
use aro_kube_e2e::inside;
use aro_kube_e2e::matrix::{differences, table};
use aro_kube_e2e::real::{Real, binaries};
use aro_runtime::Scope;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/authorization.txt");

#[allow(clippy::disallowed_methods, reason = "asks to rewrite golden files; tests have no configuration")]
fn rewrites() -> bool {
    std::env::var("ARO_GOLDEN").is_ok_and(|mode| mode == "update")
}

fn compare(found: &str) -> Result<()> {
    let expected = std::fs::read_to_string(TABLE).context("the table")?;
    let differing = differences(&expected, found);
    ensure!(
        differing.is_empty(),
        "{} routes differ from {TABLE}; run the tests with ARO_GOLDEN=update where a real server can be built, and review the difference:\n{}",
        differing.len(),
        differing.join("\n")
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_caller_reaches_a_route_that_a_real_api_server_refuses_and_none_is_unlisted() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let scope = Scope::root("matrix");
    inside::start(dir.path(), &scope).await?;
    let path = Path::new("kubeconfig").join(format!("{}.yaml", inside::CLUSTER));
    let client = Client::of_kubeconfig(&std::fs::read_to_string(dir.path().join(path))?)?;
    let found = table(&client).await?;
    scope.close(Duration::from_secs(10)).await?;
    compare(&found)
}

#[tokio::test(flavor = "multi_thread")]
async fn table_of_authorization_is_what_a_real_api_server_answers() -> Result<()> {
    let Some(binaries) = tokio::task::spawn_blocking(binaries).await?? else {
        aro_prerequisites::skip(
            "no Go toolchain: the table of authorization is not compared with a real server",
        );
        return Ok(());
    };
    let real = Real::start(&binaries).await?;
    let found = table(&real.client).await?;
    if rewrites() {
        std::fs::write(TABLE, &found)?;
    }
    compare(&found)
}
