//! Brokers that are killed during a workload: they lose all messages, and no operation is lost.

use anyhow::{Result, ensure};
use aro_fixtures::wait;
use aro_maestro_e2e::chain::{
    BrokerKind, Chain, Cluster, Progress, Workload, config_map, feedback, metric, spec,
};

#[tokio::test(flavor = "multi_thread")]
async fn our_broker_killed_under_load_loses_nothing() -> Result<()> {
    killed(BrokerKind::Ours).await
}

#[tokio::test(flavor = "multi_thread")]
async fn mosquitto_killed_under_load_loses_nothing() -> Result<()> {
    killed(BrokerKind::Mosquitto).await
}

async fn killed(kind: BrokerKind) -> Result<()> {
    let Some(mut chain) = Chain::start(kind, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let _agent = chain.agent("c1", &cluster).await?;
    let progress = Progress::default();
    let raging = Workload::new(11, "c1", 80, 200).run(chain.source("src", 0)?, progress.clone());
    let broker = &mut chain.broker;
    let kills = async {
        for moment in [30, 70, 110] {
            progress.reaches(moment).await?;
            broker.kill().await?;
            progress.reaches(moment + 15).await?;
            broker.start_again().await?;
        }
        Ok::<_, anyhow::Error>(())
    };
    let (expected, ()) = tokio::try_join!(raging, kills)?;
    expected.holds(&chain, &cluster).await
}

/// The broker had acknowledged the status to the agent and lost it; the server requests statuses after its restart while
/// the agent is disconnected. The agent reconnects later with a status it counts as acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn status_lost_with_the_broker_is_requested_when_the_agent_reconnects() -> Result<()> {
    let Some(mut chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let mut agent = chain.agent("c1", &cluster).await?;
    let source = chain.source("src", 0)?;
    let id = source.create("c1", "work", &spec(vec![config_map("default", "one", "a")])).await?;
    chain.settled(&id, 1).await?;

    // The test receives the status in the server's place and drops it.
    let thief =
        aro_maestro_e2e::chain::BrokerClient::of_server(&chain.pki, &chain.broker.address().to_string())
            .await?;
    chain.servers[0].kill()?;
    cluster.turn("default", "one", "lost").await?;
    thief
        .wait_for("the status that will be lost", |event| {
            String::from_utf8_lossy(&event.data).contains("lost")
        })
        .await?;
    wait::until("the agent to note that it was received", || async {
        Ok((metric(&agent, "maestro_agent_statuses_waiting", "").await? == 0).then_some(()))
    })
    .await?;
    ensure!(agent.interrupt()?.success());
    drop(thief);
    chain.broker.kill().await?;
    chain.broker.start_again().await?;
    chain.servers[0].start_again().await?;
    wait::until("the server to be back at the broker", || async {
        Ok((metric(&chain.servers[0], "mqtt_link_connected", "").await? == 1).then_some(()))
    })
    .await?;
    agent.start_again().await?;
    chain.until(&id, "the status", |bundle| feedback(bundle, 0, "turn") == Some("lost")).await?;
    Ok(())
}
