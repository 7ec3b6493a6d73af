//! Benchmarks: they print a table for people and JSON for machines. Figures to keep go to `bench/RESULTS.md`.
//!
//! What is measured runs as a process of its own, the release build, as a user would run it; the load comes from this
//! process. Both share the machine, so figures are what one machine gives, client included.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what a benchmark is for")]

mod arm;
mod cloud;
mod clusters_service;
mod kube;
mod load;
mod maestro;
mod report;
mod workloads;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Benchmarks of aro.")]
struct Cli {
    /// What to measure; everything when not given.
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand)]
enum What {
    /// GET, list and PUT through the whole front end.
    Arm(arm::Options),
    /// Tokens, resources and lists of the local cloud, and what a resource costs in memory.
    Cloud(cloud::Options),
    /// From a PUT to the hosted cluster, searches, the event feed.
    ClustersService(clusters_service::Options),
    /// Writes, reads, lists and watches of embedded Kubernetes, beside a real one.
    Kube(kube::Options),
    /// Maestro's chain: publish, apply, status; lists, searches, resync.
    Maestro(maestro::Options),
    /// Pods from Deployment to Ready, nodes, memory, the start of a region.
    Workloads(workloads::Options),
}

#[tokio::main]
async fn main() -> Result<()> {
    match Cli::parse().what {
        None => {
            arm::run(arm::Options::default()).await?;
            cloud::run(cloud::Options::default()).await?;
            clusters_service::run(clusters_service::Options::default()).await?;
            kube::run(kube::Options::default()).await?;
            workloads::run(workloads::Options::default()).await?;
            maestro::run(maestro::Options::default()).await
        }
        Some(What::Arm(options)) => arm::run(options).await,
        Some(What::Cloud(options)) => cloud::run(options).await,
        Some(What::ClustersService(options)) => clusters_service::run(options).await,
        Some(What::Kube(options)) => kube::run(options).await,
        Some(What::Maestro(options)) => maestro::run(options).await,
        Some(What::Workloads(options)) => workloads::run(options).await,
    }
}
