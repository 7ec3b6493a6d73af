//! Relaying bytes both ways.

use std::io;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;

/// Bytes read at once, for each direction.
const CHUNK: usize = 16 * 1024;

/// How a tunnel ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Both sides finished.
    Finished,
    /// A side failed.
    Broken,
    /// Nothing moved for too long.
    Idle,
}

/// Counters of one tunnel's bytes.
pub(crate) struct Bytes<'a> {
    pub(crate) from_client: &'a Counter,
    pub(crate) to_client: &'a Counter,
}

/// Copies both ways until both sides are done. A side that ends only its own direction (half-close) still receives. A side
/// that takes no bytes is as idle as one that sends none.
pub(crate) async fn relay<C, D>(client: C, destination: D, idle: Duration, bytes: Bytes<'_>) -> End
where
    C: AsyncRead + AsyncWrite + Unpin,
    D: AsyncRead + AsyncWrite + Unpin,
{
    let (client_reads, client_writes) = tokio::io::split(client);
    let (destination_reads, destination_writes) = tokio::io::split(destination);
    let moved = Mutex::new(Instant::now());
    let both = async {
        tokio::try_join!(
            copy(client_reads, destination_writes, bytes.from_client, &moved),
            copy(destination_reads, client_writes, bytes.to_client, &moved),
        )
    };
    tokio::select! {
        biased;
        done = both => if done.is_ok() { End::Finished } else { End::Broken },
        () = until_idle(&moved, idle) => End::Idle,
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: &Counter,
    moved: &Mutex<Instant>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..length]).await?;
        to.flush().await?;
        count.inc_by(length as u64);
        *moved.lock() = Instant::now();
    }
}

async fn until_idle(moved: &Mutex<Instant>, idle: Duration) {
    loop {
        let deadline = *moved.lock() + idle;
        if Instant::now() >= deadline {
            return;
        }
        tokio::time::sleep_until(deadline).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_half_closed_side_still_receives() {
        let (from, to) = (Counter::default(), Counter::default());
        let (mut client, near) = tokio::io::duplex(64);
        let (far, mut server) = tokio::io::duplex(64);
        let bytes = Bytes { from_client: &from, to_client: &to };
        let sides = async {
            client.write_all(b"question").await.unwrap();
            client.shutdown().await.unwrap();
            let mut question = String::new();
            server.read_to_string(&mut question).await.unwrap();
            assert_eq!(question, "question");
            server.write_all(b"the answer").await.unwrap();
            server.shutdown().await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert_eq!(answer, "the answer");
        };
        let (end, ()) = tokio::join!(relay(near, far, Duration::from_mins(1), bytes), sides);
        assert_eq!(end, End::Finished);
        assert_eq!((from.get(), to.get()), (8, 10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tunnel_without_traffic_ends_and_one_with_traffic_does_not() {
        let (from, to) = (Counter::default(), Counter::default());
        let (mut client, near) = tokio::io::duplex(64);
        let (far, _server) = tokio::io::duplex(64);
        let started = Instant::now();
        let traffic = async {
            tokio::time::sleep(Duration::from_secs(40)).await;
            client.write_all(b"x").await.unwrap();
            std::future::pending::<()>().await;
        };
        let bytes = Bytes { from_client: &from, to_client: &to };
        tokio::select! {
            end = relay(near, far, Duration::from_mins(1), bytes) => assert_eq!(end, End::Idle),
            () = traffic => {}
        }
        assert_eq!(started.elapsed(), Duration::from_secs(100));
    }
}
