//! What the cloud's log of mutations holds, by resource.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Result, ensure};
use aro_azure_local::{MutationEntry, MutationPage};
use aro_cloud_e2e::Administration;
use aro_fixtures::wait;
use http::{Method, StatusCode};

use super::seed::Finished;

/// How often each outcome of each method was logged.
type Outcomes = BTreeMap<(String, String), usize>;

/// The log of a whole run.
pub struct Ledger {
    /// By resource id in lower case.
    outcomes: HashMap<String, Outcomes>,
    entries: usize,
}

impl Ledger {
    /// Reads the log, as soon as every group that was deleted is in it: its entry follows the commit that clients see.
    pub async fn read(administration: &Administration, finished: &[Finished]) -> Result<Self> {
        let groups = finished.iter().filter(|seed| seed.with_group);
        let gone: HashSet<String> = groups.map(|seed| seed.group.to_lower()).collect();
        wait::until("the log to hold every deletion", || async {
            let ledger = Self::read_once(administration).await?;
            let complete = gone.iter().all(|group| ledger.count(group, "deleted") > 0);
            Ok(complete.then_some(ledger))
        })
        .await
    }

    async fn read_once(administration: &Administration) -> Result<Self> {
        let (mut ledger, mut cursor) = (Self { outcomes: HashMap::new(), entries: 0 }, 0);
        loop {
            let (status, body) =
                administration.call(Method::GET, &format!("mutations?after={cursor}"), None).await?;
            ensure!(status == StatusCode::OK, "{status}: {body}");
            let page: MutationPage = serde_json::from_value(body)?;
            if page.entries.is_empty() {
                return Ok(ledger);
            }
            cursor = page.cursor;
            page.entries.into_iter().for_each(|entry| ledger.add(entry));
        }
    }

    fn add(&mut self, entry: MutationEntry) {
        self.entries += 1;
        let outcomes = self.outcomes.entry(entry.resource_id.to_lowercase()).or_default();
        *outcomes.entry((entry.method, entry.outcome)).or_default() += 1;
    }

    pub fn len(&self) -> usize {
        self.entries
    }

    fn count(&self, id: &str, outcome: &str) -> usize {
        let outcomes = self.outcomes.get(id).into_iter().flatten();
        outcomes.filter(|((_, known), _)| known == outcome).map(|(_, count)| count).sum()
    }

    /// Whether everything that a seed made was created once, never written again, and deleted once.
    pub fn check(&self, seed: &Finished) -> Result<()> {
        let group = seed.group.to_lower();
        self.check_one(&group, usize::from(seed.with_group))?;
        let mut known = HashSet::from([group.clone()]);
        for made in &seed.made {
            let id = made.id.to_lower();
            self.check_one(&id, usize::from(!(seed.with_group && made.inline)))?;
            known.insert(id);
        }
        let below = format!("{group}/");
        let strange = self.outcomes.keys().find(|id| id.starts_with(&below) && !known.contains(*id));
        ensure!(strange.is_none(), "the seed did not make {strange:?}");
        Ok(())
    }

    fn check_one(&self, id: &str, deleted: usize) -> Result<()> {
        let outcomes = self.outcomes.get(id);
        ensure!(self.count(id, "created") == 1, "{id} was not created exactly once: {outcomes:?}");
        ensure!(self.count(id, "deleted") == deleted, "{id} was not deleted {deleted} times: {outcomes:?}");
        let written = outcomes
            .into_iter()
            .flatten()
            .any(|((method, outcome), _)| outcome == "updated" || (outcome == "noop" && method != "DELETE"));
        ensure!(!written, "{id} was written more than once: {outcomes:?}");
        Ok(())
    }
}
