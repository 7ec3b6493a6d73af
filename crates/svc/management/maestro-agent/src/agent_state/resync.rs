//! Resync: what the agent lists for the server, and which statuses the server's list leaves to publish. Pure.

use std::collections::HashSet;

use aro_bundle::{IdRange, KnownStatus, KnownVersion, StatusResync};

use super::AgentState;
use crate::record::Record;

impl AgentState {
    /// Queues the statuses that a status resync asks for: all of them, or those that differ from the listed digests. A
    /// request that names its id range leaves out ids for which the server has no bundle; their status is queued too, and
    /// the server answers it with a deletion. Returns how many are queued.
    pub fn resync(&mut self, request: &StatusResync, range: Option<&IdRange>) -> usize {
        let differs = |listed: &KnownStatus| {
            let record = self.get(&listed.id)?;
            let observed = record.observed.as_ref()?;
            (record.deleted || observed.hash != listed.hash).then(|| listed.id.clone())
        };
        let all = || self.entries.records().map(|record| record.id.clone());
        let ids: Vec<String> = if request.status_hashes.is_empty() {
            all().collect()
        } else {
            let listed: HashSet<&str> =
                request.status_hashes.iter().map(|listed| listed.id.as_str()).collect();
            let unlisted = range
                .into_iter()
                .flat_map(|range| all().filter(|id| range.contains(id) && !listed.contains(id.as_str())));
            request.status_hashes.iter().filter_map(differs).chain(unlisted).collect()
        };
        for id in &ids {
            self.request_status(id);
        }
        ids.len()
    }

    /// The versions the agent lists after a connect. `unclaimed` are names of works that the cluster has and no record
    /// covers: an earlier process ended before it stored them. The server sends the ones it has bundles for, and deletes
    /// the others. A work that is not named by a bundle id was not created by an agent and is left out.
    pub fn versions(&self, unclaimed: Vec<String>) -> Vec<KnownVersion> {
        let version =
            |record: &Record| KnownVersion { id: record.id.clone(), version: record.version.into() };
        let has_no_record = |name: &String| {
            !self.names.contains_key(name) && self.get(name).is_none() && uuid::Uuid::try_parse(name).is_ok()
        };
        let unclaimed = unclaimed.into_iter().filter(has_no_record);
        let unclaimed = unclaimed.map(|id| KnownVersion { id, version: 0 });
        self.entries.records().map(version).chain(unclaimed).collect()
    }
}
