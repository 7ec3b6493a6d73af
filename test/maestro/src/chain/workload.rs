//! A workload of random operations, and the check of its outcome.
//!
//! Works are created, updated and deleted in an order that a seed decides. An operation without a response is repeated, as
//! clients do, until it is accepted. Accepted operations are recorded, and compared in the end with REST and with the
//! cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use aro_bundle::Action;
use aro_fixtures::wait;
use serde_json::json;
use tokio::task::JoinSet;

use super::{Chain, Cluster, SeededRandom, Source, config_map, feedback, spec};

/// Concurrent clients.
const WORKERS: usize = 4;
const NAMESPACE: &str = "default";

/// The parameters of a workload.
#[derive(Debug, Clone)]
pub struct Workload {
    pub seed: u64,
    pub consumer: String,
    /// The number of works.
    pub works: usize,
    /// The number of operations.
    pub operations: usize,
    /// The percentage of deletions among operations on existing works.
    pub deletions: usize,
}

/// The last operation on a work.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wish {
    version: i64,
    /// It was deleted.
    value: Option<String>,
}

/// The expected outcome.
#[derive(Debug)]
pub struct Expected {
    source: String,
    consumer: String,
    operations: BTreeMap<String, Wish>,
}

/// The number of accepted operations.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<AtomicUsize>);

impl Progress {
    /// Waits until this many were accepted: a moment in the middle of a workload.
    pub async fn reaches(&self, count: usize) -> Result<()> {
        wait::until("the workload to go on", || async {
            Ok((self.0.load(Ordering::Relaxed) >= count).then_some(()))
        })
        .await
    }
}

impl Workload {
    pub fn new(seed: u64, consumer: &str, works: usize, operations: usize) -> Self {
        Self { seed, consumer: consumer.to_owned(), works, operations, deletions: 15 }
    }

    /// Runs until every operation was accepted. Returns the expected outcome.
    pub async fn run(self, source: Source, progress: Progress) -> Result<Expected> {
        let mut workers = JoinSet::new();
        for worker in 0..WORKERS {
            let (workload, source, progress) = (self.clone(), source.clone(), progress.clone());
            workers.spawn(async move { workload.part(worker, &source, &progress).await });
        }
        let mut operations = BTreeMap::new();
        while let Some(part) = workers.join_next().await {
            operations.extend(part??);
        }
        Ok(Expected { source: source.name, consumer: self.consumer, operations })
    }

    async fn part(
        &self,
        worker: usize,
        source: &Source,
        progress: &Progress,
    ) -> Result<BTreeMap<String, Wish>> {
        let mut random = SeededRandom::new(self.seed ^ ((worker as u64 + 1) << 32));
        let mut operations: BTreeMap<String, Wish> = BTreeMap::new();
        for step in 0..self.operations / WORKERS {
            let number = random.below(self.works.div_ceil(WORKERS)) * WORKERS + worker;
            let (work, value) = (format!("work-{number}"), format!("{worker}-{step}"));
            let data = spec(vec![config_map(NAMESPACE, &work, &value)]);
            let known = operations.get(&work).cloned();
            let (action, wish) = match known {
                None => (Action::Create, Wish { version: 1, value: Some(value) }),
                Some(Wish { value: None, .. }) => continue,
                Some(known) if random.percent(self.deletions) => {
                    (Action::Delete, Wish { value: None, ..known })
                }
                Some(known) => (Action::Update, Wish { version: known.version + 1, value: Some(value) }),
            };
            let data = (action != Action::Delete).then_some(&data);
            let mut event = source.event(action, &self.consumer, &work, 0, data)?;
            if action == Action::Delete {
                event.deletion_timestamp = event.time;
            }
            source
                .publish_until_accepted(&event)
                .await
                .with_context(|| format!("wish {wish:?} of {work}"))?;
            operations.insert(work, wish);
            progress.0.fetch_add(1, Ordering::Relaxed);
        }
        Ok(operations)
    }
}

impl Expected {
    /// The number of remaining works.
    pub fn alive(&self) -> usize {
        self.operations.values().filter(|wish| wish.value.is_some()).count()
    }

    /// Waits until REST and the cluster both match the last operation on every work, and everything is delivered.
    pub async fn holds(&self, chain: &Chain, cluster: &Cluster) -> Result<()> {
        ensure!(self.alive() > 0, "a workload that leaves nothing shows nothing");
        for (work, wish) in &self.operations {
            let id = aro_bundle::work_uid(&self.source, &self.consumer, work).to_string();
            match &wish.value {
                Some(value) => {
                    let bundle = chain.settled(&id, wish.version).await.with_context(|| work.clone())?;
                    ensure!(
                        feedback(&bundle, 0, "value") == Some(value),
                        "{work} should be {value}: {bundle:#}"
                    );
                }
                None => chain.gone(&id).await.with_context(|| work.clone())?,
            }
            let wanted = wish.value.as_ref().map(|value| json!({"value": value}));
            // A late message may bring a work back for a moment.
            let came = wait::until("the cluster to have what was wished", || async {
                Ok((cluster.config_map(NAMESPACE, work).await? == wanted).then_some(()))
            })
            .await;
            if let Err(error) = came {
                let there = cluster.about(NAMESPACE, work, &id).await?;
                return Err(error.context(format!("{work} should be {wanted:?}, and is {there:#}")));
            }
        }
        chain.all_delivered().await
    }
}
