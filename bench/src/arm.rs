//! The ARM API: GET, list and PUT of clusters through the whole front end, on both stores.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use aro_arm::hcp::version::ApiVersion;
use aro_fixtures::{Names, cluster_body};
use aro_harness::{Process, StoreChoice};
use aro_store::testing::postgres::TestPostgres;
use clap::Args;

use crate::load::{self, Load, MakeRequest, Outcome, Target};
use crate::report::{self, Row, resident_mib};

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Clusters that are there before GET and list are measured.
    #[arg(long, default_value_t = 1000)]
    clusters: u64,
    /// Requests per GET measurement.
    #[arg(long, default_value_t = 200_000)]
    gets: u64,
    /// Requests per PUT measurement.
    #[arg(long, default_value_t = 20_000)]
    puts: u64,
    /// Connections at once.
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Measure only this store: sqlite or postgres.
    #[arg(long)]
    store: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { clusters: 1000, gets: 200_000, puts: 20_000, connections: 32, store: None }
    }
}

const VERSION: ApiVersion = ApiVersion::V2026_10_01;

pub async fn run(options: Options) -> Result<()> {
    let mut rows = Vec::new();
    let wanted = |store: &str| options.store.as_deref().is_none_or(|only| only == store);
    if wanted("sqlite") {
        rows.extend(measure("sqlite", StoreChoice::Embedded, &options).await?);
    }
    if wanted("postgres") {
        let postgres = TestPostgres::launch()?;
        rows.extend(
            measure("postgres", StoreChoice::Postgres { url: postgres.fresh_schema()? }, &options).await?,
        );
    }
    report::print("ARM API, one front end, durable writes", &rows);
    Ok(())
}

async fn measure(store: &str, choice: StoreChoice, options: &Options) -> Result<Vec<Row>> {
    let mut process = Process::start_release("frontend", choice, &[("telemetry.log", "warn")]).await?;
    let addr = process.addr("frontend").context("the frontend listens")?;
    let names = Names::default();
    process.arm()?.register(&names.subscription).await?;
    let bench = Bench { addr, names, connections: options.connections };
    let mut rows = Vec::new();
    let mut record = |what: &str, outcome: &Outcome, process: &Process| -> Result<f64> {
        rows.push(Row::new(store, what, outcome, resident_mib(process.pid()?)?));
        eprintln!("{store}: {what}: {:.0}/s", outcome.per_second());
        Ok(outcome.per_second())
    };

    bench.put("seed", options.clusters, None).await?;
    bench.get(options.clusters, options.gets / 10, None).await?;
    let outcome = bench.get(options.clusters, options.gets, None).await?;
    let rate = record("GET cluster", &outcome, &process)?;
    // Half of what is aimed at, or less where that is out of reach.
    let half = (rate * 0.8).min(10_000.0);
    let outcome = bench.get(options.clusters, (half * 5.0) as u64, Some(half)).await?;
    record(&format!("GET cluster at {half:.0}/s"), &outcome, &process)?;
    let outcome = bench.list(options.gets / 40).await?;
    record("list 20 clusters", &outcome, &process)?;
    let outcome = bench.put("full", options.puts, None).await?;
    let rate = record("PUT new cluster", &outcome, &process)?;
    let half = (rate * 0.8).min(1_500.0);
    let outcome = bench.put("half", (half * 15.0) as u64, Some(half)).await?;
    record(&format!("PUT new cluster at {half:.0}/s"), &outcome, &process)?;
    process.interrupt()?;
    Ok(rows)
}

struct Bench {
    addr: SocketAddr,
    names: Names,
    connections: usize,
}

impl Bench {
    async fn get(&self, clusters: u64, requests: u64, rate: Option<f64>) -> Result<Outcome> {
        let names = self.names.clone();
        // A step that visits every cluster in an order that looks like none.
        let make = move |number: u64| {
            let path = names.cluster(&format!("seed-{}", number.wrapping_mul(7919) % clusters));
            request("GET", &format!("{path}?api-version={VERSION}"), "")
        };
        self.load(Arc::new(make), requests, rate, 200).await
    }

    async fn list(&self, requests: u64) -> Result<Outcome> {
        let path = format!(
            "/subscriptions/{}/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters?api-version={VERSION}",
            self.names.subscription
        );
        self.load(Arc::new(move |_| request("GET", &path, "")), requests, None, 200).await
    }

    async fn put(&self, prefix: &'static str, requests: u64, rate: Option<f64>) -> Result<Outcome> {
        // The body is made from a template: making JSON is not what is measured.
        let names = self.names.clone();
        let template = cluster_body(&names, "CLUSTERNAME", VERSION).to_string();
        let make = move |number: u64| {
            let name = format!("{prefix}-{number}");
            let path = format!("{}?api-version={VERSION}", names.cluster(&name));
            request("PUT", &path, &template.replace("CLUSTERNAME", &name))
        };
        self.load(Arc::new(make), requests, rate, 201).await
    }

    async fn load(
        &self,
        make: MakeRequest,
        requests: u64,
        rate: Option<f64>,
        expect: u16,
    ) -> Result<Outcome> {
        let targets = vec![Target::Plain(self.addr)];
        load::run(Load { targets, connections: self.connections, requests, rate, expect, make }).await
    }
}

fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nx-ms-identity-url: https://identity.example.com/c\r\n\
         x-ms-arm-resource-system-data: {{\"createdBy\":\"b\",\"createdByType\":\"User\",\"createdAt\":\"2026-11-15T10:00:00.1234567Z\"}}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
