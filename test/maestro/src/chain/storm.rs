//! A storm of wishes, and whether they came true.
//!
//! Works are created, changed and deleted in an order that a seed decides. A wish that got no answer is wished again, as
//! clients do, until it is taken. What was taken is kept, and compared in the end with what REST says and with what is on
//! the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use aro_bundle::Action;
use aro_fixtures::wait;
use serde_json::json;
use tokio::task::JoinSet;

use super::{Chain, Cluster, Dice, Source, config_map, feedback, spec};

/// Those who wish at the same time.
const WORKERS: usize = 4;
const NAMESPACE: &str = "default";

/// How bad it gets.
#[derive(Debug, Clone)]
pub struct Storm {
    pub seed: u64,
    pub consumer: String,
    /// How many works there are.
    pub works: usize,
    /// How many wishes.
    pub wishes: usize,
    /// How many of a hundred wishes about what is there are deletions.
    pub deletions: usize,
}

/// What was wished last of a work.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wish {
    version: i64,
    /// Nothing: it is to go.
    value: Option<String>,
}

/// What must be true in the end.
#[derive(Debug)]
pub struct Truth {
    source: String,
    consumer: String,
    wishes: BTreeMap<String, Wish>,
}

/// How many wishes were taken so far.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<AtomicUsize>);

impl Progress {
    /// Waits until so many were taken: a moment in the middle of a storm.
    pub async fn reaches(&self, count: usize) -> Result<()> {
        wait::until("the storm to go on", || async {
            Ok((self.0.load(Ordering::Relaxed) >= count).then_some(()))
        })
        .await
    }
}

impl Storm {
    pub fn new(seed: u64, consumer: &str, works: usize, wishes: usize) -> Self {
        Self { seed, consumer: consumer.to_owned(), works, wishes, deletions: 15 }
    }

    /// Lets it rage until every wish was taken. Says what was wished.
    pub async fn rage(self, source: Source, progress: Progress) -> Result<Truth> {
        let mut workers = JoinSet::new();
        for worker in 0..WORKERS {
            let (storm, source, progress) = (self.clone(), source.clone(), progress.clone());
            workers.spawn(async move { storm.part(worker, &source, &progress).await });
        }
        let mut wishes = BTreeMap::new();
        while let Some(part) = workers.join_next().await {
            wishes.extend(part??);
        }
        Ok(Truth { source: source.name, consumer: self.consumer, wishes })
    }

    async fn part(
        &self,
        worker: usize,
        source: &Source,
        progress: &Progress,
    ) -> Result<BTreeMap<String, Wish>> {
        let mut dice = Dice::new(self.seed ^ ((worker as u64 + 1) << 32));
        let mut wishes: BTreeMap<String, Wish> = BTreeMap::new();
        for step in 0..self.wishes / WORKERS {
            let number = dice.below(self.works.div_ceil(WORKERS)) * WORKERS + worker;
            let (work, value) = (format!("work-{number}"), format!("{worker}-{step}"));
            let data = spec(vec![config_map(NAMESPACE, &work, &value)]);
            let known = wishes.get(&work).cloned();
            let (action, wish) = match known {
                None => (Action::Create, Wish { version: 1, value: Some(value) }),
                Some(Wish { value: None, .. }) => continue,
                Some(known) if dice.percent(self.deletions) => {
                    (Action::Delete, Wish { value: None, ..known })
                }
                Some(known) => (Action::Update, Wish { version: known.version + 1, value: Some(value) }),
            };
            let data = (action != Action::Delete).then_some(&data);
            let mut event = source.event(action, &self.consumer, &work, 0, data)?;
            if action == Action::Delete {
                event.deletion_timestamp = event.time;
            }
            source.insist(&event).await.with_context(|| format!("wish {wish:?} of {work}"))?;
            wishes.insert(work, wish);
            progress.0.fetch_add(1, Ordering::Relaxed);
        }
        Ok(wishes)
    }
}

impl Truth {
    /// How many works there must be in the end.
    pub fn alive(&self) -> usize {
        self.wishes.values().filter(|wish| wish.value.is_some()).count()
    }

    /// Waits until REST and the cluster both say what was wished last, of every work, and everything is delivered.
    pub async fn holds(&self, chain: &Chain, cluster: &Cluster) -> Result<()> {
        ensure!(self.alive() > 0, "a storm that leaves nothing shows nothing");
        for (work, wish) in &self.wishes {
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
            // What was passed on too late may bring something back for a moment.
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
