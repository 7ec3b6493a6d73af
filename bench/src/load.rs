//! Load over HTTP/1.1, plain or TLS: many keep-alive connections, each with one request at a time.
//!
//! The client does as little as it can (one write, one buffered read, no parsing beyond status and length), so that on a
//! shared machine the server gets most of the processor.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use aro_kube_e2e::client::Client;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Makes the n-th request, as it goes over the wire.
pub type MakeRequest = Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>;

/// Whom to talk to.
#[derive(Clone)]
pub enum Target {
    Plain(SocketAddr),
    Tls(Client),
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Target {
    async fn connect(&self) -> Result<Box<dyn Stream>> {
        match self {
            Self::Plain(addr) => {
                let stream = TcpStream::connect(addr).await.context("connect")?;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
            Self::Tls(client) => Ok(Box::new(client.connect().await?)),
        }
    }
}

/// How a load is to be.
#[derive(Clone)]
pub struct Load {
    /// Connections are spread over these.
    pub targets: Vec<Target>,
    pub connections: usize,
    pub requests: u64,
    /// Requests per second over all connections; as fast as answers come when not given.
    pub rate: Option<f64>,
    pub expect: u16,
    pub make: MakeRequest,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub took: Duration,
    /// Latencies in microseconds, sorted. With a rate they count from when a request was due, not from when it was sent.
    pub latencies: Vec<u32>,
}

impl Outcome {
    pub fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.took.as_secs_f64()
    }

    /// The latency below which this share of requests stayed, in milliseconds.
    pub fn percentile(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        self.latencies.get(index).map_or(0.0, |micros| f64::from(*micros) / 1000.0)
    }
}

/// Runs a load to its end. Any unexpected answer ends it with an error.
pub async fn run(load: Load) -> Result<Outcome> {
    let next = Arc::new(AtomicU64::new(0));
    let mut connections = JoinSet::new();
    let ready = Arc::new(Barrier::new(load.connections + 1));
    for index in 0..load.connections {
        let target = load.targets.get(index % load.targets.len().max(1)).context("a target")?.clone();
        connections.spawn(drive(load.clone(), target, next.clone(), ready.clone()));
    }
    // Handshakes are not part of what is measured.
    ready.wait().await;
    let start = Instant::now();
    let mut latencies = Vec::with_capacity(usize::try_from(load.requests)?);
    while let Some(connection) = connections.join_next().await {
        latencies.extend(connection??);
    }
    let took = start.elapsed();
    latencies.sort_unstable();
    Ok(Outcome { took, latencies })
}

async fn drive(load: Load, target: Target, next: Arc<AtomicU64>, ready: Arc<Barrier>) -> Result<Vec<u32>> {
    let connected = target.connect().await;
    ready.wait().await;
    let mut stream = connected?;
    let start = Instant::now();
    let mut buffer = Vec::with_capacity(64 * 1024);
    let mut latencies = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= load.requests {
            return Ok(latencies);
        }
        let due = match load.rate {
            None => Instant::now(),
            Some(rate) => {
                let due = start + Duration::from_secs_f64(number as f64 / rate);
                sleep_until(due).await;
                due
            }
        };
        // Made when it is due: it may carry the time.
        let request = (load.make)(number);
        stream.write_all(&request).await?;
        // TLS may buffer the last bytes until it is flushed.
        stream.flush().await?;
        let status = read_answer(&mut stream, &mut buffer).await?;
        ensure!(status == load.expect, "request {number}: {status}\n{}", String::from_utf8_lossy(&buffer));
        latencies.push(u32::try_from(due.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
}

/// Reads one whole answer into the buffer and returns its status.
async fn read_answer(stream: &mut Box<dyn Stream>, buffer: &mut Vec<u8>) -> Result<u16> {
    buffer.clear();
    let mut whole = None;
    let mut chunked = false;
    loop {
        if stream.read_buf(buffer).await? == 0 {
            bail!("the server closed the connection");
        }
        if whole.is_none()
            && !chunked
            && let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n")
        {
            whole = content_length(&buffer[..end])?.map(|length| end + 4 + length);
            chunked = whole.is_none();
        }
        if chunked && buffer.ends_with(b"\r\n0\r\n\r\n") {
            whole = Some(buffer.len());
        }
        if whole.is_some_and(|whole| buffer.len() >= whole) {
            let status = buffer.get(9..12).context("a status")?;
            return Ok(std::str::from_utf8(status)?.parse()?);
        }
    }
}

/// `None`: the answer comes in chunks, and the last one is empty.
fn content_length(head: &[u8]) -> Result<Option<usize>> {
    let head = std::str::from_utf8(head)?;
    let value = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim())
    });
    Ok(value.map(str::parse).transpose()?)
}
