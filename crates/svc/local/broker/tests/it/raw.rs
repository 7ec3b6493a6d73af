//! Bytes that are not MQTT.

use std::time::Duration;

use anyhow::Result;
use aro_broker::BrokerConfig;
use aro_mqtt::LinkOptions;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::peers::{Kept, Peer, TestBroker, message};

/// A CONNECT of version 5 with user name `c1`, client id `x`, keep-alive 60 s.
const CONNECT: &[u8] =
    &[0x10, 0x12, 0, 4, b'M', b'Q', b'T', b'T', 5, 0x82, 0, 60, 0, 0, 1, b'x', 0, 2, b'c', b'1'];

/// Sends bytes, says that there are no more, and reads until the broker closes.
async fn answer(broker: &TestBroker, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(broker.address()).await?;
    // The broker may close while we write.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await?;
    // A reset is a close as well.
    let _ = read;
    Ok(answer)
}

#[tokio::test]
async fn other_versions_and_other_protocols_are_told_and_closed() -> Result<()> {
    let broker = TestBroker::embedded_with(BrokerConfig::default()).await?;
    let accepted = answer(&broker, CONNECT).await?;
    assert_eq!((accepted[0], accepted[3]), (0x20, 0));
    let mut old = CONNECT.to_vec();
    old[8] = 4;
    let refused = answer(&broker, &old).await?;
    assert_eq!((refused[0], refused[3]), (0x20, 0x84));
    let refused = answer(&broker, b"GET / HTTP/1.1\r\n\r\n").await?;
    assert_eq!(refused.first(), Some(&0x20));
    assert_eq!(answer(&broker, b"").await?.first(), Some(&0x20));
    Ok(())
}

#[tokio::test]
async fn a_packet_larger_than_agreed_is_refused_before_it_is_read() -> Result<()> {
    let broker = TestBroker::embedded_with(BrokerConfig::default()).await?;
    let mut bytes = CONNECT.to_vec();
    bytes.extend_from_slice(&[0x32, 0xff, 0xff, 0xff, 0x7f]);
    let said = answer(&broker, &bytes).await?;
    assert!(said.ends_with(&[0xe0, 1, 0x95]), "{said:?}");
    Ok(())
}

#[test]
fn no_bytes_stop_the_broker() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let broker = runtime.block_on(TestBroker::embedded_with(BrokerConfig::default())).unwrap();
    let bytes = || proptest::collection::vec(prop_oneof![Just(0_u8), 0_u8..6, any::<u8>()], 0..200);
    let packets =
        proptest::collection::vec((any::<u8>(), proptest::collection::vec(any::<u8>(), 0..60)), 0..6);
    let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
    runner
        .run(&(any::<bool>(), bytes(), packets), |(greet, wild, packets)| {
            let mut sent = if greet { CONNECT.to_vec() } else { Vec::new() };
            for (first, inside) in packets {
                sent.extend([first, inside.len() as u8]);
                sent.extend(inside);
            }
            sent.extend(wild);
            runtime
                .block_on(answer(&broker, &sent))
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            Ok(())
        })
        .unwrap();
    runtime.block_on(async {
        let mut options = LinkOptions::new(broker.address().to_string(), "maestro-1");
        options.username = Some("maestro".to_owned());
        let server = Peer::start(options, &[], Kept::default());
        server.up().await.unwrap();
        server
            .link
            .publish("sources/maestro/consumers/c1/sourceevents", message("still here"))
            .await
            .unwrap();
        assert!(broker.metrics().contains("broker_connections 1"), "{}", broker.metrics());
    });
}
