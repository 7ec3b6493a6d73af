//! Resyncs larger than one packet (maestro#524): paged, and complete.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use aro_bundle::{
    Action, Event, EventType, IdRange, KnownVersion, MAX_PACKET, SpecResync, StatusResync, mqtt, spec_pages,
};
use aro_fixtures::wait;
use aro_harness::StoreChoice;
use aro_maestro_e2e::chain::{BrokerClient, BrokerKind, Chain, config_map, spec};

/// The test is the agent: it lists thousands of orphans, and some bundles that exist.
#[tokio::test(flavor = "multi_thread")]
async fn maestro_524_spec_resync_above_512_kib_is_answered_completely() -> Result<()> {
    const GHOSTS: usize = 5_500;
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let agent = BrokerClient::of_consumer(&chain.pki, "c1", &chain.broker.address().to_string()).await?;
    let source = chain.source("src", 0)?;
    let mut wanted = Vec::new();
    for number in 0..20 {
        let work = format!("work-{number}");
        wanted.push(source.create("c1", &work, &spec(vec![config_map("default", &work, "a")])).await?);
    }
    let (known, unknown) = wanted.split_at(10);
    let ghosts: Vec<String> = (0..GHOSTS).map(|number| format!("{number:036}")).collect();
    let listed = ghosts.iter().chain(known).map(|id| KnownVersion { id: id.clone(), version: 1 });
    let listed: Vec<KnownVersion> = listed.collect();
    let whole = serde_json::to_vec(&SpecResync { resource_versions: listed.clone() })?;
    let pages = spec_pages(listed, MAX_PACKET - 16 * 1024);
    ensure!(pages.len() > 1, "{} bytes fit into one page", whole.len());
    agent.clear();
    for (range, page) in &pages {
        let kind = EventType::spec(Action::ResyncRequest);
        let mut event = Event::new(uuid::Uuid::new_v4().to_string(), "c1-work-agent", kind, "c1");
        event.original_source = Some(String::new());
        range.attach(&mut event);
        agent.publish_as_agent("c1", &event.with_payload(page)?).await?;
    }
    let answer = |event: &Event| event.kind == EventType::spec(Action::ResyncResponse);
    wait::until("the answer", || async { Ok((agent.count(answer) >= GHOSTS + unknown.len()).then_some(())) })
        .await?;
    let told: Vec<Event> = agent.received().into_iter().filter(|event| answer(event)).collect();
    ensure!(told.len() == GHOSTS + unknown.len(), "{} answers: something was told twice", told.len());
    let ids = |deleted: bool| -> BTreeSet<String> {
        let of = told.iter().filter(|event| event.deletion_timestamp.is_some() == deleted);
        of.filter_map(|event| event.resource_id.clone()).collect()
    };
    ensure!(ids(true) == ghosts.into_iter().collect(), "every ghost is sent away");
    ensure!(
        ids(false) == unknown.iter().cloned().collect(),
        "what was not listed is sent, from one page only"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn maestro_524_status_resync_pages_fit_packets_and_list_every_bundle() -> Result<()> {
    const COUNT: usize = 120;
    const LARGEST: usize = 12 * 1024;
    let settings = [("maestro.max_event", "12KiB")];
    let chain = Chain::with(BrokerKind::Ours, StoreChoice::Embedded, &["c1"], &settings).await?;
    let Some(mut chain) = chain else { return Ok(()) };
    let source = chain.source("src", 0)?;
    let mut ids = BTreeSet::new();
    for number in 0..COUNT {
        let work = format!("work-{number}");
        ids.insert(source.create("c1", &work, &spec(vec![config_map("default", &work, "a")])).await?);
    }
    let agent = BrokerClient::of_consumer(&chain.pki, "c1", &chain.broker.address().to_string()).await?;
    chain.servers[0].kill()?;
    agent.clear();
    chain.servers[0].start_again().await?;
    let question = |event: &Event| event.kind == EventType::status(Action::ResyncRequest);
    let asked = || -> Vec<Event> { agent.received().into_iter().filter(|event| question(event)).collect() };
    let named = || -> BTreeSet<String> {
        let lists = asked().into_iter().filter_map(|event| event.payload::<StatusResync>().ok());
        lists.flat_map(|list| list.status_hashes).map(|one| one.id).collect()
    };
    wait::until("every bundle to be asked for", || async { Ok((named() == ids).then_some(())) }).await?;
    ensure!(asked().len() > 1, "all in one packet");
    for event in asked() {
        let size = mqtt::write(&event).payload.len();
        ensure!(size < LARGEST, "{size} bytes");
    }
    Ok(())
}

/// The test is two agents: one that repeats its request, and one that sends it once.
#[tokio::test(flavor = "multi_thread")]
async fn repeated_resync_requests_are_coalesced_and_delay_no_other_agent() -> Result<()> {
    const GHOSTS: usize = 1_000;
    const TIMES: usize = 200;
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1", "c2"]).await? else { return Ok(()) };
    let broker = chain.broker.address().to_string();
    let loud = BrokerClient::of_consumer(&chain.pki, "c1", &broker).await?;
    let quiet = BrokerClient::of_consumer(&chain.pki, "c2", &broker).await?;
    let wanted = spec(vec![config_map("default", "one", "a")]);
    let source = chain.source("src", 0)?;
    let id = source.create("c2", "work", &wanted).await?;
    quiet.wait_for("the bundle", |event| event.resource_id.as_deref() == Some(&id)).await?;
    // Otherwise the deletion of orphans would be blocked.
    let own = source.create("c1", "work", &wanted).await?;
    loud.wait_for("the bundle", |event| event.resource_id.as_deref() == Some(&own)).await?;
    quiet.clear();
    loud.clear();

    let question = |consumer: &str, range: IdRange, ghosts: Vec<String>| -> Result<Event> {
        let kind = EventType::spec(Action::ResyncRequest);
        let mut event = Event::new(uuid::Uuid::new_v4().to_string(), "work-agent", kind, consumer);
        event.original_source = Some(String::new());
        range.attach(&mut event);
        let resource_versions = ghosts.into_iter().map(|id| KnownVersion { id, version: 1 }).collect();
        Ok(event.with_payload(&SpecResync { resource_versions })?)
    };
    let ghosts: Vec<String> = (0..GHOSTS).map(|number| format!("{number:036}")).collect();
    let same = question("c1", IdRange::default(), ghosts)?;
    let asked = futures::future::join_all((0..TIMES).map(|_| loud.publish_as_agent("c1", &same))).await;
    ensure!(asked.iter().all(Result::is_ok));
    quiet.publish_as_agent("c2", &question("c2", IdRange::default(), Vec::new())?).await?;
    // Another request, which is not replaced: its response follows all others.
    let last = IdRange { from: Some("z".to_owned()), to: None };
    loud.publish_as_agent("c1", &question("c1", last, vec!["z-last".to_owned()])?).await?;

    let answer = |event: &Event| event.kind == EventType::spec(Action::ResyncResponse);
    quiet.wait_for("the answer", |event| answer(event) && event.resource_id.as_deref() == Some(&id)).await?;
    loud.wait_for("the last answer", |event| event.resource_id.as_deref() == Some("z-last")).await?;
    let told = loud.count(answer);
    ensure!(told > GHOSTS, "it was answered");
    ensure!(told < TIMES / 2 * GHOSTS, "{told} messages: it was answered as often as it asked");
    Ok(())
}
