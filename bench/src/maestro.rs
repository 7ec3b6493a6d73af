//! Maestro's chain: from a source's publish over the broker to objects on management clusters, and back as statuses.
//!
//! Latencies are those of a source: from when a publish was due (or sent) to when the first status of its bundle was heard
//! on the source's subscription. In between lie the store, the broker, the agent, three or more objects applied and
//! flushed, the record of them, and the status on its way back.

mod bundles;
mod measure;
mod source;
mod world;

use anyhow::Result;
use clap::Args;

use crate::report;
use measure::Bench;
use world::World;

/// Where upstream's load test lies beside a checkout, if it does.
const WORKLOADS: &str = "../shared/specs/maestro/perf-workloads";

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Management clusters, each with its agent.
    #[arg(long, default_value_t = 10)]
    consumers: usize,
    /// Bundles of each.
    #[arg(long, default_value_t = 600)]
    bundles: usize,
    /// Publishes under way at once.
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// How long each measurement at a fixed rate takes, in seconds.
    #[arg(long, default_value_t = 10)]
    seconds: usize,
    /// Only this set-up: region or roles.
    #[arg(long)]
    only: Option<String>,
    /// Only the first part: publishing all bundles at once.
    #[arg(long)]
    burst: bool,
    /// Manifests of upstream's own load test, if they are at hand.
    #[arg(long, default_value = WORKLOADS)]
    workloads: std::path::PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            consumers: 10,
            bundles: 600,
            connections: 32,
            seconds: 10,
            only: None,
            burst: false,
            workloads: WORKLOADS.into(),
        }
    }
}

pub async fn run(options: Options) -> Result<()> {
    let wanted = |what: &str| options.only.as_deref().is_none_or(|only| only == what);
    let mut rows = Vec::new();
    if wanted("region") {
        rows.extend(Bench::new(World::region(options.consumers).await?, &options)?.run().await?);
    }
    if wanted("roles") {
        match World::roles(options.consumers).await? {
            Some(world) => rows.extend(Bench::new(world, &options)?.run().await?),
            None => eprintln!("SKIPPED: mosquitto is not installed; `make deps` installs it"),
        }
    }
    report::print("Maestro: publish, apply, status; durable writes, TLS between all parts", &rows);
    Ok(())
}
