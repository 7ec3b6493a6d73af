//! Events of unauthorized publishers, and malformed messages.

use anyhow::{Result, bail, ensure};
use aro_bundle::{Action, Event, EventType, mqtt};
use aro_event_service::ClientError;
use aro_fixtures::wait;
use aro_maestro_e2e::chain::broker_client::topics;
use aro_maestro_e2e::chain::{
    Broker, BrokerClient, BrokerKind, Chain, Cluster, SeededRandom, condition, config_map, metric, spec,
};
use serde_json::json;
use tonic::Code;

const NAMESPACE: &str = "default";

/// A status that a server would store from the right agent.
fn forged(consumer: &str, id: &str) -> Result<Event> {
    let kind = EventType::status(Action::Update);
    let mut event = Event::new(uuid::Uuid::new_v4().to_string(), "forger", kind, consumer);
    event.original_source = Some("maestro".to_owned());
    event.resource_id = Some(id.to_owned());
    event.resource_version = Some(1);
    event.sequence_id = Some("9000000000000000000".to_owned());
    event.metadata = Some("{}".to_owned());
    let deleted = json!({"type": "Deleted", "status": "True", "reason": "ManifestsDeleted", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    Ok(event.with_payload(&json!({"conditions": [deleted]}))?)
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_can_neither_subscribe_nor_publish_for_another_consumer() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1", "c2"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c2").await?;
    let _agent = chain.agent("c2", &cluster).await?;
    let source = chain.source("src", 0)?;
    let id = source.create("c2", "work", &spec(vec![config_map(NAMESPACE, "one", "a")])).await?;
    let before = chain.settled(&id, 1).await?;
    let address = chain.broker.address().to_string();
    let Broker::Ours(broker, _) = &chain.broker else { bail!("our broker counts") };

    // The broker: no topic of another consumer, neither to subscribe nor to publish.
    let refusals = async || metric(broker, "broker_refused_total", "").await;
    let at_first = refusals().await?;
    let filters = vec![topics().to_agent("c2")];
    let request_counter = BrokerClient::connecting(&chain.pki, "c1", &address, filters)?;
    wait::until("the subscription to be refused", || async {
        Ok((refusals().await? > at_first).then_some(()))
    })
    .await?;
    ensure!(!request_counter.link.is_connected());
    let forger = BrokerClient::of_consumer(&chain.pki, "c1", &address).await?;
    let before_publish = refusals().await?;
    ensure!(forger.publish_as_agent("c2", &forged("c2", &id)?).await.is_err(), "another's topic");
    ensure!(refusals().await? > before_publish);

    // The server: nothing about another consumer's bundle on the own topic, under either name.
    let server = &chain.servers[0];
    let forger = BrokerClient::of_consumer(&chain.pki, "c1", &address).await?;
    forger.publish_as_agent("c1", &forged("c2", &id)?).await?;
    wait::until("the false name to be counted", || async {
        let count = metric(server, "cloudevents_refused_total", "other_consumer").await?;
        Ok((count == 1).then_some(()))
    })
    .await?;
    forger.publish_as_agent("c1", &forged("c1", &id)?).await?;
    wait::until("the false report to be counted", || async {
        Ok((metric(server, "maestro_statuses_total", "wrong_consumer").await? == 1).then_some(()))
    })
    .await?;
    ensure!(chain.bundle(&id).await?.expect(200)?.json() == before, "the row is untouched");
    ensure!(request_counter.received().is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_messages_are_counted_and_dropped() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let _agent = chain.agent("c1", &cluster).await?;
    let source = chain.source("src", 0)?;
    let id = source.create("c1", "work", &spec(vec![config_map(NAMESPACE, "one", "a")])).await?;
    chain.settled(&id, 1).await?;
    let babbler = BrokerClient::of_consumer(&chain.pki, "c1", &chain.broker.address().to_string()).await?;
    let mut random = SeededRandom::new(1234);
    let mut senseless = 0;
    for _ in 0..300 {
        let (message, certain) = mutated_event(&mut random, &forged("c1", &id)?);
        senseless += u64::from(certain);
        babbler.link.publish(&topics().from_agent("c1"), message).await?;
    }
    ensure!(senseless > 100);
    let server = &chain.servers[0];
    wait::until("what makes no sense to be counted", || async {
        let refused = metric(server, "cloudevents_refused_total", "").await?;
        Ok((refused >= senseless).then_some(()))
    })
    .await?;
    // The chain works afterwards.
    let other = source.create("c1", "other", &spec(vec![config_map(NAMESPACE, "two", "a")])).await?;
    chain.settled(&other, 1).await?;
    let bundle = chain.settled(&id, 1).await?;
    ensure!(condition(&bundle, "Deleted").is_none(), "{bundle:#}");
    chain.all_delivered().await
}

/// A mutated event, and whether it is certainly invalid.
fn mutated_event(random: &mut SeededRandom, event: &Event) -> (mqtt::Message, bool) {
    let mut message = mqtt::write(event);
    // It must not be a valid report: none of these is accepted as a finished deletion.
    message.payload = r#"{"conditions":null}"#.into();
    let set = |message: &mut mqtt::Message, name: &str, value: &str| {
        for property in message.user_properties.iter_mut().filter(|(known, _)| known == name) {
            value.clone_into(&mut property.1);
        }
    };
    let certain = match random.below(10) {
        0 => {
            message.user_properties.clear();
            true
        }
        1 => {
            let required =
                ["ce-type", "ce-resourceid", "ce-resourceversion", "ce-specversion", "ce-clustername"];
            let gone = required[random.below(required.len())];
            message.user_properties.retain(|(name, _)| name != gone);
            true
        }
        2 => {
            set(&mut message, "ce-type", ["", "a.b", "x.y.z.status.dance", "\u{1f980}"][random.below(4)]);
            true
        }
        3 => {
            set(
                &mut message,
                "ce-resourceversion",
                ["", "many", "99999999999999999999", "1e999"][random.below(4)],
            );
            true
        }
        4 => {
            message.content_type = Some("application/cloudevents+json".to_owned());
            message.payload = vec![b'{'; random.below(2000)].into();
            true
        }
        5 => {
            let bytes: Vec<u8> = (0..random.below(4000)).map(|_| random.throw() as u8).collect();
            message.payload = bytes.into();
            false
        }
        6 => {
            message.payload = vec![b'['; 300 * 1024 + random.below(100 * 1024)].into();
            false
        }
        7 => {
            set(&mut message, "ce-sequenceid", ["", "-1", "soon", "99999999999999999999"][random.below(4)]);
            false
        }
        8 => {
            set(&mut message, "ce-metadata", &"{".repeat(random.below(60_000)));
            set(&mut message, "ce-resourceid", &"x".repeat(random.below(5_000)));
            false
        }
        _ => {
            let count = random.below(200);
            message
                .user_properties
                .extend((0..count).map(|number| (format!("ce-x{number}"), "y".repeat(50))));
            set(&mut message, "ce-resourceversion", "7");
            false
        }
    };
    (message, certain)
}

#[tokio::test(flavor = "multi_thread")]
async fn source_gets_only_its_own_statuses_and_acts_for_no_other() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1", "c2"]).await? else { return Ok(()) };
    let clusters = [Cluster::start("c1").await?, Cluster::start("c2").await?];
    let _agents = [chain.agent("c1", &clusters[0]).await?, chain.agent("c2", &clusters[1]).await?];
    let (first, second) = (chain.source("first", 0)?, chain.source("second", 0)?);
    let mut received = [first.subscribe().await?, second.subscribe().await?];
    let mut own = [Vec::new(), Vec::new()];
    for consumer in ["c1", "c2"] {
        for (source, ids) in [&first, &second].into_iter().zip(&mut own) {
            let name = format!("{}-map", source.name);
            // The same name of a work from two sources: two bundles.
            let id =
                source.create(consumer, "work", &spec(vec![config_map(NAMESPACE, &name, consumer)])).await?;
            chain.settled(&id, 1).await?;
            ids.push(id);
        }
    }
    for (stream, ids) in received.iter_mut().zip(&own) {
        let mut left = ids.clone();
        while !left.is_empty() {
            let Some(event) = tokio::time::timeout(wait::DEADLINE, stream.next()).await?? else { continue };
            let id = event.resource_id.unwrap_or_default();
            ensure!(ids.contains(&id), "a source was told of another's bundle");
            left.retain(|one| *one != id);
        }
    }
    // Each cluster has its own manifests.
    for (cluster, consumer) in clusters.iter().zip(["c1", "c2"]) {
        for name in ["first-map", "second-map"] {
            ensure!(cluster.config_map(NAMESPACE, name).await? == Some(json!({"value": consumer})));
        }
    }
    // The first source's certificate, the second one's name.
    let wanted = spec(vec![config_map(NAMESPACE, "third-map", "x")]);
    let denied = |answer: Result<(), ClientError>| match answer {
        Err(ClientError::Refused(status)) if status.code() == Code::PermissionDenied => Ok(()),
        other => bail!("expected PermissionDenied, got {other:?}"),
    };
    let event = second.event(Action::Create, "c1", "other", 0, Some(&wanted))?;
    denied(first.client.clone().publish(&event).await)?;
    denied(first.client.clone().subscribe("second").await.map(drop))?;
    // Its own name, the second one's bundle.
    for action in [Action::Update, Action::Delete] {
        let mut event = first.event(action, "c1", "work", 0, Some(&wanted))?;
        event.resource_id = Some(own[1][0].clone());
        denied(first.client.clone().publish(&event).await)?;
    }
    let untouched = chain.bundle(&own[1][0]).await?.expect(200)?.json();
    ensure!(untouched["version"] == 1 && untouched.get("deleted_at").is_none(), "{untouched:#}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_of_an_unknown_consumer_is_logged_and_served_once_it_is_created() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c2").await?;
    let _early = chain.agent("c2", &cluster).await?;
    wait::until("the server to tell of it", || async {
        let told = chain.servers[0].log_text();
        Ok(told.contains("resync request of an unknown consumer").then_some(()))
    })
    .await?;
    let source = chain.source("src", 0)?;
    let wanted = spec(vec![config_map(NAMESPACE, "one", "a")]);
    ensure!(source.create("c2", "work", &wanted).await.is_err(), "there is no such consumer");

    chain.rest(0)?.post("/api/maestro/v1/consumers", Some(&json!({"name": "c2"}))).await?.expect(201)?;
    let id = source.create("c2", "work", &wanted).await?;
    chain.settled(&id, 1).await?;
    ensure!(cluster.config_map(NAMESPACE, "one").await?.is_some());
    Ok(())
}
