//! The service cluster is away: broker and server both. What is wanted stays so on the management cluster.

use anyhow::{Result, ensure};
use aro_fixtures::wait;
use aro_maestro_e2e::chain::{BrokerKind, Chain, Cluster, config_map, feedback, spec};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_repaired_while_the_service_cluster_is_away_also_by_an_agent_started_meanwhile() -> Result<()>
{
    let Some(mut chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let mut agent = chain.agent("c1", &cluster).await?;
    let source = chain.source("src", 0)?;
    let both = spec(vec![config_map("default", "one", "a"), config_map("default", "two", "b")]);
    let id = source.create("c1", "work", &both).await?;
    chain.settled(&id, 1).await?;
    ensure!(agent.interrupt()?.success());
    agent.start_again().await?;
    chain.servers[0].kill()?;
    chain.broker.kill().await?;

    let maps = cluster.api("v1", "ConfigMap", Some("default"));
    let is = async |name: &str, value: &str| {
        wait::until("the drift to be repaired", || async {
            let found = cluster.config_map("default", name).await?;
            Ok(found.filter(|data| data["value"] == value).map(drop))
        })
        .await
    };
    maps.delete("one", &DeleteParams::default()).await?;
    is("one", "a").await?;
    let changed = json!({"data": {"value": "changed"}});
    maps.patch("two", &PatchParams::default(), &Patch::Merge(changed)).await?;
    is("two", "b").await?;

    // The agent starts from what it wrote down; nobody tells it anything. It is not ready before the broker is there.
    agent.kill()?;
    maps.delete("two", &DeleteParams::default()).await?;
    let (broker, server) = (&mut chain.broker, &mut chain.servers[0]);
    let meanwhile = async {
        is("two", "b").await?;
        // When everybody is back, what happened meanwhile is told.
        cluster.turn("default", "one", "meanwhile").await?;
        broker.start_again().await?;
        server.start_again().await
    };
    tokio::try_join!(agent.start_again(), meanwhile)?;
    chain.until(&id, "the status", |bundle| feedback(bundle, 0, "turn") == Some("meanwhile")).await?;
    chain.all_delivered().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_is_not_taken_back_by_an_agent_killed_right_after_it_though_nobody_is_there_to_ask()
-> Result<()> {
    let Some(mut chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let mut agent = chain.agent("c1", &cluster).await?;
    let source = chain.source("src", 0)?;
    let one = config_map("default", "one", "a");
    let id = source.create("c1", "work", &spec(vec![one.clone()])).await?;
    chain.settled(&id, 1).await?;
    // One that ends well has written down what it knows.
    ensure!(agent.interrupt()?.success());
    agent.start_again().await?;
    source.update("c1", "work", 1, &spec(vec![one, config_map("default", "two", "b")])).await?;
    chain.settled(&id, 2).await?;
    agent.kill()?;
    chain.servers[0].kill()?;
    chain.broker.kill().await?;

    // What only the second version has is made again: that is the version in force.
    cluster.api("v1", "ConfigMap", Some("default")).delete("two", &DeleteParams::default()).await?;
    let (broker, server) = (&mut chain.broker, &mut chain.servers[0]);
    let meanwhile = async {
        wait::until("what only the update has", || async { cluster.config_map("default", "two").await })
            .await?;
        broker.start_again().await?;
        server.start_again().await
    };
    tokio::try_join!(agent.start_again(), meanwhile)?;
    chain.settled(&id, 2).await?;
    chain.all_delivered().await
}
