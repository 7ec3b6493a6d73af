//! Messages that are lost, doubled and reordered on their way.

use std::sync::atomic::Ordering;

use anyhow::{Context, Result, ensure};
use aro_bundle::Subresource;
use aro_fixtures::wait;
use aro_maestro_e2e::chain::{
    Broker, BrokerKind, Chain, Cluster, Ear, Meddler, Progress, Storm, agent_of, config_map, feedback,
    metric, spec,
};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_doubled_and_reordered_comes_right_again() -> Result<()> {
    let Some(mut chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let mut far = Broker::start(BrokerKind::Ours, &chain.pki).await?.context("a second broker")?;
    let (near, other) = (chain.broker.address().to_string(), far.address().to_string());
    let meddler = Meddler::start(&chain.pki, &near, &other, "c1", 77).await?;
    let cluster = Cluster::start("c1").await?;
    let _agent = agent_of(&chain.pki, "c1", &cluster, &other).await?;
    let source = chain.source("src", 0)?;
    let truth = Storm::new(77, "c1", 60, 160).rage(source.clone(), Progress::default()).await?;
    let deeds = &meddler.deeds;
    let done = [&deeds.lost, &deeds.doubled, &deeds.held].map(|deed| deed.load(Ordering::Relaxed));
    ensure!(done.iter().all(|deed| *deed > 5), "it meddled too little: {deeds:?}");

    // What was sent is sent again until it is confirmed, without anybody noticing a loss.
    meddler.be_honest();
    truth.holds(&chain, &cluster).await?;

    // A status that is lost after it was acknowledged is found when the connections were lost, too.
    let id = source.create("c1", "kept", &spec(vec![config_map("default", "kept", "a")])).await?;
    chain.settled(&id, 1).await?;
    chain.broker.kill().await?;
    cluster.turn("default", "kept", "told at last").await?;
    far.kill().await?;
    chain.broker.start_again().await?;
    far.start_again().await?;
    meddler.connected().await?;
    chain.until(&id, "the status", |bundle| feedback(bundle, 0, "turn") == Some("told at last")).await?;
    chain.all_delivered().await
}

/// A create that comes again after its bundle was deleted and forgotten brings the object back; what the agent then reports
/// is about nothing that anybody wants.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_late_message_brings_back_is_taken_away_again() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let broker = chain.broker.address().to_string();
    let cluster = Cluster::start("c1").await?;
    let agent = chain.agent("c1", &cluster).await?;
    let (to_agent, from_agent) =
        (Ear::of_consumer(&chain.pki, "c1", &broker).await?, Ear::of_server(&chain.pki, &broker).await?);
    let source = chain.source("src", 0)?;
    let id = source.create("c1", "work", &spec(vec![config_map("default", "one", "a")])).await?;
    chain.settled(&id, 1).await?;
    let create = to_agent.hears("the create", |event| event.resource_id.as_deref() == Some(&id)).await?;
    source.delete("c1", "work").await?;
    chain.gone(&id).await?;
    let forgotten = async || {
        wait::until("the agent to know no work", || async {
            Ok((metric(&agent, "maestro_agent_works", "").await? == 0).then_some(()))
        })
        .await
    };
    forgotten().await?;

    from_agent.forget();
    from_agent.tell("c1", &create).await?;
    from_agent
        .hears("the late create to be applied", |event| {
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
