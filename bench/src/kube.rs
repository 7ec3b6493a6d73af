//! Embedded Kubernetes over HTTPS: writes, reads, lists and watches, on one logical cluster and on many, beside a real
//! kube-apiserver with etcd when there is one.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use aro_app::{App, AppConfig, Composition, DataDir, StartOptions};
use aro_harness::{Process, StoreChoice};
use aro_kube_e2e::client::Client;
use aro_kube_e2e::real::{Real, binaries};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::load::{self, Load, MakeRequest, Outcome, Target};
use crate::report::{self, Row, resident_mib};

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Objects created per measurement.
    #[arg(long, default_value_t = 50_000)]
    creates: u64,
    /// Requests per GET measurement.
    #[arg(long, default_value_t = 200_000)]
    gets: u64,
    /// Connections at once for writes; half of them for reads.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Logical clusters in the measurement with many.
    #[arg(long, default_value_t = 1000)]
    clusters: usize,
    /// Leave the real one out.
    #[arg(long)]
    only_ours: bool,
    /// Only these, comma-separated: one, many, new, real.
    #[arg(long)]
    only: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { creates: 50_000, gets: 200_000, connections: 64, clusters: 1000, only_ours: false, only: None }
    }
}

pub async fn run(options: Options) -> Result<()> {
    let wanted =
        |what: &str| options.only.as_deref().is_none_or(|only| only.split(',').any(|name| name == what));
    let mut rows = Vec::new();
    if wanted("one") {
        rows.extend(one(&options).await?);
    }
    if wanted("many") {
        rows.extend(many(&options).await?);
    }
    if wanted("new") {
        rows.extend(new_clusters(&options).await?);
    }
    if wanted("real") && !options.only_ours {
        match binaries()? {
            Some(dir) => rows.extend(real(&dir, &options).await?),
            None => eprintln!("SKIPPED: no Go toolchain, so there is no real kube-apiserver to compare with"),
        }
    }
    report::print("Kubernetes API over HTTPS, durable writes", &rows);
    Ok(())
}

/// Reads how to reach clusters from a kubeconfig of ours.
fn clients(path: &Path) -> Result<Vec<Client>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let config: Value = serde_saphyr::from_str(&text)?;
    let list = |name: &str| config.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut clients = Vec::new();
    for (cluster, user) in list("clusters").iter().zip(list("users")) {
        let text = |value: &Value, path: &str| -> Result<String> {
            Ok(value.pointer(path).and_then(Value::as_str).with_context(|| path.to_owned())?.to_owned())
        };
        let decoded = |value: &Value, path: &str| -> Result<String> {
            Ok(String::from_utf8(STANDARD.decode(text(value, path)?)?)?)
        };
        clients.push(Client::new(
            text(cluster, "/cluster/server")?.trim_start_matches("https://").parse()?,
            &text(cluster, "/cluster/tls-server-name")?,
            &decoded(cluster, "/cluster/certificate-authority-data")?,
            &decoded(&user, "/user/client-certificate-data")?,
            &decoded(&user, "/user/client-key-data")?,
        )?);
    }
    Ok(clients)
}

const PATH: &str = "/api/v1/namespaces/default/configmaps";

fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: k\r\nuser-agent: bench/1\r\naccept: application/json\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A ConfigMap of about 256 bytes of data.
fn config_map(name: &str, filler: u64) -> String {
    let filler = format!("{filler:0>256}");
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"key":"{filler}"}}}}"#
    )
}

struct Bench {
    clients: Vec<Client>,
    connections: usize,
}

impl Bench {
    async fn load(
        &self,
        connections: usize,
        requests: u64,
        rate: Option<f64>,
        expect: u16,
        make: MakeRequest,
    ) -> Result<Outcome> {
        let targets = self.clients.iter().cloned().map(Target::Tls).collect();
        load::run(Load { targets, connections, requests, rate, expect, make }).await
    }

    async fn create(
        &self,
        prefix: &str,
        connections: usize,
        requests: u64,
        rate: Option<f64>,
    ) -> Result<Outcome> {
        let prefix = prefix.to_owned();
        let make = move |number| request("POST", PATH, &config_map(&format!("{prefix}-{number}"), number));
        self.load(connections, requests, rate, 201, Arc::new(make)).await
    }

    async fn update(&self, prefix: &str, objects: u64, requests: u64) -> Result<Outcome> {
        let prefix = prefix.to_owned();
        let make = move |number| {
            let name = format!("{prefix}-{}", number % objects);
            request("PUT", &format!("{PATH}/{name}"), &config_map(&name, number + 1_000_000))
        };
        self.load(self.connections, requests, None, 200, Arc::new(make)).await
    }

    async fn get(&self, prefix: &str, objects: u64, requests: u64) -> Result<Outcome> {
        let prefix = prefix.to_owned();
        let make = move |number| request("GET", &format!("{PATH}/{prefix}-{}", number % objects), "");
        self.load(self.connections / 2, requests, None, 200, Arc::new(make)).await
    }

    async fn list(&self, query: &str, requests: u64) -> Result<Outcome> {
        let path = format!("{PATH}?{query}");
        self.load(2, requests, None, 200, Arc::new(move |_| request("GET", &path, ""))).await
    }

    /// Writes at a rate while watchers look on. Latencies count from when a write was sent to when a watcher has read it.
    async fn watch(&self, prefix: &str, watchers: usize, rate: f64, requests: u64) -> Result<Outcome> {
        let start = Instant::now();
        let mut reading = JoinSet::new();
        let (ready, mut all_ready) = tokio::sync::mpsc::channel(watchers);
        for number in 0..watchers {
            let client = self.clients[number % self.clients.len()].clone();
            let (prefix, ready) = (format!("{prefix}-"), ready.clone());
            reading.spawn(async move { read_events(&client, &prefix, requests, start, ready).await });
        }
        for _ in 0..watchers {
            all_ready.recv().await.context("a watcher gave up")?;
        }
        let names = prefix.to_owned();
        let make = move |number: u64| {
            let sent = start.elapsed().as_micros() as u64;
            request("POST", PATH, &config_map(&format!("{names}-{number}"), sent))
        };
        self.load(self.connections, requests, Some(rate), 201, Arc::new(make)).await?;
        let mut latencies = Vec::new();
        while let Some(read) = reading.join_next().await {
            latencies.extend(read??);
        }
        latencies.sort_unstable();
        Ok(Outcome { took: start.elapsed(), latencies })
    }
}

/// The version a watch begins with, so that it does not begin with everything there is.
async fn newest(client: &Client) -> Result<String> {
    let request =
        http::Request::get(format!("{PATH}?limit=1")).header("host", "k").body(bytes::Bytes::new())?;
    let answer = client.call(request).await?;
    let list: Value = serde_json::from_slice(&answer.body)?;
    Ok(list.pointer("/metadata/resourceVersion").and_then(Value::as_str).context("a version")?.to_owned())
}

/// Reads events until all are there; each carries when its write was sent. They must come in order, each once.
async fn read_events(
    client: &Client,
    prefix: &str,
    events: u64,
    start: Instant,
    ready: tokio::sync::mpsc::Sender<()>,
) -> Result<Vec<u32>> {
    let mut stream = client.connect().await?;
    let version = newest(client).await?;
    stream.write_all(&request("GET", &format!("{PATH}?watch=true&resourceVersion={version}"), "")).await?;
    stream.flush().await?;
    let mut lines = BufReader::with_capacity(1 << 16, stream);
    let mut line = String::new();
    loop {
        line.clear();
        lines.read_line(&mut line).await?;
        if line == "\r\n" {
            break;
        }
    }
    ready.send(()).await?;
    let needle = format!("\"name\":\"{prefix}");
    let mut latencies = Vec::with_capacity(usize::try_from(events)?);
    let mut chunk = Vec::new();
    let mut last_version = 0_u64;
    let mut rest: Vec<u8> = Vec::new();
    while (latencies.len() as u64) < events {
        line.clear();
        ensure!(lines.read_line(&mut line).await? > 0, "the watch ended after {} events", latencies.len());
        let length = usize::from_str_radix(line.trim(), 16).context("a chunk's length")?;
        chunk.resize(length + 2, 0);
        lines.read_exact(&mut chunk).await?;
        rest.extend_from_slice(&chunk[..length]);
        let now = start.elapsed().as_micros() as u64;
        let mut begin = 0;
        while let Some(end) = rest[begin..].iter().position(|byte| *byte == b'\n') {
            let event = std::str::from_utf8(&rest[begin..begin + end])?;
            begin += end + 1;
            if !event.contains(&needle) {
                continue;
            }
            let version: u64 = field(event, "\"resourceVersion\":\"")?.parse()?;
            ensure!(version > last_version, "events out of order: {version} after {last_version}");
            last_version = version;
            let sent: u64 = field(event, "\"key\":\"")?.parse()?;
            latencies.push(u32::try_from(now.saturating_sub(sent)).unwrap_or(u32::MAX));
        }
        rest.drain(..begin);
    }
    Ok(latencies)
}

fn field<'a>(event: &'a str, before: &str) -> Result<&'a str> {
    let at = event.find(before).with_context(|| before.to_owned())? + before.len();
    event[at..].split('"').next().context("a value")
}

/// Everything on one cluster.
async fn measure(
    bench: &Bench,
    who: &str,
    options: &Options,
    memory: impl Fn() -> Result<f64>,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut record = |what: &str, outcome: &Outcome| -> Result<()> {
        eprintln!("{who}: {what}: {:.0}/s, p99 {:.2} ms", outcome.per_second(), outcome.percentile(0.99));
        rows.push(Row::new(who, what, outcome, memory()?));
        Ok(())
    };
    bench.create("warm", bench.connections, 2_000, None).await?;
    record("create, 1 connection", &bench.create("single", 1, options.creates / 20, None).await?)?;
    let what = format!("create, {} connections", bench.connections);
    record(&what, &bench.create("c", bench.connections, options.creates, None).await?)?;
    let what = format!("update, {} connections", bench.connections);
    record(&what, &bench.update("c", options.creates, options.creates).await?)?;
    bench.get("c", options.creates, options.gets / 20).await?;
    let what = format!("GET, {} connections", bench.connections / 2);
    record(&what, &bench.get("c", options.creates, options.gets).await?)?;
    record("LIST of 5 000", &bench.list("limit=5000", 40).await?)?;
    record("LIST of 500", &bench.list("limit=500", 400).await?)?;
    record("watch, 1 watcher, 500 writes/s", &bench.watch("w1", 1, 500.0, 2_500).await?)?;
    record("watch, 1 watcher, 2 000 writes/s", &bench.watch("w2", 1, 2_000.0, 10_000).await?)?;
    Ok(rows)
}

async fn one(options: &Options) -> Result<Vec<Row>> {
    let process = Process::start_release(
        "kube",
        StoreChoice::Embedded,
        &[("kube.clusters", "[\"one\"]"), ("kube.nodes", "0"), ("telemetry.log", "warn")],
    )
    .await?;
    let clients = clients(&process.data_dir().join("kube/kubeconfig.yaml"))?;
    let bench = Bench { clients, connections: options.connections };
    let pid = process.pid()?;
    let rows = measure(&bench, "aro, 1 cluster", options, || resident_mib(pid)).await;
    let mut rows = rows.with_context(|| format!("the server's log:\n{}", process.log_text()))?;
    let outcome = bench.watch("w100", 100, 500.0, 1_500).await;
    let outcome = outcome.with_context(|| format!("the server's log:\n{}", process.log_text()))?;
    eprintln!("100 watchers: p99 {:.2} ms", outcome.percentile(0.99));
    rows.push(Row::new("aro, 1 cluster", "watch, 100 watchers, 500 writes/s", &outcome, resident_mib(pid)?));
    Ok(rows)
}

async fn real(dir: &Path, options: &Options) -> Result<Vec<Row>> {
    let real = Real::start_durable(dir).await?;
    let bench = Bench { clients: vec![real.client.clone()], connections: options.connections };
    let pids = real.pids();
    let fewer =
        Options { creates: options.creates.min(10_000), gets: options.gets.min(40_000), ..options.clone() };
    measure(&bench, "kube-apiserver + etcd", &fewer, || Ok(resident_mib(pids[0])? + resident_mib(pids[1])?))
        .await
}

/// The same writes and reads spread over many clusters, and what idle ones cost.
async fn many(options: &Options) -> Result<Vec<Row>> {
    let names: Vec<String> = (0..options.clusters).map(|number| format!("\"c{number:04}\"")).collect();
    let names = format!("[{}]", names.join(","));
    let who = format!("aro, {} clusters", options.clusters);
    let begin = Instant::now();
    let settings = [
        ("kube.clusters", names.as_str()),
        ("kube.nodes", "0"),
        ("telemetry.log", "warn"),
        ("process.start_timeout", "300s"),
    ];
    let mut process = Process::start_release("kube", StoreChoice::Embedded, &settings).await?;
    let made = begin.elapsed();
    let idle = resident_mib(process.pid()?)?;
    eprintln!("{who}: made in {made:?}, {idle:.0} MiB");
    let mut rows = vec![Row::single(&who, "made with the first start", options.clusters, made, idle)];
    process.interrupt()?;
    let begin = Instant::now();
    process.start_again().await?;
    let took = begin.elapsed();
    rows.push(Row::single(&who, "started again", options.clusters, took, resident_mib(process.pid()?)?));
    let clients = clients(&process.data_dir().join("kube/kubeconfig.yaml"))?;
    ensure!(clients.len() == options.clusters, "{} clusters in the kubeconfig", clients.len());
    let bench = Bench { clients, connections: options.clusters.min(256) };
    let pid = process.pid()?;
    let mut record = |what: &str, outcome: &Outcome| -> Result<()> {
        eprintln!("{who}: {what}: {:.0}/s, p99 {:.2} ms", outcome.per_second(), outcome.percentile(0.99));
        rows.push(Row::new(&who, what, outcome, resident_mib(pid)?));
        Ok(())
    };
    record("create, 256 connections", &bench.create("c", bench.connections, options.creates, None).await?)?;
    record("LIST of 500", &bench.list("limit=500", 1_000).await?)?;
    Ok(rows)
}

/// How long it takes from wanting a cluster to its first answer over TLS, in a process that runs already.
async fn new_clusters(options: &Options) -> Result<Vec<Row>> {
    let sources = aro_runtime::config::Sources::default()
        .set("kube.listen", "127.0.0.1:0")
        .set("admin.listen", "127.0.0.1:0")
        .set("kube.clusters", "[\"first\"]")
        .set("telemetry.log", "warn");
    let dir = tempfile::tempdir()?;
    let start = StartOptions::new(DataDir::kept(dir.path()), Composition::Kube);
    let app = App::start(AppConfig::load(&sources)?, start).await?;
    let clusters = app.clusters().context("kube runs")?;
    let address = app.addr("kube").context("kube listens")?;
    let count = options.clusters.min(200);
    let mut latencies = Vec::new();
    let begin = Instant::now();
    for number in 0..count {
        let name = format!("new-{number}");
        let wanted = Instant::now();
        let cluster = clusters.create(&name).await?;
        let admin = cluster.keys.admin(cluster.now())?;
        let authority = cluster.keys.authority.certificate();
        let client =
            Client::new(address, &clusters.host(&name), authority, &admin.certificate, admin.key.expose())?;
        let request =
            http::Request::get("/api/v1/namespaces/default").header("host", "k").body(bytes::Bytes::new())?;
        let answer = client.call(request).await?;
        ensure!(answer.code.as_u16() == 200, "{}", answer.code);
        latencies.push(u32::try_from(wanted.elapsed().as_micros())?);
    }
    latencies.sort_unstable();
    let outcome = Outcome { took: begin.elapsed(), latencies };
    eprintln!("new clusters: p50 {:.2} ms, p99 {:.2} ms", outcome.percentile(0.5), outcome.percentile(0.99));
    let row = Row::new(
        "aro",
        "new cluster, to its first answer over TLS",
        &outcome,
        resident_mib(std::process::id())?,
    );
    app.stop().await?;
    Ok(vec![row])
}
