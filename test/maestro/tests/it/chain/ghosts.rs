//! What is on a cluster though nobody wants it any more: a spec that came late brought it back, and those who knew were
//! killed. The test stands in for a server of which only the late spec is left.

use anyhow::{Result, ensure};
use aro_bundle::{Action, BundleStatus, Event};
use aro_fixtures::wait;
use aro_harness::Process;
use aro_maestro_e2e::chain::{BrokerKind, Chain, Cluster, Ear, config_map, spec};

const NAMESPACE: &str = "default";

/// A chain with a bundle that is wanted.
async fn chain() -> Result<Option<(Chain, Cluster, Process, String)>> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(None) };
    let cluster = Cluster::start("c1").await?;
    let agent = chain.agent("c1", &cluster).await?;
    let wanted = spec(vec![config_map(NAMESPACE, "wanted", "a")]);
    let id = chain.source("src", 0)?.create("c1", "wanted", &wanted).await?;
    chain.settled(&id, 1).await?;
    Ok(Some((chain, cluster, agent, id)))
}

/// The server is killed, and the agent is told of a bundle that no server knows. Its status is heard, by the test.
async fn haunted(chain: &mut Chain, cluster: &Cluster) -> Result<()> {
    let source = chain.source("src", 0)?;
    chain.servers[0].kill()?;
    let ear = Ear::of_server(&chain.pki, &chain.broker.address().to_string()).await?;
    let data = spec(vec![config_map(NAMESPACE, "ghost", "a")]);
    let mut event = source.event(Action::Create, "c1", "ghost", 1, Some(&data))?;
    "maestro".clone_into(&mut event.source);
    event.metadata = None;
    ear.tell("c1", &event).await?;
    let applied = |heard: &Event| {
        heard.resource_id == event.resource_id
            && heard.payload::<BundleStatus>().is_ok_and(|status| !status.conditions.is_empty())
    };
    ear.hears("that it is applied", applied).await?;
    ensure!(cluster.config_map(NAMESPACE, "ghost").await?.is_some());
    Ok(())
}

/// Only the one is gone.
async fn haunted_no_more(chain: &Chain, cluster: &Cluster, wanted: &str) -> Result<()> {
    wait::until("the end of what nobody wants", || async {
        Ok(cluster.config_map(NAMESPACE, "ghost").await?.is_none().then_some(()))
    })
    .await?;
    chain.settled(wanted, 1).await?;
    ensure!(cluster.config_map(NAMESPACE, "wanted").await?.is_some());
    chain.all_delivered().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_wants_goes_though_the_server_that_heard_of_it_was_killed() -> Result<()> {
    let Some((mut chain, cluster, _agent, wanted)) = chain().await? else { return Ok(()) };
    haunted(&mut chain, &cluster).await?;
    chain.servers[0].start_again().await?;
    haunted_no_more(&chain, &cluster, &wanted).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_cluster_remembers_is_brought_up_to_date_or_goes() -> Result<()> {
    let Some((mut chain, cluster, mut agent, wanted)) = chain().await? else { return Ok(()) };
    haunted(&mut chain, &cluster).await?;
    // An agent that was killed before it wrote anything down, of all that it ever did.
    agent.kill()?;
    std::fs::remove_dir_all(agent.data_dir())?;
    chain.servers[0].start_again().await?;
    agent.start_again().await?;
    haunted_no_more(&chain, &cluster, &wanted).await
}
