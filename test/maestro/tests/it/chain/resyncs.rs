//! Resyncs that do not fit into one packet (maestro#524): paged, and nothing of them is dropped.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use aro_bundle::{
    Action, Event, EventType, IdRange, KnownVersion, MAX_PACKET, SpecResync, StatusResync, mqtt, spec_pages,
};
use aro_fixtures::wait;
use aro_harness::StoreChoice;
use aro_maestro_e2e::chain::{BrokerKind, Chain, Ear, config_map, spec};

/// The test is the agent: it knows thousands of bundles that nobody wants any more, and some that are wanted.
#[tokio::test(flavor = "multi_thread")]
async fn maestro_524_a_list_of_specs_above_512_kib_is_answered_to_the_end() -> Result<()> {
    const GHOSTS: usize = 5_500;
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let agent = Ear::of_consumer(&chain.pki, "c1", &chain.broker.address().to_string()).await?;
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
    agent.forget();
    for (range, page) in &pages {
        let kind = EventType::spec(Action::ResyncRequest);
        let mut event = Event::new(uuid::Uuid::new_v4().to_string(), "c1-work-agent", kind, "c1");
        event.original_source = Some(String::new());
        range.attach(&mut event);
        agent.say("c1", &event.with_payload(page)?).await?;
    }
    let answer = |event: &Event| event.kind == EventType::spec(Action::ResyncResponse);
    wait::until("the answer", || async { Ok((agent.count(answer) >= GHOSTS + unknown.len()).then_some(())) })
        .await?;
    let told: Vec<Event> = agent.heard().into_iter().filter(|event| answer(event)).collect();
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
async fn maestro_524_the_servers_questions_fit_into_packets_and_name_every_bundle() -> Result<()> {
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
    let agent = Ear::of_consumer(&chain.pki, "c1", &chain.broker.address().to_string()).await?;
    chain.servers[0].kill()?;
    agent.forget();
    chain.servers[0].start_again().await?;
    let question = |event: &Event| event.kind == EventType::status(Action::ResyncRequest);
    let asked = || -> Vec<Event> { agent.heard().into_iter().filter(|event| question(event)).collect() };
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

/// The test is two agents: one that asks the same again and again, and one that asks once.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_asks_again_and_again_is_answered_once_for_many_and_keeps_nobody_waiting() -> Result<()>
{
    const GHOSTS: usize = 1_000;
    const TIMES: usize = 200;
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1", "c2"]).await? else { return Ok(()) };
    let broker = chain.broker.address().to_string();
    let loud = Ear::of_consumer(&chain.pki, "c1", &broker).await?;
    let quiet = Ear::of_consumer(&chain.pki, "c2", &broker).await?;
    let wanted = spec(vec![config_map("default", "one", "a")]);
    let source = chain.source("src", 0)?;
    let id = source.create("c2", "work", &wanted).await?;
    quiet.hears("the bundle", |event| event.resource_id.as_deref() == Some(&id)).await?;
    // Else the server would not believe that nothing else is wanted there.
    let own = source.create("c1", "work", &wanted).await?;
    loud.hears("the bundle", |event| event.resource_id.as_deref() == Some(&own)).await?;
    quiet.forget();
    loud.forget();

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
    let asked = futures::future::join_all((0..TIMES).map(|_| loud.say("c1", &same))).await;
    ensure!(asked.iter().all(Result::is_ok));
    quiet.say("c2", &question("c2", IdRange::default(), Vec::new())?).await?;
    // Another question, which is not replaced: with its answer all others are answered.
    let last = IdRange { from: Some("z".to_owned()), to: None };
    loud.say("c1", &question("c1", last, vec!["z-last".to_owned()])?).await?;

    let answer = |event: &Event| event.kind == EventType::spec(Action::ResyncResponse);
    quiet.hears("the answer", |event| answer(event) && event.resource_id.as_deref() == Some(&id)).await?;
    loud.hears("the last answer", |event| event.resource_id.as_deref() == Some("z-last")).await?;
    let told = loud.count(answer);
    ensure!(told > GHOSTS, "it was answered");
    ensure!(told < TIMES / 2 * GHOSTS, "{told} messages: it was answered as often as it asked");
    Ok(())
}
