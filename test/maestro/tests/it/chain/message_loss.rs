//! Messages that are lost, duplicated and reordered.

use std::sync::atomic::Ordering;

use anyhow::{Context, Result, ensure};
use aro_bundle::Subresource;
use aro_fixtures::wait;
use aro_maestro_e2e::chain::{
    Broker, BrokerClient, BrokerKind, Chain, Cluster, FaultProxy, Progress, Workload, agent_of, config_map,
    feedback, metric, spec,
};

#[tokio::test(flavor = "multi_thread")]
async fn lost_duplicated_and_reordered_messages_are_repaired() -> Result<()> {
    let Some(mut chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let mut far = Broker::start(BrokerKind::Ours, &chain.pki).await?.context("a second broker")?;
    let (near, other) = (chain.broker.address().to_string(), far.address().to_string());
    let fault_proxy = FaultProxy::start(&chain.pki, &near, &other, "c1", 77).await?;
    let cluster = Cluster::start("c1").await?;
    let _agent = agent_of(&chain.pki, "c1", &cluster, &other).await?;
    let source = chain.source("src", 0)?;
    let expected = Workload::new(77, "c1", 60, 160).run(source.clone(), Progress::default()).await?;
    let faults = &fault_proxy.faults;
    let done = [&faults.lost, &faults.doubled, &faults.held].map(|deed| deed.load(Ordering::Relaxed));
    ensure!(done.iter().all(|deed| *deed > 5), "it meddled too little: {faults:?}");

    // Specs are published again until they are confirmed, without any detected loss.
    fault_proxy.stop_faults();
    expected.holds(&chain, &cluster).await?;

    // A status that is lost after its acknowledgement is found after a reconnect.
    let id = source.create("c1", "kept", &spec(vec![config_map("default", "kept", "a")])).await?;
    chain.settled(&id, 1).await?;
    chain.broker.kill().await?;
    cluster.turn("default", "kept", "told at last").await?;
    far.kill().await?;
    chain.broker.start_again().await?;
    far.start_again().await?;
    fault_proxy.connected().await?;
    chain.until(&id, "the status", |bundle| feedback(bundle, 0, "turn") == Some("told at last")).await?;
    chain.all_delivered().await
}

/// A create that is delivered again after its bundle was deleted and forgotten brings the object back; the agent's status is
/// then one of an orphan.
#[tokio::test(flavor = "multi_thread")]
async fn work_restored_by_a_late_message_is_deleted() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let broker = chain.broker.address().to_string();
    let cluster = Cluster::start("c1").await?;
    let agent = chain.agent("c1", &cluster).await?;
    let (to_agent, from_agent) = (
        BrokerClient::of_consumer(&chain.pki, "c1", &broker).await?,
        BrokerClient::of_server(&chain.pki, &broker).await?,
    );
    let source = chain.source("src", 0)?;
    let id = source.create("c1", "work", &spec(vec![config_map("default", "one", "a")])).await?;
    chain.settled(&id, 1).await?;
    let create = to_agent.wait_for("the create", |event| event.resource_id.as_deref() == Some(&id)).await?;
    source.delete("c1", "work").await?;
    chain.gone(&id).await?;
    let forgotten = async || {
        wait::until("the agent to know no work", || async {
            Ok((metric(&agent, "maestro_agent_works", "").await? == 0).then_some(()))
        })
        .await
    };
    forgotten().await?;

    from_agent.clear();
    from_agent.publish_as_server("c1", &create).await?;
    from_agent
        .wait_for("the late create to be applied", |event| {
            event.resource_id.as_deref() == Some(&id) && event.kind.subresource == Subresource::Status
        })
        .await?;
    forgotten().await?;
    wait::until("the object to be gone again", || async {
        Ok(cluster.config_map("default", "one").await?.is_none().then_some(()))
    })
    .await?;
    chain.gone(&id).await?;
    chain.all_delivered().await
}
