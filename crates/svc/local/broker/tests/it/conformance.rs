//! What any broker must do for Maestro, over the link as it is used.

use std::time::Duration;

use anyhow::{Context as _, Result};
use aro_fixtures::wait;
use aro_mqtt::{Credentials, PublishError, Subscribers};
use aro_pki::Usage;
use futures::StreamExt as _;

use crate::peers::{Certificates, Kept, Peer, TestBroker, message, options};

const TO_C1: &str = "sources/maestro/consumers/c1/sourceevents";
const FROM_C1: &str = "sources/maestro/consumers/c1/agentevents";
const FROM_C2: &str = "sources/maestro/consumers/c2/agentevents";
const FROM_ALL: &str = "sources/maestro/consumers/+/agentevents";
const SHARED: &str = "$share/statussubscribers/sources/maestro/consumers/+/agentevents";

/// Each scenario runs against both brokers. `make deps` installs mosquitto; where it is missing, that is said aloud.
macro_rules! both {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() -> Result<()> {
                let certificates = Certificates::new()?;
                let broker = TestBroker::embedded(&certificates).await?;
                super::$name(broker, certificates).await
            })*
        }
        mod mosquitto {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() -> Result<()> {
                let certificates = Certificates::new()?;
                match TestBroker::mosquitto(&certificates).await? {
                    Some(broker) => super::$name(broker, certificates).await,
                    None => {
                        aro_prerequisites::skip("mosquitto is not installed; `make deps` installs it");
                        Ok(())
                    }
                }
            })*
        }
    };
}

both!(
    messages_pass_both_ways_untouched,
    a_share_gives_each_message_to_one_member,
    nobody_speaks_for_another_or_listens_to_it,
    half_a_megabyte_passes_and_what_is_larger_fails_alone,
    a_restarted_broker_is_found_again,
    a_stranger_is_not_let_in,
    a_rotated_certificate_is_taken_over,
    unacknowledged_messages_hold_the_window,
    many_publishes_are_in_flight_at_once,
    a_message_that_nobody_gets_is_told_so,
);

async fn messages_pass_both_ways_untouched(broker: TestBroker, certificates: Certificates) -> Result<()> {
    let mut server = Peer::connect(&broker, &certificates, "maestro", "maestro-1", &[FROM_ALL]).await?;
    let mut agent = Peer::connect(&broker, &certificates, "c1", "c1-client", &[TO_C1]).await?;
    server.link.publish(TO_C1, message("spec")).await?;
    assert_eq!(agent.next().await?, (TO_C1.to_owned(), message("spec")));
    agent.link.publish(FROM_C1, message("status")).await?;
    assert_eq!(server.next().await?, (FROM_C1.to_owned(), message("status")));
    agent.link.publish(FROM_C1, message("")).await?;
    assert_eq!(server.next().await?.1, message(""), "no payload at all");
    Ok(())
}

async fn a_share_gives_each_message_to_one_member(
    broker: TestBroker,
    certificates: Certificates,
) -> Result<()> {
    let mut one = Peer::connect(&broker, &certificates, "maestro", "maestro-1", &[SHARED]).await?;
    let mut two = Peer::connect(&broker, &certificates, "maestro", "maestro-2", &[SHARED]).await?;
    let agent = Peer::connect(&broker, &certificates, "c1", "c1-client", &[TO_C1]).await?;
    for number in 0..20 {
        agent.link.publish(FROM_C1, message(number.to_string())).await?;
    }
    let (mut first, mut second) = (0, 0);
    while first + second < 20 {
        tokio::select! {
            next = one.next() => { next?; first += 1; }
            next = two.next() => { next?; second += 1; }
        }
    }
    assert!(first >= 5 && second >= 5, "{first} and {second}");
    assert_eq!((one.waiting(), two.waiting()), (0, 0), "none comes twice");
    Ok(())
}

async fn nobody_speaks_for_another_or_listens_to_it(
    broker: TestBroker,
    certificates: Certificates,
) -> Result<()> {
    let mut server = Peer::connect(&broker, &certificates, "maestro", "maestro-1", &[FROM_ALL]).await?;
    let agent = Peer::connect(&broker, &certificates, "c1", "c1-client", &[TO_C1]).await?;
    let refused = agent.link.publish(FROM_C2, message("forged")).await;
    assert_eq!(refused, Err(PublishError::Refused(0x87)));
    agent.link.publish(FROM_C1, message("own")).await?;
    assert_eq!(server.next().await?, (FROM_C1.to_owned(), message("own")), "the forged one did not pass");
    // mosquitto accepts the subscription and delivers nothing; ours rejects it.
    let mut spying = options(&broker, &certificates, "c2", "c2-client")?;
    spying.refused_pause = Duration::from_millis(20);
    let mut spy = Peer::start(spying, &[TO_C1], Kept::default());
    if let TestBroker::Embedded { .. } = &broker {
        wait::until("the rejection", || async {
            Ok(spy.metrics.encode().contains("mqtt_link_refused_subscriptions_total 2").then_some(()))
        })
        .await?;
        assert!(!spy.link.is_connected());
        assert!(broker.metrics().contains("broker_refused_total"), "{}", broker.metrics());
    } else {
        spy.up().await?;
    }
    server.link.publish(TO_C1, message("secret")).await?;
    wait::until("c1 to get its message", || async { Ok((agent.inbox.connects() > 0).then_some(())) }).await?;
    assert_eq!(spy.waiting(), 0);
    Ok(())
}

async fn half_a_megabyte_passes_and_what_is_larger_fails_alone(
    broker: TestBroker,
    certificates: Certificates,
) -> Result<()> {
    let server = Peer::connect(&broker, &certificates, "maestro", "maestro-1", &[FROM_ALL]).await?;
    let mut agent = Peer::connect(&broker, &certificates, "c1", "c1-client", &[TO_C1]).await?;
    let large = message(vec![7; 500 * 1024]);
    server.link.publish(TO_C1, large.clone()).await?;
    assert_eq!(agent.next().await?.1, large);
    let refused = server.link.publish(TO_C1, message(vec![7; 512 * 1024])).await;
    assert!(matches!(refused, Err(PublishError::TooLarge(_))), "{refused:?}");
    let mut long = message("x");
    long.user_properties.push(("ce-metadata".to_owned(), "x".repeat(70_000)));
    let refused = server.link.publish(TO_C1, long).await;
    assert!(matches!(refused, Err(PublishError::TooLarge(_))), "{refused:?}");
    server.link.publish(TO_C1, message("after")).await?;
    assert_eq!(agent.next().await?.1, message("after"));
    assert_eq!(server.inbox.connects(), 1, "the connection is still the first one");
    Ok(())
}

async fn a_restarted_broker_is_found_again(mut broker: TestBroker, certificates: Certificates) -> Result<()> {
    let server = Peer::connect(&broker, &certificates, "maestro", "maestro-1", &[FROM_ALL]).await?;
    let mut agent = Peer::connect(&broker, &certificates, "c1", "c1-client", &[TO_C1]).await?;
    for round in 2..4 {
        broker.stop().await?;
        tokio::time::timeout(wait::DEADLINE, server.link.disconnected()).await.context("still connected")?;
        tokio::time::timeout(wait::DEADLINE, agent.link.disconnected()).await.context("still connected")?;
        let down = server.link.publish(TO_C1, message("lost")).await;
        assert_eq!(down, Err(PublishError::Down), "nothing is queued while the broker is away");
        broker.start().await?;
        server.up().await?;
        agent.up().await?;
        wait::until("both to be told", || async {
            Ok((server.inbox.connects() == round && agent.inbox.connects() == round).then_some(()))
        })
        .await?;
        server.link.publish(TO_C1, message("again")).await?;
        assert_eq!(agent.next().await?.1, message("again"), "it has subscribed again");
    }
    Ok(())
}

async fn a_stranger_is_not_let_in(broker: TestBroker, certificates: Certificates) -> Result<()> {
    let strangers = Certificates::new()?;
    let mut unknown = options(&broker, &certificates, "c1", "c1-client")?;
    // Its authority is not the broker's, but it trusts the broker's.
    let mut paths = strangers.issue("c1", Usage::Client)?;
    paths.bundle = certificates.issue("x", Usage::Client)?.bundle;
    unknown.credentials = Some(Credentials::Files(paths));
    let mut plain = options(&broker, &certificates, "c1", "c1-plain")?;
    plain.credentials = None;
    let mut suspicious = options(&broker, &certificates, "c1", "c1-suspicious")?;
    // It does not know the broker's authority.
    suspicious.credentials = Some(Credentials::Files(strangers.issue("c1", Usage::Client)?));
    let peers: Vec<Peer> =
        [unknown, plain, suspicious].into_iter().map(|o| Peer::start(o, &[TO_C1], Kept::default())).collect();
    let known = Peer::connect(&broker, &certificates, "c1", "c1-known", &[TO_C1]).await?;
    assert!(known.link.is_connected());
    // Long enough for several attempts: the first pauses are 50 and 100 ms.
    let ever = futures::future::select_all(peers.iter().map(|peer| Box::pin(peer.link.connected())));
    assert!(tokio::time::timeout(Duration::from_millis(500), ever).await.is_err(), "a stranger got in");
    Ok(())
}

async fn a_rotated_certificate_is_taken_over(broker: TestBroker, certificates: Certificates) -> Result<()> {
    let mut server = Peer::connect(&broker, &certificates, "maestro", "maestro-1", &[FROM_ALL]).await?;
    let mut rotating = options(&broker, &certificates, "c1", "c1-client")?;
    rotating.reread = Duration::from_millis(20);
    let agent = Peer::start(rotating, &[TO_C1], Kept::default());
    agent.up().await?;
    certificates.issue("c1", Usage::Client)?;
    wait::until("the link to connect anew", || async { Ok((agent.inbox.connects() == 2).then_some(())) })
        .await?;
    agent.link.publish(FROM_C1, message("new")).await?;
    assert_eq!(server.next().await?.1, message("new"));
    Ok(())
}

async fn unacknowledged_messages_hold_the_window(
    broker: TestBroker,
    certificates: Certificates,
) -> Result<()> {
    let server = Peer::connect(&broker, &certificates, "maestro", "maestro-1", &[FROM_ALL]).await?;
    let mut narrow = options(&broker, &certificates, "c1", "c1-client")?;
    narrow.receive_window = 5;
    let agent = Peer::start(narrow, &[TO_C1], Kept::holding());
    agent.up().await?;
    for number in 0..12 {
        server.link.publish(TO_C1, message(number.to_string())).await?;
    }
    let held = |count| {
        let inbox = agent.inbox.clone();
        async move {
            wait::until("messages up to the window", || async { Ok((inbox.held() == count).then_some(())) })
                .await
        }
    };
    held(5).await?;
    agent.inbox.release(3);
    if let TestBroker::Embedded { .. } = &broker {
        held(5).await?;
        agent.inbox.release(5);
        held(4).await?;
    } else {
        // mosquitto 2.0.11 forgets the window after the first ack; the link bears it.
        held(9).await?;
    }
    assert_eq!(agent.inbox.connects(), 1, "the connection is still the first one");
    Ok(())
}

async fn many_publishes_are_in_flight_at_once(broker: TestBroker, certificates: Certificates) -> Result<()> {
    let server = Peer::connect(&broker, &certificates, "maestro", "maestro-1", &[FROM_ALL]).await?;
    let mut agent = Peer::connect(&broker, &certificates, "c1", "c1-client", &[TO_C1]).await?;
    let sending = futures::stream::iter(0..3000)
        .map(|number: u32| server.link.publish(TO_C1, message(number.to_string())))
        .buffer_unordered(2000)
        .collect::<Vec<_>>();
    let receiving = async {
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 3000 {
            seen.insert(agent.next().await?.1.payload);
        }
        Ok::<_, anyhow::Error>(())
    };
    let (sent, received) = futures::join!(sending, receiving);
    received?;
    assert!(sent.iter().all(Result::is_ok), "{:?}", sent.iter().find(|sent| sent.is_err()));
    Ok(())
}

async fn a_message_that_nobody_gets_is_told_so(broker: TestBroker, certificates: Certificates) -> Result<()> {
    let server = Peer::connect(&broker, &certificates, "maestro", "maestro-1", &[FROM_ALL]).await?;
    assert_eq!(server.link.publish_matching(TO_C1, message("spec")).await?, Subscribers::None);
    let mut agent = Peer::connect(&broker, &certificates, "c1", "c1-client", &[TO_C1]).await?;
    assert_eq!(server.link.publish_matching(TO_C1, message("again")).await?, Subscribers::Matched);
    assert_eq!(agent.next().await?.1, message("again"));
    Ok(())
}
