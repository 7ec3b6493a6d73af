//! What is measured, in order.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aro_bundle::Action;
use aro_fixtures::TestClient;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Options;
use super::bundles::{NAMESPACE, Workload, reported};
use super::source::{Ear, Ready, outcome, publish};
use super::world::{Parts, World};
use crate::load::{self, Load, Outcome, Target};
use crate::report::{Row, resident_mib};

/// Lists and searches that are measured.
const LISTS: u64 = 5;
const SEARCHES: u64 = 200;
/// The rates at which is published steadily.
const RATES: [usize; 2] = [500, 100];

/// A chain and what was measured of it.
pub struct Bench {
    world: World,
    options: Options,
    rows: Vec<Row>,
}

impl Bench {
    pub fn new(world: World, options: &Options) -> Result<Self> {
        ensure!(options.consumers > 0 && options.bundles > 0, "there must be consumers and bundles");
        Ok(Self { world, options: options.clone(), rows: Vec::new() })
    }

    pub async fn run(mut self) -> Result<Vec<Row>> {
        match self.measure().await {
            Ok(()) => Ok(self.rows),
            Err(error) => Err(error.context(format!("the log:\n{}", self.world.log()))),
        }
    }

    async fn measure(&mut self) -> Result<()> {
        let ear = Ear::of(&self.world.source).await?;
        self.memory("resident, idle")?;
        self.burst(&ear, "load", "3 config maps", &Workload::ConfigMaps, self.options.bundles).await?;
        if self.options.burst {
            return Ok(());
        }
        self.list().await?;
        self.search().await?;
        self.statuses(&ear).await?;
        for rate in RATES {
            self.paced(&ear, rate).await?;
        }
        for (name, workload) in Workload::upstream(&self.options.workloads) {
            let prefix = if name.starts_with('a') { "cluster" } else { "works" };
            self.burst(&ear, prefix, name, &workload, self.options.bundles / 2).await?;
        }
        self.reconnect(&ear).await?;
        self.resync().await?;
        self.memory("resident, after everything")
    }

    fn record(&mut self, what: &str, outcome: &Outcome) -> Result<()> {
        let row = Row::new(self.world.label, what, outcome, resident_mib(self.world.pid()?)?);
        self.keep(row);
        Ok(())
    }

    fn keep(&mut self, row: Row) {
        eprintln!(
            "{}: {}: {:.0}/s, p50 {:.1} ms, p99 {:.1} ms, {:.0} MiB",
            row.subject, row.what, row.per_second, row.p50_ms, row.p99_ms, row.server_mib
        );
        self.rows.push(row);
    }

    /// How much memory is in use now, in the main process and in the others.
    fn memory(&mut self, what: &str) -> Result<()> {
        let own = resident_mib(self.world.pid()?)?;
        let mut what = what.to_owned();
        if let Parts::Roles(roles) = &self.world.parts {
            let mut agents = 0.0;
            for agent in &roles.agents {
                agents += resident_mib(agent.pid()?)?;
            }
            let kube = resident_mib(roles.kube.pid()?)?;
            what = format!("{what} (all agents {agents:.0}, kube {kube:.0} MiB)");
        }
        self.keep(Row::single(self.world.label, &what, 1, Duration::from_secs(1), own));
        Ok(())
    }

    /// Creations, spread over the consumers.
    fn creations(&self, prefix: &str, workload: &Workload, count: usize) -> Result<Vec<Ready>> {
        let clusters = &self.world.clusters;
        (0..count)
            .map(|number| {
                let (consumer, _) = &clusters[number % clusters.len()];
                let name = format!("{prefix}-{number}");
                let bundle = workload.bundle(consumer, &name)?;
                Ready::new(&self.world.source.event(Action::Create, consumer, &name, 0, Some(&bundle))?)
            })
            .collect()
    }

    /// All at once.
    async fn burst(
        &mut self,
        ear: &Ear,
        prefix: &str,
        what: &str,
        workload: &Workload,
        each: usize,
    ) -> Result<()> {
        let events = self.creations(prefix, workload, each * self.options.consumers)?;
        let size = events.first().and_then(|one| size(&one.event)).unwrap_or_default();
        let (before, count) = (self.world.cpu()?, events.len());
        let published = publish(&self.world.source, ear, events, self.options.connections, None).await?;
        let each = self.world.cpu()?.saturating_sub(before).as_secs_f64() * 1000.0 / count as f64;
        let what = format!("{what}, {:.1} kB", size as f64 / 1000.0);
        self.record(&format!("{what}: publish accepted"), &published.accepted)?;
        let work = format!("{each:.2} ms of processor time each");
        self.record(&format!("{what}: burst, publish to first status; {work}"), &published.told)
    }

    async fn paced(&mut self, ear: &Ear, rate: usize) -> Result<()> {
        let count = rate * self.options.seconds;
        let events = self.creations(&format!("paced-{rate}"), &Workload::ConfigMaps, count)?;
        // Enough under way that a slow answer delays no other request.
        let published = publish(&self.world.source, ear, events, 256, Some(rate as f64)).await?;
        self.record(&format!("3 config maps at {rate}/s: publish accepted"), &published.accepted)?;
        self.record(&format!("3 config maps at {rate}/s: publish to first status"), &published.told)
    }

    async fn list(&mut self) -> Result<()> {
        let total = self.options.bundles * self.options.consumers;
        let path = format!("/api/maestro/v1/resource-bundles?page=1&size={total}");
        let client = TestClient::new(format!("http://{}", self.world.rest));
        let bytes = client.get(&path).await?.expect(200)?.body.len();
        let most = Watermark::start(self.world.pid()?);
        let outcome = self.get(path, LISTS).await?;
        let most = most.stop().await;
        let what = format!("list of {total}, {:.1} MB, one at a time", bytes as f64 / 1e6);
        let row = Row::new(self.world.label, &what, &outcome, most);
        self.keep(row);
        Ok(())
    }

    async fn search(&mut self) -> Result<()> {
        let total = self.options.bundles * self.options.consumers;
        let next = AtomicU64::new(0);
        let make = move |_| {
            let number = next.fetch_add(7919, Ordering::Relaxed) % total as u64;
            let search = format!(
                "payload -> 'metadata' -> 'labels' @> '{{\"api.openshift.com/id\":\"load-{number}\"}}'"
            );
            let encoded = search.bytes().fold(String::new(), |mut text, byte| {
                // Writing to a String cannot fail.
                let _ = write!(text, "%{byte:02X}");
                text
            });
            format!("/api/maestro/v1/resource-bundles?search={encoded}")
        };
        let outcome = self.get_each(Arc::new(make), SEARCHES).await?;
        self.record("search by a label of the work, one at a time", &outcome)
    }

    async fn get(&self, path: String, requests: u64) -> Result<Outcome> {
        self.get_each(Arc::new(move |_| path.clone()), requests).await
    }

    async fn get_each(
        &self,
        path: Arc<dyn Fn(u64) -> String + Send + Sync>,
        requests: u64,
    ) -> Result<Outcome> {
        let make =
            move |number| format!("GET {} HTTP/1.1\r\nhost: localhost\r\n\r\n", path(number)).into_bytes();
        load::run(Load {
            targets: vec![Target::Plain(self.world.rest)],
            connections: 1,
            requests,
            rate: None,
            expect: 200,
            make: Arc::new(make),
        })
        .await
    }

    /// A client changes an object of every bundle; its source receives the status.
    async fn statuses(&mut self, ear: &Ear) -> Result<()> {
        let total = self.options.bundles * self.options.consumers;
        let clusters = Arc::new(self.world.clusters.clone());
        let id = |number: usize| {
            let (consumer, _) = &clusters[number % clusters.len()];
            self.world.source.id(consumer, &format!("load-{number}"))
        };
        ear.expect((0..total).map(id));
        let next = Arc::new(AtomicU64::new(0));
        let begin = Instant::now();
        let mut workers = JoinSet::new();
        for _ in 0..self.options.connections {
            let (next, clusters) = (next.clone(), clusters.clone());
            workers.spawn(async move {
                let change = Patch::Merge(json!({"data": {"reported": "now"}}));
                loop {
                    let number = usize::try_from(next.fetch_add(1, Ordering::Relaxed))?;
                    if number >= total {
                        return Ok::<_, anyhow::Error>(());
                    }
                    let (_, client) = &clusters[number % clusters.len()];
                    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
                    let name = reported(&format!("load-{number}"));
                    maps.patch(&name, &PatchParams::default(), &change).await?;
                }
            });
        }
        while let Some(worker) = workers.join_next().await {
            worker??;
        }
        eprintln!("{}: objects changed after {:?}", self.world.label, begin.elapsed());
        let heard = ear.all().await?;
        let last = heard.values().max().context("something changed")?;
        let took = last.duration_since(begin);
        let row = Row::single(
            self.world.label,
            "an object of every bundle changed: statuses heard",
            total,
            took,
            resident_mib(self.world.pid()?)?,
        );
        self.keep(row);
        Ok(())
    }

    /// The broker is killed and started again: how long until every consumer answers for something new.
    async fn reconnect(&mut self, ear: &Ear) -> Result<()> {
        let events = self.creations("again", &Workload::ConfigMaps, self.options.consumers)?;
        let Parts::Roles(roles) = &mut self.world.parts else { return Ok(()) };
        roles.broker.kill().await?;
        roles.broker.start_again().await?;
        let begin = Instant::now();
        publish(&self.world.source, ear, events, self.options.connections, None).await?;
        let row = Row::single(
            self.world.label,
            "broker killed and started: a new bundle of every consumer told",
            self.options.consumers,
            begin.elapsed(),
            resident_mib(self.world.pid()?)?,
        );
        self.keep(row);
        Ok(())
    }

    /// All agents start anew and remember nothing: how long until they know and have told everything.
    async fn resync(&mut self) -> Result<()> {
        let Parts::Roles(roles) = &mut self.world.parts else { return Ok(()) };
        let known = works(&roles.agents, 0).await?.0;
        for agent in &mut roles.agents {
            agent.kill()?;
            std::fs::remove_dir_all(agent.data_dir())?;
        }
        let begin = Instant::now();
        for agent in &mut roles.agents {
            agent.start_again().await?;
        }
        let started = begin.elapsed();
        while works(&roles.agents, known).await? != (known, true) {
            ensure!(begin.elapsed() < Duration::from_mins(5), "the agents do not know everything again");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let outcome = outcome(begin.elapsed(), vec![started]);
        let row = Row::single(
            self.world.label,
            "agents started with empty memory: everything known and told",
            known,
            outcome.took,
            resident_mib(self.world.pid()?)?,
        );
        self.keep(row);
        Ok(())
    }
}

/// How many works the agents know together, and whether they have told that many and nothing waits.
async fn works(agents: &[aro_harness::Process], told: usize) -> Result<(usize, bool)> {
    let (mut known, mut sent, mut waiting) = (0, 0, 0);
    for agent in agents {
        let admin = agent.addr("admin").context("the admin listener")?;
        let text = TestClient::new(format!("http://{admin}")).get("/metrics").await?.body;
        let text = String::from_utf8_lossy(&text).into_owned();
        let number = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).unwrap_or(0.0) as usize
        };
        known += number("maestro_agent_works");
        sent += number("maestro_agent_statuses_sent");
        waiting += number("maestro_agent_statuses_waiting");
    }
    Ok((known, sent >= told && waiting == 0))
}

/// The size of what an event carries.
fn size(event: &aro_bundle::grpc::CloudEvent) -> Option<usize> {
    aro_bundle::grpc::read(event.clone()).ok().map(|event| event.data.len())
}

/// Notes the most memory that a process has in use.
struct Watermark {
    stop: Arc<AtomicBool>,
    watching: tokio::task::JoinHandle<f64>,
}

impl Watermark {
    #[allow(clippy::disallowed_methods, reason = "a benchmark has no scopes")]
    fn start(pid: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let own = stop.clone();
        let watching = tokio::spawn(async move {
            let mut most: f64 = 0.0;
            while !own.load(Ordering::Relaxed) {
                most = most.max(resident_mib(pid).unwrap_or(0.0));
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            most
        });
        Self { stop, watching }
    }

    async fn stop(self) -> f64 {
        self.stop.store(true, Ordering::Relaxed);
        self.watching.await.unwrap_or(0.0)
    }
}
