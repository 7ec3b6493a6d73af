//! Why the original was slow and lost things, cause by cause; ours has none of them.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use aro_bundle::{Action, BundleStatus, Event, EventType, SpecResync, StatusResync, Subresource};
use aro_fixtures::wait;
use aro_maestro_e2e::chain::{
    BrokerKind, Chain, Cluster, Ear, Progress, Storm, config_map, feedback, metric, spec,
};
use tokio::time::Instant;

const NAMESPACE: &str = "default";

fn is_status(event: &Event) -> bool {
    event.kind.subresource == Subresource::Status
}

fn turn_of(event: &Event) -> Option<String> {
    let status: BundleStatus = event.payload().ok()?;
    let values = &status.resource_status.first()?.status_feedback.values;
    values.iter().find(|value| value.name == "turn")?.field_value.string.clone()
}

/// What a machine is busy with beside may make something late, but not every time.
async fn once_within(limit: Duration, what: impl AsyncFn() -> Result<()>) -> Result<()> {
    let mut took = Vec::new();
    while took.last().is_none_or(|took| *took >= limit) {
        ensure!(took.len() < 5, "it took {took:?}");
        let began = Instant::now();
        what().await?;
        took.push(began.elapsed());
    }
    Ok(())
}

/// The original sends at most 50 a second at either end, after a first hundred.
#[tokio::test(flavor = "multi_thread")]
async fn both_ends_say_more_than_fifty_things_a_second() -> Result<()> {
    const COUNT: usize = 350;
    let limit = Duration::from_secs((COUNT as u64 - 100) / 50);
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let broker = chain.broker.address().to_string();
    // Of so many names hardly any is thrown twice.
    let storm = Storm { deletions: 0, ..Storm::new(50, "c1", COUNT * 1000, COUNT) };
    let truth = storm.rage(chain.source("src", 0)?, Progress::default()).await?;
    let wanted = truth.alive();
    ensure!(wanted > COUNT * 9 / 10);

    // The server's end: somebody says that it has nothing, and is sent everything.
    let consumer = Ear::of_consumer(&chain.pki, "c1", &broker).await?;
    once_within(limit, async || {
        consumer.forget();
        let kind = EventType::spec(Action::ResyncRequest);
        let mut hello = Event::new(uuid::Uuid::new_v4().to_string(), "c1-work-agent", kind, "c1");
        hello.original_source = Some(String::new());
        consumer.say("c1", &hello.with_payload(&SpecResync::default())?).await?;
        let answer = |event: &Event| event.kind == EventType::spec(Action::ResyncResponse);
        wait::until("all specs", || async { Ok((consumer.count(answer) >= wanted).then_some(())) }).await
    })
    .await?;
    drop(consumer);

    // The agent's end: it is asked for all statuses.
    let cluster = Cluster::start("c1").await?;
    let _agent = chain.agent("c1", &cluster).await?;
    chain.all_delivered().await?;
    let server = Ear::of_server(&chain.pki, &broker).await?;
    once_within(limit, async || {
        server.forget();
        let kind = EventType::status(Action::ResyncRequest);
        let mut question = Event::new(uuid::Uuid::new_v4().to_string(), "maestro", kind, "c1");
        question.original_source = Some("maestro".to_owned());
        server.tell("c1", &question.with_payload(&StatusResync::default())?).await?;
        let answer = |event: &Event| event.kind == EventType::status(Action::ResyncResponse);
        wait::until("all statuses", || async { Ok((server.count(answer) >= wanted).then_some(())) }).await
    })
    .await?;
    truth.holds(&chain, &cluster).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_bundle_is_told_of_once_and_after_a_restart_with_nothing_changed_nothing_is_told() -> Result<()>
{
    let Some(mut chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let mut agent = chain.agent("c1", &cluster).await?;
    let ear = Ear::of_server(&chain.pki, &chain.broker.address().to_string()).await?;
    let source = chain.source("src", 0)?;
    let mut ids = Vec::new();
    for number in 0..20 {
        let work = format!("work-{number}");
        let id = source.create("c1", &work, &spec(vec![config_map(NAMESPACE, &work, "a")])).await?;
        chain.settled(&id, 1).await?;
        ids.push(id);
    }
    // The ear may be a moment behind; and what a slow machine makes the server ask for again is told again, but the same.
    let told = || -> BTreeSet<_> {
        let statuses = ear.heard().into_iter().filter(is_status);
        statuses.map(|event| (event.resource_id, event.status_hash)).collect()
    };
    wait::until("a status of each", || async { Ok((told().len() >= ids.len()).then_some(())) }).await?;
    ensure!(told().len() == ids.len(), "{} statuses of 20 new bundles", told().len());

    let of_known =
        |event: &Event| is_status(event) && event.resource_id.as_ref().is_some_and(|id| ids.contains(id));
    ear.forget();
    ensure!(agent.interrupt()?.success());
    agent.start_again().await?;
    ear.hears("what the agent knows", |event| event.kind == EventType::spec(Action::ResyncRequest)).await?;
    // What was published again, because a machine was slow to confirm it, may be told again.
    let repeated = async |chain: &Chain| {
        metric(&chain.servers[0], "spec_controller_undelivered_resources_republished_total", "").await
    };
    // Something new goes all the way: whatever was to be said of the others was said before.
    let id = source.create("c1", "after-agent", &spec(vec![config_map(NAMESPACE, "x", "a")])).await?;
    chain.settled(&id, 1).await?;
    let allowed = repeated(&chain).await?;
    ensure!(ear.count(of_known) as u64 <= allowed, "{} statuses though nothing changed", ear.count(of_known));
    // The server asks with what it knows, so it is told nothing either.
    ear.forget();
    chain.servers[0].kill()?;
    chain.servers[0].start_again().await?;
    let id = source.create("c1", "after-server", &spec(vec![config_map(NAMESPACE, "y", "a")])).await?;
    chain.settled(&id, 1).await?;
    let allowed = allowed + repeated(&chain).await?;
    ensure!(ear.count(of_known) as u64 <= allowed, "{} statuses though nothing changed", ear.count(of_known));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_asked_for_statuses_by_the_consumers_name_and_with_the_hashes_that_are_known() -> Result<()>
{
    let Some(mut chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let _agent = chain.agent("c1", &cluster).await?;
    let broker = chain.broker.address().to_string();
    let (server, consumer) =
        (Ear::of_server(&chain.pki, &broker).await?, Ear::of_consumer(&chain.pki, "c1", &broker).await?);
    let source = chain.source("src", 0)?;
    let id = source.create("c1", "work", &spec(vec![config_map(NAMESPACE, "one", "a")])).await?;
    chain.settled(&id, 1).await?;
    let told = server.hears("the status", |event| event.resource_id.as_deref() == Some(&id)).await?;
    consumer.forget();
    chain.servers[0].kill()?;
    chain.servers[0].start_again().await?;
    let asked = consumer
        .hears("the question", |event| event.kind == EventType::status(Action::ResyncRequest))
        .await?;
    ensure!(asked.cluster_name == "c1" && asked.original_source.as_deref() == Some("maestro"));
    let asked: StatusResync = asked.payload()?;
    let known: Vec<(&str, Option<&str>)> =
        asked.status_hashes.iter().map(|one| (one.id.as_str(), Some(one.hash.as_str()))).collect();
    ensure!(known == [(id.as_str(), told.status_hash.as_deref())], "{known:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_confirmed_is_found_published_again_and_raises_the_alarm() -> Result<()> {
    let settings = [("maestro.undelivered_alarm", "1s")];
    let store = aro_harness::StoreChoice::Embedded;
    let Some(chain) = Chain::with(BrokerKind::Ours, store, &["c1"], &settings).await? else { return Ok(()) };
    // Hears like an agent, and loses what it hears.
    let deaf = Ear::of_consumer(&chain.pki, "c1", &chain.broker.address().to_string()).await?;
    let source = chain.source("src", 0)?;
    let id = source.create("c1", "work", &spec(vec![config_map(NAMESPACE, "one", "a")])).await?;
    let of_it = |event: &Event| event.resource_id.as_deref() == Some(&id);
    wait::until("it to be published again", || async { Ok((deaf.count(of_it) >= 3).then_some(())) }).await?;
    let undelivered = chain.undelivered().await?;
    ensure!(undelivered.len() == 1 && undelivered[0]["id"] == id, "{undelivered:#?}");
    wait::until("the alarm", || async {
        Ok((metric(&chain.servers[0], "maestro_bundles_undelivered", "").await? == 1).then_some(()))
    })
    .await?;
    drop(deaf);
    let cluster = Cluster::start("c1").await?;
    let _agent = chain.agent("c1", &cluster).await?;
    chain.settled(&id, 1).await?;
    wait::until("the alarm to end", || async {
        Ok((metric(&chain.servers[0], "maestro_bundles_undelivered", "").await? == 0).then_some(()))
    })
    .await?;
    chain.all_delivered().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_subscribes_again_is_told_what_it_missed() -> Result<()> {
    let Some(mut chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let _agent = chain.agent("c1", &cluster).await?;
    let source = chain.source("src", 0)?;
    let mut heard = source.subscribe().await?;
    let id = source.create("c1", "work", &spec(vec![config_map(NAMESPACE, "one", "a")])).await?;
    source.hears(&mut heard, &id, |event| event.resource_version == Some(1)).await?;
    let other = source.create("c1", "other", &spec(vec![config_map(NAMESPACE, "two", "a")])).await?;
    source.hears(&mut heard, &other, |event| event.resource_version == Some(1)).await?;

    // Away while something changes and something goes.
    drop(heard);
    cluster.turn(NAMESPACE, "one", "missed").await?;
    source.delete("c1", "other").await?;
    chain.until(&id, "the status", |bundle| feedback(bundle, 0, "turn") == Some("missed")).await?;
    chain.gone(&other).await?;
    let mut heard = source.subscribe().await?;
    let (mut changed, mut gone) = (false, false);
    while !(changed && gone) {
        let Some(event) = tokio::time::timeout(wait::DEADLINE, heard.next()).await?? else { continue };
        let of = event.resource_id.as_deref();
        changed |= of == Some(&id) && turn_of(&event).as_deref() == Some("missed");
        gone |= of == Some(&other) && event.payload::<BundleStatus>()?.is_deleted();
    }

    // Away because the server was killed.
    chain.servers[0].kill()?;
    drop(heard);
    cluster.turn(NAMESPACE, "one", "missed again").await?;
    chain.servers[0].start_again().await?;
    chain.until(&id, "the status", |bundle| feedback(bundle, 0, "turn") == Some("missed again")).await?;
    let source = chain.source("src", 0)?;
    let mut heard = source.subscribe().await?;
    source.hears(&mut heard, &id, |event| turn_of(event).as_deref() == Some("missed again")).await?;
    Ok(())
}
