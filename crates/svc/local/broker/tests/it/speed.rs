//! Not a benchmark, but a floor: something that stalls (Nagle, one publish at a time, a quadratic queue) falls below it.

use std::time::Duration;

use anyhow::Result;
use futures::StreamExt as _;
use tokio::time::Instant;

use crate::peers::{Certificates, Peer, TestBroker, message};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_pipelined_publishes_of_4_kb_take_seconds_not_minutes() -> Result<()> {
    const COUNT: usize = 10_000;
    let topic = "sources/maestro/consumers/c1/sourceevents";
    let certificates = Certificates::new()?;
    let broker = TestBroker::embedded(&certificates).await?;
    let server = Peer::connect(&broker, &certificates, "maestro", "maestro-1", &[]).await?;
    let mut agent = Peer::connect(&broker, &certificates, "c1", "c1-client", &[topic]).await?;
    let started = Instant::now();
    let body = bytes::Bytes::from(vec![b'x'; 4096]);
    let sending = futures::stream::iter(0..COUNT)
        .map(|_| server.link.publish(topic, message(body.clone())))
        .buffer_unordered(500)
        .for_each(|sent| async move { sent.expect("published") });
    let receiving = async {
        for _ in 0..COUNT {
            agent.next().await?;
        }
        Ok::<_, anyhow::Error>(())
    };
    let ((), received) = futures::join!(sending, receiving);
    received?;
    let rate = COUNT as f64 / started.elapsed().as_secs_f64();
    println!("{rate:.0} messages/s");
    assert!(started.elapsed() < Duration::from_mins(1), "{rate:.0}/s");
    Ok(())
}
