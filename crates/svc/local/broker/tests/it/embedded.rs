//! What only the embedded broker promises.

use std::time::Duration;

use anyhow::Result;
use aro_base::{Clock as _, SignedDuration};
use aro_broker::BrokerConfig;
use aro_fixtures::wait;
use aro_mqtt::LinkOptions;
use aro_pki::Usage;
use aro_runtime::{ByteSize, SystemClock};

use crate::peers::{Certificates, Kept, Peer, TestBroker, message, options};

const TO_C1: &str = "sources/maestro/consumers/c1/sourceevents";

fn plain(broker: &TestBroker, identity: &str) -> LinkOptions {
    let mut options = LinkOptions::new(broker.address().to_string(), format!("{identity}-client"));
    options.username = Some(identity.to_owned());
    options
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_consumer_is_disconnected_and_costs_no_more_than_its_queue() -> Result<()> {
    let broker = TestBroker::embedded_with(BrokerConfig {
        queue_messages: 50,
        queue_bytes: ByteSize::mib(1),
        ..BrokerConfig::default()
    })
    .await?;
    let server = Peer::start(plain(&broker, "maestro"), &[], Kept::default());
    server.up().await?;
    let slow =
        Peer::start(LinkOptions { receive_window: 10, ..plain(&broker, "c1") }, &[TO_C1], Kept::holding());
    slow.up().await?;
    for number in 0..51 {
        server.link.publish(TO_C1, message(number.to_string())).await?;
    }
    wait::until("the slow one to be disconnected and back", || async {
        Ok((slow.inbox.connects() == 2).then_some(()))
    })
    .await?;
    let metrics = broker.metrics();
    assert!(metrics.contains("broker_slow_clients_total 1"), "{metrics}");
    assert!(metrics.contains("broker_messages_dropped_total 51"), "{metrics}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_open_handshakes_do_not_keep_other_clients_out() -> Result<()> {
    let certificates = Certificates::new()?;
    let mut broker = TestBroker::embedded(&certificates).await?;
    broker.stop().await?;
    if let TestBroker::Embedded { config, .. } = &mut broker {
        (config.max_connections, config.max_handshakes) = (2, 4);
    }
    broker.start().await?;
    // Far more than there are slots of either kind, and none of them ever sends a byte.
    let mut stalled = Vec::new();
    for _ in 0..50 {
        stalled.push(tokio::net::TcpStream::connect(broker.address()).await?);
    }
    let server = Peer::start(options(&broker, &certificates, "maestro", "maestro-1")?, &[], Kept::default());
    server.up().await?;
    let agent = Peer::start(options(&broker, &certificates, "c1", "c1-1")?, &[TO_C1], Kept::default());
    agent.up().await?;
    server.link.publish(TO_C1, message("still here")).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_leaves_nothing_running_and_clients_are_told() -> Result<()> {
    let mut broker = TestBroker::embedded_with(BrokerConfig::default()).await?;
    let agent = Peer::start(plain(&broker, "c1"), &[TO_C1], Kept::default());
    agent.up().await?;
    broker.stop().await?;
    tokio::time::timeout(wait::DEADLINE, agent.link.disconnected()).await?;
    agent.scope.close(Duration::from_secs(5)).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_consumers_each_get_their_own() -> Result<()> {
    let broker = TestBroker::embedded_with(BrokerConfig::default()).await?;
    let server = Peer::start(plain(&broker, "maestro"), &[], Kept::default());
    server.up().await?;
    let mut agents = Vec::new();
    for number in 0..300 {
        let (name, topic) =
            (format!("c{number}"), format!("sources/maestro/consumers/c{number}/sourceevents"));
        agents.push(Peer::start(plain(&broker, &name), &[&topic], Kept::default()));
    }
    for agent in &agents {
        agent.up().await?;
    }
    for (number, agent) in agents.iter_mut().enumerate() {
        let topic = format!("sources/maestro/consumers/c{number}/sourceevents");
        server.link.publish(&topic, message(number.to_string())).await?;
        assert_eq!(agent.next().await?, (topic, message(number.to_string())));
        assert_eq!(agent.waiting(), 0);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_with_the_certificate_it_was_made_with_and_the_client_comes_back_with_a_new_one()
-> Result<()> {
    let certificates = Certificates::new()?;
    let broker = TestBroker::embedded(&certificates).await?;
    let neighbour = Peer::connect(&broker, &certificates, "c2", "c2-client", &[]).await?;
    let mut brief = options(&broker, &certificates, "c1", "c1-client")?;
    // It does not notice by itself that its files are new: the broker has to send it away.
    brief.reread = Duration::from_hours(1);
    let expires = SystemClock.now() + SignedDuration::from_secs(4);
    certificates.issue_for("c1", Usage::Client, SignedDuration::from_secs(4))?;
    let agent = Peer::start(brief, &[TO_C1], Kept::default());
    agent.up().await?;
    tokio::time::timeout(wait::DEADLINE, agent.link.disconnected()).await?;
    assert!(SystemClock.now() >= expires, "not before its time");
    assert_eq!(agent.inbox.connects(), 1, "the certificate that has expired opens nothing");

    certificates.issue("c1", Usage::Client)?;
    // The link is up a moment before its owner hears of it.
    wait::until("the second connect", || async { Ok((agent.inbox.connects() == 2).then_some(())) }).await?;
    assert_eq!(neighbour.inbox.connects(), 1, "other clients are not affected");
    assert!(neighbour.link.is_connected());
    Ok(())
}
