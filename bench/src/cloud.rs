//! The local cloud: tokens, resources written, read and listed, and the memory of a resource.
//!
//! `aro azure-local` runs alone, on the embedded store; every PUT is authorized, checked against the other resources and
//! durable before it is answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aro_harness::{Process, StoreChoice};
use aro_kube_e2e::client::Client;
use bytes::Bytes;
use clap::Args;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::load::{self, Load, MakeRequest, Outcome, Target};
use crate::report::{self, Row, resident_mib};

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Resource groups.
    #[arg(long, default_value_t = 1000)]
    groups: u64,
    /// Resources in each of them.
    #[arg(long, default_value_t = 50)]
    resources: u64,
    /// Requests per GET and token measurement.
    #[arg(long, default_value_t = 20_000)]
    reads: u64,
    /// Connections at once.
    #[arg(long, default_value_t = 32)]
    connections: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { groups: 1000, resources: 50, reads: 20_000, connections: 32 }
    }
}

const ARM: &str = "management.azure.com";
const LOGIN: &str = "login.microsoftonline.com";
const SUBJECT: &str = "azure-local";

pub async fn run(options: Options) -> Result<()> {
    let settings = [("telemetry.log", "warn")];
    let mut process = Process::start_release("azure-local", StoreChoice::Embedded, &settings).await?;
    let bench = Bench::new(&process, options.connections).await?;
    let pid = process.pid()?;
    let mut rows = Vec::new();
    let mut record = |what: &str, outcome: &Outcome| -> Result<()> {
        eprintln!("{what}: {:.0}/s, p99 {:.2} ms", outcome.per_second(), outcome.percentile(0.99));
        rows.push(Row::new(SUBJECT, what, outcome, resident_mib(pid)?));
        Ok(())
    };
    let empty = resident_mib(pid)?;
    record("token, client secret", &bench.tokens(options.reads).await?)?;
    record("PUT resource group", &bench.put_groups(options.groups).await?)?;
    let before = resident_mib(pid)?;
    record("PUT route table, new", &bench.put_route_tables(&options).await?)?;
    let after = resident_mib(pid)?;
    bench.get_route_tables(&options, options.reads / 10).await?;
    record("GET route table", &bench.get_route_tables(&options, options.reads).await?)?;
    record("list the resources of one group", &bench.list_groups(&options, options.reads / 10).await?)?;
    let (count, took) = bench.list_all("/resources").await?;
    rows.push(Row::single(
        SUBJECT,
        "list all resources of the subscription",
        count,
        took,
        resident_mib(pid)?,
    ));
    let (groups, took) = bench.list_all("/resourcegroups").await?;
    rows.push(Row::single(SUBJECT, "list all resource groups", groups, took, resident_mib(pid)?));
    report::print("Local cloud, durable writes, enforced roles", &rows);
    let resources = options.groups * options.resources;
    ensure!(count as u64 == resources, "{count} of {resources} resources are listed");
    println!(
        "\nempty {empty:.0} MiB, {resources} route tables {:.1} MiB: {:.2} KiB each",
        after - before,
        (after - before) * 1024.0 / resources as f64
    );
    process.interrupt()?;
    Ok(())
}

struct Bench {
    address: SocketAddr,
    authority: String,
    account: Value,
    token: String,
    connections: usize,
}

impl Bench {
    async fn new(process: &Process, connections: usize) -> Result<Self> {
        let dir = process.data_dir().join("azure-local");
        let mut bench = Self {
            address: process.addr("azure-local").context("the local cloud listens")?,
            authority: std::fs::read_to_string(dir.join("ca.pem"))?,
            account: serde_json::from_slice(&std::fs::read(dir.join("customer.json"))?)?,
            token: String::new(),
            connections,
        };
        let (path, body) = bench.token_request()?;
        let request = http::Request::post(path)
            .header("host", LOGIN)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Bytes::from(body))?;
        let answer: Value = bench.call(LOGIN, request).await?;
        answer["access_token"].as_str().context("a token")?.clone_into(&mut bench.token);
        Ok(bench)
    }

    fn account(&self, name: &str) -> Result<&str> {
        self.account[name].as_str().with_context(|| format!("{name} of the customer's account"))
    }

    fn token_request(&self) -> Result<(String, String)> {
        let body = format!(
            "grant_type=client_credentials&client_id={}&client_secret={}&scope=https%3A%2F%2Fmanagement.azure.com%2F.default",
            self.account("clientId")?,
            self.account("clientSecret")?
        );
        Ok((format!("/{}/oauth2/v2.0/token", self.account("tenantId")?), body))
    }

    async fn call(&self, host: &str, request: http::Request<Bytes>) -> Result<Value> {
        let answer = Client::anonymous(self.address, host, &self.authority)?.call(request).await?;
        ensure!(answer.code.is_success(), "{}: {}", answer.code, String::from_utf8_lossy(&answer.body));
        Ok(serde_json::from_slice(&answer.body)?)
    }

    async fn load(&self, host: &str, requests: u64, expect: u16, make: MakeRequest) -> Result<Outcome> {
        let targets = vec![Target::Tls(Client::anonymous(self.address, host, &self.authority)?)];
        load::run(Load { targets, connections: self.connections, requests, rate: None, expect, make }).await
    }

    async fn tokens(&self, requests: u64) -> Result<Outcome> {
        let (path, body) = self.token_request()?;
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {LOGIN}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.load(LOGIN, requests, 200, Arc::new(move |_| request.clone().into_bytes())).await
    }

    /// Requests of ARM, from a path below the subscription and a body.
    fn arm(
        &self,
        method: &'static str,
        make: impl Fn(u64) -> (String, String) + Send + Sync + 'static,
    ) -> Result<MakeRequest> {
        let token = self.token.clone();
        let subscription = self.account("subscriptionId")?.to_owned();
        Ok(Arc::new(move |number| {
            let (path, body) = make(number);
            format!(
                "{method} /subscriptions/{subscription}{path} HTTP/1.1\r\nhost: {ARM}\r\nauthorization: Bearer {token}\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
            .into_bytes()
        }))
    }

    async fn put_groups(&self, groups: u64) -> Result<Outcome> {
        let body = json!({"location": "westus3"}).to_string();
        let make = self.arm("PUT", move |number| {
            (format!("/resourceGroups/g{number}?api-version=2024-11-01"), body.clone())
        })?;
        self.load(ARM, groups, 201, make).await
    }

    async fn put_route_tables(&self, options: &Options) -> Result<Outcome> {
        let groups = options.groups;
        let routes = json!([{"name": "r", "properties": {"addressPrefix": "10.0.0.0/16", "nextHopType": "VnetLocal"}}]);
        let body = json!({"location": "westus3", "properties": {"routes": routes}}).to_string();
        let make =
            self.arm("PUT", move |number| (route_table(number % groups, number / groups), body.clone()))?;
        self.load(ARM, groups * options.resources, 201, make).await
    }

    async fn get_route_tables(&self, options: &Options, requests: u64) -> Result<Outcome> {
        let (groups, resources) = (options.groups, options.resources);
        let make = self.arm("GET", move |number| {
            let number = number.wrapping_mul(7919);
            (route_table(number % groups, number / groups % resources), String::new())
        })?;
        self.load(ARM, requests, 200, make).await
    }

    async fn list_groups(&self, options: &Options, requests: u64) -> Result<Outcome> {
        let groups = options.groups;
        let make = self.arm("GET", move |number| {
            (format!("/resourceGroups/g{}/resources?api-version=2024-11-01", number % groups), String::new())
        })?;
        self.load(ARM, requests, 200, make).await
    }

    /// Follows a list to its end.
    async fn list_all(&self, path: &str) -> Result<(usize, Duration)> {
        let client = Client::anonymous(self.address, ARM, &self.authority)?;
        let mut next =
            Some(format!("/subscriptions/{}{path}?api-version=2024-11-01", self.account("subscriptionId")?));
        let (mut count, start) = (0, Instant::now());
        while let Some(path) = next {
            let request = http::Request::get(path)
                .header("host", ARM)
                .header("authorization", format!("Bearer {}", self.token))
                .body(Bytes::new())?;
            let answer = client.call(request).await?;
            ensure!(answer.code.is_success(), "{}: {}", answer.code, String::from_utf8_lossy(&answer.body));
            let page: Value = serde_json::from_slice(&answer.body)?;
            count += page["value"].as_array().context("a list")?.len();
            next = page["nextLink"]
                .as_str()
                .and_then(|link| Some(link.strip_prefix(&format!("https://{ARM}"))?.to_owned()));
        }
        Ok((count, start.elapsed()))
    }
}

/// A type without a quota: of virtual networks a location has a thousand.
fn route_table(group: u64, table: u64) -> String {
    format!(
        "/resourceGroups/g{group}/providers/Microsoft.Network/routeTables/t{table}?api-version=2024-07-01"
    )
}
