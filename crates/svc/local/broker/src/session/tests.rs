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
    let guest = Guest {
        identity: identity.to_owned(),
        client_id: format!("{identity}-client"),
        keep_alive: 60,
        window: 100,
        largest: 10_000,
    };
    Session::new(hub.clone(), guest).unwrap()
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

fn said(session: &Session) -> Vec<Frame> {
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
fn a_message_reaches_who_subscribes_and_its_publisher_is_told() {
    let hub = hub();
    let (mut server, mut agent) = (client(&hub, "maestro"), client(&hub, "c1"));
    assert_eq!(agent.handle(subscribe("sources/maestro/consumers/c1/sourceevents")), Next::Continue);
    assert_eq!(suback(&said(&agent)[0]), SubscribeReasonCode::Success(QoS::AtLeastOnce));
    assert_eq!(server.handle(publish("sources/maestro/consumers/c1/sourceevents")), Next::Continue);
    assert_eq!(said(&server), [Frame::Ack(5, 0)]);
    let Some(Frame::Publish(got)) = said(&agent).pop() else { panic!("nothing") };
    assert_eq!((got.body.as_ref(), got.qos), (&b"\0payload"[..], 1));
}

#[test]
fn one_consumer_can_neither_speak_for_another_nor_listen_to_it() {
    let hub = hub();
    let mut agent = client(&hub, "c1");
    agent.handle(publish("sources/maestro/consumers/c2/agentevents"));
    assert_eq!(said(&agent), [Frame::Ack(5, 0x87)]);
    agent.handle(subscribe("sources/maestro/consumers/c2/sourceevents"));
    assert_eq!(suback(&said(&agent)[0]), SubscribeReasonCode::NotAuthorized);
    agent.handle(subscribe("sources/maestro/consumers/+/sourceevents"));
    assert_eq!(suback(&said(&agent)[0]), SubscribeReasonCode::NotAuthorized);
    assert_eq!(hub.metrics.refused.get(), 3);
}

#[test]
fn a_message_of_a_share_goes_to_another_member_when_its_own_leaves_without_acknowledging() {
    let hub = hub();
    let filter = "$share/g/sources/maestro/consumers/+/agentevents";
    let mut agent = client(&hub, "c1");
    let mut one = client(&hub, "maestro");
    one.handle(subscribe(filter));
    said(&one);
    agent.handle(publish("sources/maestro/consumers/c1/agentevents"));
    assert_eq!(said(&one).len(), 1);
    let mut two =
        Session::new(hub.clone(), Guest { client_id: "two".to_owned(), ..one.guest.clone() }).unwrap();
    two.handle(subscribe(filter));
    said(&two);
    drop(one);
    assert!(matches!(said(&two)[..], [Frame::Publish(_)]));
    assert_eq!(hub.metrics.dropped.get(), 0);
}

#[test]
fn a_client_id_is_taken_over_only_from_the_same_identity() {
    let hub = hub();
    let one = client(&hub, "c1");
    let guest = Guest { client_id: "c1-client".to_owned(), ..client(&hub, "c2").guest.clone() };
    let _other = Session::new(hub.clone(), guest).unwrap();
    assert!(one.outbox.is_open());
    let _same = client(&hub, "c1");
    assert!(!one.outbox.is_open());
}

#[test]
fn what_is_not_offered_ends_the_connection_with_its_reason() {
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
fn one_identity_cannot_take_all_places() {
    let hub = hub();
    let guest = |identity: &str, number: usize| {
        let mut guest = client(&hub, "x").guest.clone();
        guest.identity = identity.to_owned();
        guest.client_id = number.to_string();
        guest
    };
    let mut all: Vec<Session> =
        (0..100).map(|number| Session::new(hub.clone(), guest("c1", number)).unwrap()).collect();
    assert!(Session::new(hub.clone(), guest("c1", 100)).is_none());
    assert!(Session::new(hub.clone(), guest("c1", 7)).is_some(), "instead of the one of that name");
    assert!(Session::new(hub.clone(), guest("c2", 1)).is_some(), "others have their own places");
    all.pop();
    assert!(Session::new(hub.clone(), guest("c1", 100)).is_some());
}

#[test]
fn a_consumer_that_sends_faster_than_the_server_reads_is_held_back_and_a_server_never() {
    let hub = hub();
    let (mut server, mut agent) = (client(&hub, "maestro"), client(&hub, "c1"));
    server.handle(subscribe("sources/maestro/consumers/+/agentevents"));
    agent.handle(subscribe("sources/maestro/consumers/c1/sourceevents"));
    let sends = |from: &mut Session, topic: &str| {
        let mut sent = 0;
        while from.held_by.is_none() && sent < LIMITS.queue_messages {
            from.handle(publish(topic));
            sent += 1;
        }
        sent
    };
    assert_eq!(sends(&mut agent, "sources/maestro/consumers/c1/agentevents"), LIMITS.queue_messages / 2 + 1);
    assert!(server.outbox.is_open());
    assert_eq!(sends(&mut server, "sources/maestro/consumers/c1/sourceevents"), LIMITS.queue_messages);
    said(&server);
    for packet_id in 1..=10 {
        server.handle(Frame::Ack(packet_id, 0));
    }
    assert!(!agent.held_by.take().unwrap().is_crowded(), "the server has read on");
}

#[test]
fn a_packet_with_more_filters_than_anybody_needs_ends_the_connection() {
    let mut agent = client(&hub(), "c1");
    let mut many = Unsubscribe::new("a", None);
    many.filters = vec!["a".to_owned(); 1001];
    let many = Frame::Other(Box::new(Packet::Unsubscribe(many)));
    assert_eq!(agent.handle(many), Next::End(QUOTA_EXCEEDED));
}

#[test]
fn nothing_of_a_client_is_left_when_it_is_gone() {
    let hub = hub();
    let mut agent = client(&hub, "c1");
    agent.handle(subscribe("sources/maestro/consumers/c1/sourceevents"));
    drop(agent);
    let mut server = client(&hub, "maestro");
    server.handle(publish("sources/maestro/consumers/c1/sourceevents"));
    assert_eq!(said(&server), [Frame::Ack(5, 0x10)], "nobody subscribes any more");
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
