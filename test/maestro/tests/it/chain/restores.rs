//! The server restarts with another store: an older one, or the wrong one for a while. And late events at the agent.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use aro_fixtures::wait;
use aro_harness::Process;
use aro_maestro_e2e::chain::{BrokerKind, Chain, Cluster, config_map, feedback, metric, spec};
use kube::api::DeleteParams;
use serde_json::json;
use tempfile::TempDir;

const NAMESPACE: &str = "default";

fn wanted(value: &str) -> serde_json::Value {
    spec(vec![config_map(NAMESPACE, "one", value)])
}

/// A chain, its cluster, its agent, and a settled bundle of version 1.
async fn chain() -> Result<Option<(Chain, Cluster, Process, String)>> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(None) };
    let cluster = Cluster::start("c1").await?;
    let agent = chain.agent("c1", &cluster).await?;
    let id = chain.source("src", 0)?.create("c1", "work", &wanted("a")).await?;
    chain.settled(&id, 1).await?;
    Ok(Some((chain, cluster, agent, id)))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let done = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    ensure!(done.success(), "copy {}", from.display());
    Ok(())
}

async fn is_there(cluster: &Cluster, value: Option<&str>) -> Result<()> {
    wait::until("the object to be as it is wanted", || async {
        let found = cluster.config_map(NAMESPACE, "one").await?;
        Ok((found.as_ref().and_then(|data| data["value"].as_str()) == value).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn server_on_an_older_store_raises_versions_above_its_agents() -> Result<()> {
    let Some((mut chain, cluster, _agent, id)) = chain().await? else { return Ok(()) };
    let backup = tempfile::tempdir()?;
    let (data, kept) = (chain.servers[0].data_dir(), backup.path().join("data"));
    ensure!(chain.servers[0].interrupt()?.success());
    copy(&data, &kept)?;
    chain.servers[0].start_again().await?;
    let source = chain.source("src", 0)?;
    source.update("c1", "work", 1, &wanted("b")).await?;
    source.update("c1", "work", 2, &wanted("c")).await?;
    chain.settled(&id, 3).await?;

    chain.servers[0].kill()?;
    std::fs::remove_dir_all(&data)?;
    copy(&kept, &data)?;
    chain.servers[0].start_again().await?;
    chain
        .settled(&id, 4)
        .await
        .context("what the store knows is wanted, and newer than what the agent has")?;
    is_there(&cluster, Some("a")).await?;
    chain.source("src", 0)?.update("c1", "work", 4, &wanted("d")).await?;
    chain.settled(&id, 5).await?;
    chain.all_delivered().await
}

/// Restarts the server on an empty store. Returns the directory with its own one.
async fn start_empty(chain: &mut Chain) -> Result<TempDir> {
    let elsewhere = tempfile::tempdir()?;
    let data = chain.servers[0].data_dir();
    ensure!(chain.servers[0].interrupt()?.success());
    copy(&data, &elsewhere.path().join("data"))?;
    std::fs::remove_dir_all(&data)?;
    chain.servers[0].start_again().await?;
    Ok(elsewhere)
}

async fn start_as_it_was(chain: &mut Chain, elsewhere: TempDir) -> Result<()> {
    let data = chain.servers[0].data_dir();
    chain.servers[0].kill()?;
    std::fs::remove_dir_all(&data)?;
    copy(&elsewhere.path().join("data"), &data)?;
    chain.servers[0].start_again().await
}

async fn wait_for_log(process: &Process, text: &str) -> Result<()> {
    wait::until(text, || async { Ok(process.log_text().contains(text).then_some(())) }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn server_on_an_empty_store_deletes_nothing() -> Result<()> {
    let Some((mut chain, cluster, mut agent, id)) = chain().await? else { return Ok(()) };
    let elsewhere = start_empty(&mut chain).await?;
    wait_for_log(&chain.servers[0], "deletion blocked").await?;
    let disputed = async |chain: &Chain, count: u64| {
        wait::until("the metric of disputes", || async {
            let shown = metric(&chain.servers[0], "maestro_consumers_disputed", "").await?;
            Ok((shown == count).then_some(()))
        })
        .await
    };
    disputed(&chain, 1).await?;
    // Neither the agent's list nor its reports cause a deletion.
    ensure!(agent.interrupt()?.success());
    agent.start_again().await?;
    cluster.turn(NAMESPACE, "one", "reported").await?;
    wait::until("the report", || async {
        Ok((metric(&chain.servers[0], "maestro_statuses_total", "unknown").await? > 0).then_some(()))
    })
    .await?;
    let maps = cluster.api("v1", "ConfigMap", Some(NAMESPACE));
    maps.delete("one", &DeleteParams::default()).await?;
    is_there(&cluster, Some("a")).await.context("the agent goes on with what it has")?;
    // Nor do sources that create their bundles again one by one.
    let source = chain.source("src", 0)?;
    let other = source.create("c1", "other", &spec(vec![config_map(NAMESPACE, "other", "x")])).await?;
    chain.settled(&other, 1).await?;
    ensure!(agent.interrupt()?.success());
    agent.start_again().await?;
    cluster.turn(NAMESPACE, "other", "again").await?;
    chain.until(&other, "the report", |bundle| feedback(bundle, 0, "turn") == Some("again")).await?;
    is_there(&cluster, Some("a")).await?;
    ensure!(!agent.log_text().contains("deleting a work"), "{}", agent.log_text());

    start_as_it_was(&mut chain, elsewhere).await?;
    disputed(&chain, 0).await?;
    chain.settled(&id, 1).await?;
    chain.source("src", 0)?.update("c1", "work", 1, &wanted("b")).await?;
    chain.settled(&id, 2).await?;
    is_there(&cluster, Some("b")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn works_deleted_with_the_wrong_store_are_restored_with_the_right_one() -> Result<()> {
    let Some((mut chain, cluster, mut agent, id)) = chain().await? else { return Ok(()) };
    let elsewhere = start_empty(&mut chain).await?;
    wait_for_log(&chain.servers[0], "deletion blocked").await?;
    // The operator allows the deletion without checking the store.
    ensure!(agent.interrupt()?.success());
    let found = chain.rest(0)?.get("/api/maestro/v1/consumers").await?.expect(200)?;
    let consumer = found.json()["items"][0]["id"].as_str().context("an id")?.to_owned();
    let trust = format!("/api/aro/maestro/v1/consumers/{consumer}/trust");
    chain.rest(0)?.post(&trust, None).await?.expect(200)?;
    agent.start_again().await?;
    is_there(&cluster, None).await.context("this store does not want it")?;
    wait_for_log(&chain.servers[0], "deletion published").await.context("the server logs the deletion")?;
    wait_for_log(&agent, "deleting a work").await.context("the agent logs the deletion")?;

    start_as_it_was(&mut chain, elsewhere).await?;
    is_there(&cluster, Some("a")).await.context("the server says it is delivered, the agent knows better")?;
    chain.settled(&id, 1).await?;
    chain.all_delivered().await
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_option_received_only_with_the_deletion_is_honoured() -> Result<()> {
    let Some((chain, cluster, mut agent, id)) = chain().await? else { return Ok(()) };
    let source = chain.source("src", 0)?;
    agent.kill()?;
    let mut orphaned = wanted("a");
    orphaned["deleteOption"] = json!({"propagationPolicy": "Orphan"});
    source.update("c1", "work", 1, &orphaned).await?;
    source.delete("c1", "work").await?;
    agent.start_again().await?;
    chain.gone(&id).await?;
    ensure!(cluster.config_map(NAMESPACE, "one").await?.is_some(), "its source let it go, not away");
    Ok(())
}
