//! Broker and server are unreachable: the management cluster keeps the desired state.

use anyhow::{Result, ensure};
use aro_fixtures::wait;
use aro_maestro_e2e::chain::{BrokerKind, Chain, Cluster, config_map, feedback, spec};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_repaired_without_the_service_cluster_even_after_a_restart() -> Result<()> {
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

    // The agent starts from its records, without any message. It is not ready before the broker is connected.
    agent.kill()?;
    maps.delete("two", &DeleteParams::default()).await?;
    let (broker, server) = (&mut chain.broker, &mut chain.servers[0]);
    let meanwhile = async {
        is("two", "b").await?;
        // When all are back, what happened meanwhile is reported.
        cluster.turn("default", "one", "meanwhile").await?;
        broker.start_again().await?;
        server.start_again().await
    };
    tokio::try_join!(agent.start_again(), meanwhile)?;
    chain.until(&id, "the status", |bundle| feedback(bundle, 0, "turn") == Some("meanwhile")).await?;
    chain.all_delivered().await
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_killed_after_an_update_does_not_revert_it_without_a_server() -> Result<()> {
    let Some(mut chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let mut agent = chain.agent("c1", &cluster).await?;
    let source = chain.source("src", 0)?;
    let one = config_map("default", "one", "a");
    let id = source.create("c1", "work", &spec(vec![one.clone()])).await?;
    chain.settled(&id, 1).await?;
    // A graceful stop stores all records.
    ensure!(agent.interrupt()?.success());
    agent.start_again().await?;
    source.update("c1", "work", 1, &spec(vec![one, config_map("default", "two", "b")])).await?;
    chain.settled(&id, 2).await?;
    agent.kill()?;
    chain.servers[0].kill()?;
    chain.broker.kill().await?;

    // Objects of only the second version are created again: that is the current version.
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
