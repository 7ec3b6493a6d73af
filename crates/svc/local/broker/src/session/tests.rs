use bytes::BytesMut;
use proptest::prelude::*;

use super::*;
use crate::acl::Acl;
use crate::hub::Limits;
use crate::metrics::BrokerMetrics;

const LIMITS: Limits = Limits {
    max_packet: 10_000,
    receive_maximum: 10,
    queue_messages: 10,
    queue_bytes: 100_000,
    subscriptions: 2,
};

fn hub() -> Arc<Hub> {
    Arc::new(Hub::new(Acl::new("maestro", ["maestro".to_owned()]), LIMITS, BrokerMetrics::default()))
}

fn client(hub: &Arc<Hub>, identity: &str) -> Session {
    let accepted = AcceptedClient {
        identity: identity.to_owned(),
        client_id: format!("{identity}-client"),
        keep_alive: 60,
        window: 100,
        largest: 10_000,
    };
    Session::new(hub.clone(), accepted).unwrap()
}

fn publish(topic: &str) -> Frame {
    Frame::Publish(PublishFrame {
        qos: 1,
        retain: false,
        topic: Bytes::copy_from_slice(topic.as_bytes()),
        packet_id: 5,
        body: Bytes::from_static(b"\0payload"),
    })
}

fn subscribe(path: &str) -> Frame {
    let mut subscribe = Subscribe::new(rumqttc::v5::mqttbytes::v5::Filter::new(path, QoS::AtLeastOnce), None);
    subscribe.pkid = 9;
    Frame::Other(Box::new(Packet::Subscribe(subscribe)))
}

fn sent_to(session: &Session) -> Vec<Frame> {
    let mut out = BytesMut::new();
    session.outbox.take(&mut out);
    std::iter::from_fn(|| wire::take_frame(&mut out, 1 << 20).unwrap()).collect()
}

fn suback(frame: &Frame) -> SubscribeReasonCode {
    let Frame::Other(packet) = frame else { panic!("{frame:?}") };
    let Packet::SubAck(answer) = &**packet else { panic!("{packet:?}") };
    answer.return_codes[0]
}

#[test]
fn message_reaches_its_subscriber_and_is_acknowledged() {
    let hub = hub();
    let (mut server, mut agent) = (client(&hub, "maestro"), client(&hub, "c1"));
    assert_eq!(agent.handle(subscribe("sources/maestro/consumers/c1/sourceevents")), Next::Continue);
    assert_eq!(suback(&sent_to(&agent)[0]), SubscribeReasonCode::Success(QoS::AtLeastOnce));
    assert_eq!(server.handle(publish("sources/maestro/consumers/c1/sourceevents")), Next::Continue);
    assert_eq!(sent_to(&server), [Frame::Ack(5, 0)]);
    let Some(Frame::Publish(got)) = sent_to(&agent).pop() else { panic!("nothing") };
    assert_eq!((got.body.as_ref(), got.qos), (&b"\0payload"[..], 1));
}

#[test]
fn consumer_can_neither_publish_nor_subscribe_for_another() {
    let hub = hub();
    let mut agent = client(&hub, "c1");
    agent.handle(publish("sources/maestro/consumers/c2/agentevents"));
    assert_eq!(sent_to(&agent), [Frame::Ack(5, 0x87)]);
    agent.handle(subscribe("sources/maestro/consumers/c2/sourceevents"));
    assert_eq!(suback(&sent_to(&agent)[0]), SubscribeReasonCode::NotAuthorized);
    agent.handle(subscribe("sources/maestro/consumers/+/sourceevents"));
    assert_eq!(suback(&sent_to(&agent)[0]), SubscribeReasonCode::NotAuthorized);
    assert_eq!(hub.metrics.refused.get(), 3);
}

#[test]
fn unacked_message_of_a_share_is_redelivered_to_another_member() {
    let hub = hub();
    let filter = "$share/g/sources/maestro/consumers/+/agentevents";
    let mut agent = client(&hub, "c1");
    let mut one = client(&hub, "maestro");
    one.handle(subscribe(filter));
    sent_to(&one);
    agent.handle(publish("sources/maestro/consumers/c1/agentevents"));
    assert_eq!(sent_to(&one).len(), 1);
    let mut two =
        Session::new(hub.clone(), AcceptedClient { client_id: "two".to_owned(), ..one.accepted.clone() })
            .unwrap();
    two.handle(subscribe(filter));
    sent_to(&two);
    drop(one);
    assert!(matches!(sent_to(&two)[..], [Frame::Publish(_)]));
    assert_eq!(hub.metrics.dropped.get(), 0);
}

#[test]
fn client_id_is_taken_over_only_within_one_identity() {
    let hub = hub();
    let one = client(&hub, "c1");
    let accepted =
        AcceptedClient { client_id: "c1-client".to_owned(), ..client(&hub, "c2").accepted.clone() };
    let _other = Session::new(hub.clone(), accepted).unwrap();
    assert!(one.outbox.is_open());
    let _same = client(&hub, "c1");
    assert!(!one.outbox.is_open());
}

#[test]
fn unsupported_packet_ends_the_connection_with_its_reason() {
    let hub = hub();
    let mut agent = client(&hub, "c1");
    let Frame::Publish(plain) = publish("sources/maestro/consumers/c1/agentevents") else { panic!() };
    for (frame, reason) in [
        (PublishFrame { retain: true, ..plain.clone() }, RETAIN_NOT_SUPPORTED),
        (PublishFrame { qos: 2, ..plain.clone() }, QUALITY_NOT_SUPPORTED),
        (PublishFrame { topic: Bytes::from_static(b"a/+"), ..plain.clone() }, TOPIC_INVALID),
        (PublishFrame { body: Bytes::from_static(&[3, 35, 0, 1]), ..plain }, 0x94),
    ] {
        assert_eq!(agent.handle(Frame::Publish(frame)), Next::End(reason));
    }
    let again = Frame::Other(Box::new(Packet::PingResp(rumqttc::v5::mqttbytes::v5::PingResp)));
    assert_eq!(agent.handle(again), Next::End(PROTOCOL_ERROR));
}

#[test]
fn connections_of_one_identity_are_limited() {
    let hub = hub();
    let accepted = |identity: &str, number: usize| {
        let mut accepted = client(&hub, "x").accepted.clone();
        accepted.identity = identity.to_owned();
        accepted.client_id = number.to_string();
        accepted
    };
    let mut all: Vec<Session> =
        (0..100).map(|number| Session::new(hub.clone(), accepted("c1", number)).unwrap()).collect();
    assert!(Session::new(hub.clone(), accepted("c1", 100)).is_none());
    assert!(Session::new(hub.clone(), accepted("c1", 7)).is_some(), "it replaces the client with that id");
    assert!(Session::new(hub.clone(), accepted("c2", 1)).is_some(), "other identities have their own limit");
    all.pop();
    assert!(Session::new(hub.clone(), accepted("c1", 100)).is_some());
}

#[test]
fn fast_consumer_is_throttled_and_a_server_never() {
    let hub = hub();
    let (mut server, mut agent) = (client(&hub, "maestro"), client(&hub, "c1"));
    server.handle(subscribe("sources/maestro/consumers/+/agentevents"));
    agent.handle(subscribe("sources/maestro/consumers/c1/sourceevents"));
    let sends = |from: &mut Session, topic: &str| {
        let mut sent = 0;
        while from.throttled_by.is_none() && sent < LIMITS.queue_messages {
            from.handle(publish(topic));
            sent += 1;
        }
        sent
    };
    assert_eq!(sends(&mut agent, "sources/maestro/consumers/c1/agentevents"), LIMITS.queue_messages / 2 + 1);
    assert!(server.outbox.is_open());
    assert_eq!(sends(&mut server, "sources/maestro/consumers/c1/sourceevents"), LIMITS.queue_messages);
    sent_to(&server);
    for packet_id in 1..=10 {
        server.handle(Frame::Ack(packet_id, 0));
    }
    assert!(!agent.throttled_by.take().unwrap().is_crowded(), "the server has read on");
}

#[test]
fn packet_with_too_many_filters_ends_the_connection() {
    let mut agent = client(&hub(), "c1");
    let mut many = Unsubscribe::new("a", None);
    many.filters = vec!["a".to_owned(); 1001];
    let many = Frame::Other(Box::new(Packet::Unsubscribe(many)));
    assert_eq!(agent.handle(many), Next::End(QUOTA_EXCEEDED));
}

#[test]
fn disconnected_client_leaves_nothing_behind() {
    let hub = hub();
    let mut agent = client(&hub, "c1");
    agent.handle(subscribe("sources/maestro/consumers/c1/sourceevents"));
    drop(agent);
    let mut server = client(&hub, "maestro");
    server.handle(publish("sources/maestro/consumers/c1/sourceevents"));
    assert_eq!(sent_to(&server), [Frame::Ack(5, 0x10)], "no subscriber is left");
    assert_eq!(hub.metrics.connections.get(), 1);
}

proptest! {
    #[test]
    fn no_packets_make_a_session_panic(
        packets in proptest::collection::vec(
            (any::<u8>(), proptest::collection::vec(prop_oneof![Just(0_u8), 0_u8..5, any::<u8>()], 0..60)), 0..10),
    ) {
        let hub = hub();
        let mut agent = client(&hub, "c1");
        for (first, inside) in packets {
            let mut bytes = BytesMut::from(&[first, inside.len() as u8][..]);
            bytes.extend_from_slice(&inside);
            if let Ok(Some(frame)) = wire::take_frame(&mut bytes, 10_000) {
                agent.handle(frame);
            }
        }
    }
}
