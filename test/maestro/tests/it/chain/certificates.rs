//! What certificates open, and for how long.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use aro_base::SignedDuration;
use aro_bundle::Action;
use aro_event_service::ClientError;
use aro_fixtures::wait;
use aro_maestro_e2e::chain::{Broker, BrokerKind, Chain, Source, config_map, metric, spec};
use aro_mqtt::{Credentials, Delivery, Inbox, Link, LinkOptions, LinkPorts};
use aro_net::SystemResolve;
use aro_runtime::{Metrics, Scope, SystemClock};
use tonic::Code;

struct Deaf;

#[async_trait::async_trait]
impl Inbox for Deaf {
    async fn deliver(&self, delivery: Delivery) {
        delivery.ack.done();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_certificate_of_an_agent_opens_the_door_of_sources_and_none_of_a_source_the_brokers() -> Result<()>
{
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let wanted = spec(vec![config_map("default", "one", "a")]);
    let Some(door) = chain.servers[0].addr("maestro-grpc") else { bail!("there is a door") };

    // The broker's authority vouches for it; it knows the door, and goes by the name of a source.
    let mut agents = chain.pki.identity("src")?;
    agents.bundle = Some(chain.sources.bundle());
    let intruder = Source::new("src", door, agents)?;
    let event = intruder.event(Action::Create, "c1", "work", 0, Some(&wanted))?;
    let refused = intruder.client.clone().publish(&event).await;
    ensure!(refused.is_err(), "an agent made a bundle");
    ensure!(intruder.subscribe().await.is_err(), "an agent heard a source's news");
    ensure!(chain.bundle(&intruder.id("c1", "work")).await?.status == 404);
    // The same name of the sources' authority is let in.
    chain.source("src", 0)?.create("c1", "work", &wanted).await?;

    // The sources' authority vouches for it; it knows the broker, and goes by the name of a server.
    let Broker::Ours(broker, address) = &chain.broker else { bail!("our broker counts") };
    let failed = async || metric(broker, "broker_failed_handshakes_total", "").await;
    let before = failed().await?;
    let mut sources = chain.sources.identity("maestro")?;
    sources.bundle = Some(chain.pki.bundle());
    let mut options = LinkOptions::new(address.to_string(), "intruder");
    options.credentials = Some(Credentials::Files(sources));
    let (resolve, clock) = (Arc::new(SystemResolve), SystemClock::shared());
    let scope = Scope::root("intruder");
    let link = Link::start(
        options,
        Vec::new(),
        Arc::new(Deaf),
        LinkPorts { resolve, clock, metrics: Metrics::new() },
        &scope,
    );
    wait::until("the source to be turned away", || async {
        Ok((failed().await? > before + 1).then_some(()))
    })
    .await?;
    ensure!(!link.is_connected());
    scope.token().cancel();
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_sent_away_when_its_certificate_expires_and_comes_back_with_a_new_one() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let wanted = spec(vec![config_map("default", "one", "a")]);
    chain.sources.issue("src", SignedDuration::from_secs(5))?;
    let source = chain.source("src", 0)?;
    let mut heard = source.subscribe().await?;
    source.create("c1", "before", &wanted).await?;
    let word = loop {
        match tokio::time::timeout(wait::DEADLINE, heard.next()).await? {
            Ok(_) => {}
            Err(ClientError::Refused(word)) => break word,
            Err(other) => bail!("expected a word, got {other}"),
        }
    };
    ensure!(word.code() == Code::Unauthenticated, "{word}");
    // Its connection goes too, and a new one is not made with what has expired.
    wait::until("the connection to be closed", || async {
        let delete = source.event(Action::Delete, "c1", "never was", 0, None)?;
        Ok(source.client.clone().publish(&delete).await.is_err().then_some(()))
    })
    .await?;
    let after = source.event(Action::Create, "c1", "after", 0, Some(&wanted))?;
    ensure!(source.client.clone().publish(&after).await.is_err(), "the old certificate opens nothing");

    chain.sources.issue("src", SignedDuration::from_hours(1))?;
    source.insist(&after).await?;
    source.subscribe().await?;
    ensure!(chain.bundle(&source.id("c1", "after")).await?.status == 200);
    Ok(())
}
