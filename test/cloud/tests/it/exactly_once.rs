//! Every call of our client of Azure finishes, and has its effect exactly once, whatever fails on the way.
//!
//! Each seed works in a resource group of its own, with three kinds of faults limited to that group: it makes resources, and
//! deletes them one by one or with their group. What happened is counted in the cloud's log of mutations. `ARO_SEED=<n>` runs
//! one seed again, with the same faults.

mod ledger;
mod random;
mod seed;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use aro_azure_local::{AzureLocalConfig, Fault};
use aro_cloud::{HyperTransport, SharedCredential};
use aro_cloud_e2e::{Principal, Site};
use aro_runtime::ByteSize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use ledger::Ledger;
use seed::{Finished, Seed};

/// How many seeds are run.
const SEEDS: u64 = 1024;
/// In how many of them each fault happens at least.
const LEAST: usize = 50;
/// Transports, each with a pool of connections, and the seeds that use one at a time.
const TRANSPORTS: usize = 3;
const AT_ONCE: usize = 16;
/// A seed that takes longer hangs.
const SEED_DEADLINE: Duration = Duration::from_mins(1);

/// The one seed that is asked for.
#[allow(clippy::disallowed_methods, reason = "a test is repeated by the environment")]
fn asked() -> Option<u64> {
    std::env::var("ARO_SEED").ok()?.parse().ok()
}

/// What all seeds share.
struct World {
    site: Site,
    transports: Vec<Arc<HyperTransport>>,
    /// For the administration: a fault that cuts a connection ends every request on it.
    undisturbed: Arc<HyperTransport>,
    customer: SharedCredential,
    worker: Principal,
}

impl World {
    async fn start() -> Result<Self> {
        let config = AzureLocalConfig { mutation_log: ByteSize::mib(64), ..AzureLocalConfig::default() };
        let site = Site::start_with(config).await?;
        let transports = (0..TRANSPORTS).map(|_| site.transport()).collect::<Result<Vec<_>>>()?;
        let transport = transports[0].clone();
        let cloud = site.cloud(transport.clone())?;
        let customer = site.customer(&cloud);
        let worker = Principal::register(&cloud, transport, &customer, site.account.tenant_id).await?;
        let undisturbed = site.transport()?;
        Ok(Self { site, transports, undisturbed, customer, worker })
    }

    fn seed(&self, number: u64) -> Result<Seed> {
        let transport = self.transports[usize::try_from(number)? % TRANSPORTS].clone();
        let cloud = self.site.cloud(transport)?;
        let administration = self.site.administration(self.undisturbed.clone());
        let (owner, worker) = (cloud.arm(self.customer.clone()), cloud.arm(self.worker.credential.clone()));
        Ok(Seed::new(number, self.site.subscription(), owner, worker, self.worker.object_id, administration))
    }
}

/// Runs seeds, some at a time.
async fn run(world: &World, numbers: Vec<u64>) -> Result<Vec<(u64, Result<Finished>)>> {
    let permits = Arc::new(Semaphore::new(TRANSPORTS * AT_ONCE));
    let mut running = JoinSet::new();
    for number in numbers {
        let (seed, permits) = (world.seed(number)?, permits.clone());
        running.spawn(async move {
            let _permit = permits.acquire_owned().await;
            let finished = match tokio::time::timeout(SEED_DEADLINE, seed.run()).await {
                Ok(finished) => finished,
                Err(_) => Err(anyhow::anyhow!("does not finish within {SEED_DEADLINE:?}")),
            };
            (number, finished)
        });
    }
    Ok(running.join_all().await)
}

/// In how many seeds each fault was asked for and happened, and how often.
fn table(finished: &[Finished]) -> (String, BTreeMap<Fault, usize>) {
    let mut counts: BTreeMap<Fault, (usize, usize, u64)> = Fault::ALL.map(|fault| (fault, (0, 0, 0))).into();
    for (fault, fired) in finished.iter().flat_map(|finished| &finished.faults) {
        let (asked, seeds, times) = counts.entry(*fault).or_default();
        *asked += 1;
        *seeds += usize::from(*fired > 0);
        *times += fired;
    }
    let mut text = format!("{:<20} {:>7} {:>11} {:>7}\n", "fault", "seeds", "fired in", "times");
    for (fault, (asked, seeds, times)) in &counts {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<20} {asked:>7} {seeds:>11} {times:>7}", format!("{fault:?}"));
    }
    (text, counts.into_iter().map(|(fault, (_, seeds, _))| (fault, seeds)).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_finishes_and_takes_effect_exactly_once_under_faults() -> Result<()> {
    let world = World::start().await?;
    let one = asked();
    let numbers = one.map_or_else(|| (1..=SEEDS).collect(), |seed| vec![seed]);
    let began = tokio::time::Instant::now();
    let (mut finished, mut failed) = (Vec::new(), Vec::new());
    for (number, outcome) in run(&world, numbers).await? {
        match outcome {
            Ok(seed) => finished.push(seed),
            Err(error) => failed.push((number, format!("{error:#}"))),
        }
    }
    let ledger = Ledger::read(&world.site.administration(world.undisturbed.clone()), &finished).await?;
    for seed in &finished {
        if let Err(error) = ledger.check(seed) {
            failed.push((seed.number, format!("{error:#}")));
        }
    }
    let (text, fired) = table(&finished);
    let calls: u64 = finished.iter().map(|seed| seed.calls).sum();
    let repeated: u64 = finished.iter().map(|seed| seed.repeated).sum();
    println!(
        "{} seeds in {:.1?}: {calls} calls, {repeated} of them repeated by their caller, {} mutations\n{text}",
        finished.len(),
        began.elapsed(),
        ledger.len(),
    );
    let failures: Vec<String> = failed
        .iter()
        .map(|(seed, error)| {
            format!("seed {seed}: {error}\n  replay: ARO_SEED={seed} cargo test -p aro-cloud-e2e exactly_once -- --nocapture")
        })
        .collect();
    ensure!(failures.is_empty(), "{} seeds failed:\n{}", failures.len(), failures.join("\n"));
    if one.is_none() {
        for (fault, seeds) in fired {
            ensure!(seeds >= LEAST, "{fault:?} happened in {seeds} seeds only");
        }
    }
    world.site.stop().await
}
