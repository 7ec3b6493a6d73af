//! Which listener accepts which certificate, and for how long.

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

struct IgnoreMessages;

#[async_trait::async_trait]
impl Inbox for IgnoreMessages {
    async fn deliver(&self, delivery: Delivery) {
        delivery.ack.done();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_certificate_is_rejected_over_grpc_and_source_certificate_by_the_broker() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let wanted = spec(vec![config_map("default", "one", "a")]);
    let Some(door) = chain.servers[0].addr("maestro-grpc") else { bail!("there is a door") };

    // Issued by the broker's authority, for the gRPC listener, with the name of a source.
    let mut agents = chain.pki.identity("src")?;
    agents.bundle = Some(chain.sources.bundle());
    let intruder = Source::new("src", door, agents)?;
    let event = intruder.event(Action::Create, "c1", "work", 0, Some(&wanted))?;
    let refused = intruder.client.clone().publish(&event).await;
    ensure!(refused.is_err(), "an agent made a bundle");
    ensure!(intruder.subscribe().await.is_err(), "an agent received a source's news");
    ensure!(chain.bundle(&intruder.id("c1", "work")).await?.status == 404);
    // The same name from the sources' authority is accepted.
    chain.source("src", 0)?.create("c1", "work", &wanted).await?;

    // Issued by the sources' authority, for the broker, with the name of a server.
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
        Arc::new(IgnoreMessages),
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
async fn source_is_disconnected_when_its_certificate_expires_and_reconnects_with_a_new_one() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let wanted = spec(vec![config_map("default", "one", "a")]);
    chain.sources.issue("src", SignedDuration::from_secs(5))?;
    let source = chain.source("src", 0)?;
    let mut received = source.subscribe().await?;
    source.create("c1", "before", &wanted).await?;
    let word = loop {
        match tokio::time::timeout(wait::DEADLINE, received.next()).await? {
            Ok(_) => {}
            Err(ClientError::Refused(word)) => break word,
            Err(other) => bail!("expected a word, got {other}"),
        }
    };
    ensure!(word.code() == Code::Unauthenticated, "{word}");
    // Its connection ends too, and an expired certificate opens no new one.
    wait::until("the connection to be closed", || async {
        let delete = source.event(Action::Delete, "c1", "never was", 0, None)?;
        Ok(source.client.clone().publish(&delete).await.is_err().then_some(()))
    })
    .await?;
    let after = source.event(Action::Create, "c1", "after", 0, Some(&wanted))?;
    ensure!(source.client.clone().publish(&after).await.is_err(), "the old certificate opens nothing");

    chain.sources.issue("src", SignedDuration::from_hours(1))?;
    source.publish_until_accepted(&after).await?;
    source.subscribe().await?;
    ensure!(chain.bundle(&source.id("c1", "after")).await?.status == 200);
    Ok(())
}
