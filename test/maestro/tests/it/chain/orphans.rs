//! Orphans: a late spec brought a work back, and the server that received its status was killed. The test acts as a server
//! of which only the late spec is left.

use anyhow::{Result, ensure};
use aro_bundle::{Action, BundleStatus, Event};
use aro_fixtures::wait;
use aro_harness::Process;
use aro_maestro_e2e::chain::{BrokerClient, BrokerKind, Chain, Cluster, config_map, spec};

const NAMESPACE: &str = "default";

/// A chain with one bundle.
async fn chain() -> Result<Option<(Chain, Cluster, Process, String)>> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(None) };
    let cluster = Cluster::start("c1").await?;
    let agent = chain.agent("c1", &cluster).await?;
    let wanted = spec(vec![config_map(NAMESPACE, "wanted", "a")]);
    let id = chain.source("src", 0)?.create("c1", "wanted", &wanted).await?;
    chain.settled(&id, 1).await?;
    Ok(Some((chain, cluster, agent, id)))
}

/// Kills the server, and publishes a spec that no server knows. The test receives its status.
async fn haunted(chain: &mut Chain, cluster: &Cluster) -> Result<()> {
    let source = chain.source("src", 0)?;
    chain.servers[0].kill()?;
    let broker_client = BrokerClient::of_server(&chain.pki, &chain.broker.address().to_string()).await?;
    let data = spec(vec![config_map(NAMESPACE, "ghost", "a")]);
    let mut event = source.event(Action::Create, "c1", "ghost", 1, Some(&data))?;
    "maestro".clone_into(&mut event.source);
    event.metadata = None;
    broker_client.publish_as_server("c1", &event).await?;
    let applied = |received: &Event| {
        received.resource_id == event.resource_id
            && received.payload::<BundleStatus>().is_ok_and(|status| !status.conditions.is_empty())
    };
    broker_client.wait_for("that it is applied", applied).await?;
    ensure!(cluster.config_map(NAMESPACE, "ghost").await?.is_some());
    Ok(())
}

/// Waits until only the orphan is deleted.
async fn wait_until_deleted(chain: &Chain, cluster: &Cluster, wanted: &str) -> Result<()> {
    wait::until("the deletion of the orphan", || async {
        Ok(cluster.config_map(NAMESPACE, "ghost").await?.is_none().then_some(()))
    })
    .await?;
    chain.settled(wanted, 1).await?;
    ensure!(cluster.config_map(NAMESPACE, "wanted").await?.is_some());
    chain.all_delivered().await
}

#[tokio::test(flavor = "multi_thread")]
async fn orphan_is_deleted_though_the_server_that_received_its_status_was_killed() -> Result<()> {
    let Some((mut chain, cluster, _agent, wanted)) = chain().await? else { return Ok(()) };
    haunted(&mut chain, &cluster).await?;
    chain.servers[0].start_again().await?;
    wait_until_deleted(&chain, &cluster, &wanted).await
}

#[tokio::test(flavor = "multi_thread")]
async fn work_without_a_record_is_updated_or_deleted() -> Result<()> {
    let Some((mut chain, cluster, mut agent, wanted)) = chain().await? else { return Ok(()) };
    haunted(&mut chain, &cluster).await?;
    // An agent that was killed before it stored any of its works.
    agent.kill()?;
    std::fs::remove_dir_all(agent.data_dir())?;
    chain.servers[0].start_again().await?;
    agent.start_again().await?;
    wait_until_deleted(&chain, &cluster, &wanted).await
}
