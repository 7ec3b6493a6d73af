//! Placement: which provision shard a cluster is on.
//!
//! A cluster takes a slot before its record is written: the slots of a shard are documents that hold the ids of its clusters,
//! and a placement replaces one of them on condition that the shard and all its slots are as they were read. So no two
//! placements, in any number of processes, exceed a shard's capacity. Placements of one process wait for each other instead
//! of conflicting.
//!
//! What was read is kept for a second, so that a burst of placements reads the slots once: the conditions of the write make
//! an old view harmless, and a refusal is never decided on one.
//!
//! A slot whose cluster was never stored (the process died in between) is released by [`Placement::sweep`]; deleting a
//! cluster releases its slot at the end.
//!
//! The choice: shards of the cluster's region and cloud that are active and have a free slot; of these the least loaded,
//! relative to its capacity. A cluster that names its shard gets it, whatever its status and load.

mod choose;
#[cfg(test)]
mod tests;

use std::time::Duration;

use aro_base::{Class, Classify, ETag, SharedClock, SignedDuration};
use aro_ocm::{ClusterId, ShardId, Time};
use aro_store::{Attempts, Batch, CollectionError, Op, PartitionKey, Query, StoreError, Typed};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::records::{
    CONTAINER, Record as _, Records, SHARD_PREFIX, SHARDS, ShardRecord, SlotsRecord, cluster_key, shard_key,
};
use choose::{Load, choose};

/// Slots in one document.
const PART: usize = 128;
/// Slots of one shard: a placement checks all of its documents in one batch.
pub const MAX_CAPACITY: usize = 12_000;
/// A slot without a cluster is kept this long: the request may be under way.
const ABANDONED: SignedDuration = SignedDuration::from_mins(10);
/// How long a view of shards and slots is used.
const KEPT: Duration = Duration::from_secs(1);

/// What a cluster needs of its shard.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The region.
    pub region: String,
    /// The cloud provider.
    pub cloud_provider: String,
    /// The shard that the cluster names.
    pub pinned: Option<ShardId>,
}

/// Why a cluster cannot be placed.
#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
    /// No active shard of the region.
    #[error(
        "Unable to find shard: no active provision shard in region '{region}' of cloud provider '{cloud_provider}'"
    )]
    NoShard { region: String, cloud_provider: String },
    /// All of them are full.
    #[error(
        "Unable to find shard: all {shards} active provision shards in region '{region}' are at their capacity"
    )]
    Full { region: String, shards: usize },
    /// The shard that the cluster names does not exist.
    #[error("Unable to find shard: provision shard '{0}' not found")]
    Unknown(ShardId),
    /// The store.
    #[error("place the cluster")]
    Store(#[from] CollectionError),
    /// Other processes placed clusters during every attempt.
    #[error("place the cluster: other placements keep changing the slots")]
    Contended,
}

impl Classify for PlacementError {
    fn class(&self) -> Class {
        match self {
            Self::NoShard { .. } | Self::Full { .. } | Self::Unknown(_) => Class::Terminal,
            Self::Store(error) => error.class(),
            Self::Contended => Class::Retry,
        }
    }
}

/// Places clusters on shards.
pub struct Placement {
    records: Records,
    clock: SharedClock,
    capacity: usize,
    /// The placement whose turn it is has the last view.
    turn: Mutex<Option<(Instant, Seen)>>,
}

/// The shards with their slots, as read.
struct Seen {
    shards: Vec<Typed<ShardRecord>>,
    slots: Vec<Typed<SlotsRecord>>,
}

/// A batch that takes a slot.
struct Taking {
    batch: Batch,
    /// Which operation writes the part.
    index: usize,
    /// The part as it is then.
    part: Typed<SlotsRecord>,
}

impl Seen {
    /// Takes over a part that was written.
    fn keep(&mut self, mut part: Typed<SlotsRecord>, etag: ETag) {
        part.etag = etag;
        match self.slots.iter_mut().find(|known| known.key == part.key) {
            Some(known) => *known = part,
            None => self.slots.push(part),
        }
    }

    fn slots_of(&self, shard: ShardId) -> impl Iterator<Item = &Typed<SlotsRecord>> {
        self.slots.iter().filter(move |slots| slots.value.shard == shard)
    }

    fn loads(&self, capacity: usize) -> Vec<Load<'_>> {
        let load = |shard| Load {
            shard,
            used: self.slots_of(shard.value.id).map(|slots| slots.value.clusters.len()).sum(),
            capacity: shard.value.capacity.unwrap_or(capacity),
        };
        self.shards.iter().map(load).collect()
    }
}

impl Placement {
    /// Placement with this capacity for shards that have none of their own.
    pub fn new(records: Records, clock: SharedClock, capacity: usize) -> Self {
        Self { records, clock, capacity, turn: Mutex::new(None) }
    }

    /// Whether a cluster could be placed now.
    pub async fn check(&self, wanted: &Wanted) -> Result<ShardRecord, PlacementError> {
        let seen = self.read().await?;
        Ok(choose(&seen.loads(self.capacity), wanted)?.value.clone())
    }

    /// Takes a slot for a cluster. Repeating it is safe: a cluster has one slot.
    pub async fn take(&self, id: &ClusterId, wanted: &Wanted) -> Result<ShardRecord, PlacementError> {
        let mut turn = self.turn.lock().await;
        let mut attempts = Attempts::default();
        loop {
            let kept = turn.take().filter(|(read, _)| read.elapsed() < KEPT);
            let is_fresh = kept.is_none();
            let (read, mut seen) = match kept {
                Some(kept) => kept,
                None => (Instant::now(), self.read().await?),
            };
            if let Some(taken) = seen.slots.iter().find(|slots| slots.value.clusters.contains_key(id)) {
                if !is_fresh {
                    // It may have been released since.
                    continue;
                }
                if let Some(shard) = seen.shards.iter().find(|shard| shard.value.id == taken.value.shard) {
                    return Ok(shard.value.clone());
                }
            }
            let shard = match choose(&seen.loads(self.capacity), wanted) {
                Ok(shard) => shard.clone(),
                Err(error) if is_fresh => return Err(error),
                // There may be a new shard, or free slots.
                Err(_) => continue,
            };
            let taking = self.taking(&seen, &shard, id)?;
            match self.records.store().write(taking.batch).await {
                Ok(written) => {
                    if let Some(written) = written.into_iter().nth(taking.index) {
                        seen.keep(taking.part, written.etag);
                        *turn = Some((read, seen));
                    }
                    return Ok(shard.value);
                }
                // Decided on an old view: read again at once.
                Err(StoreError::Conflict { .. }) if !is_fresh => continue,
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(CollectionError::from(error).into()),
            }
            if !attempts.wait_for_next().await {
                return Err(PlacementError::Contended);
            }
        }
    }

    /// The batch that takes a slot on condition that nothing of the shard changed.
    fn taking(
        &self,
        seen: &Seen,
        shard: &Typed<ShardRecord>,
        id: &ClusterId,
    ) -> Result<Taking, CollectionError> {
        let slots = &self.records.slots;
        let partition = PartitionKey::new(SHARDS);
        let mut batch = slots.batch(&partition).with(self.records.shards.check(shard));
        let now: Time = self.clock.now().into();
        let mut taken: Option<(usize, Typed<SlotsRecord>)> = None;
        let mut parts = 0;
        for part in seen.slots_of(shard.value.id) {
            parts = parts.max(part.value.part + 1);
            if taken.is_none() && part.value.clusters.len() < PART {
                let mut changed = part.clone();
                changed.value.clusters.insert(id.clone(), now);
                batch.push(slots.replace(&changed)?);
                taken = Some((batch.len() - 1, changed));
            } else {
                batch.push(slots.check(part));
            }
        }
        if let Some((index, part)) = taken {
            return Ok(Taking { batch, index, part });
        }
        let clusters = [(id.clone(), now)].into();
        let new = SlotsRecord { shard: shard.value.id, part: parts, clusters };
        let names = new.names();
        let part = Typed {
            key: slots.key(&partition, &names.id),
            resource_id: names.resource_id.clone(),
            etag: ETag::new(""),
            version: 0,
            modified: now.0,
            expires: None,
            value: new,
        };
        batch.push(slots.create(names, &part.value)?);
        Ok(Taking { index: batch.len() - 1, batch, part })
    }

    /// Releases the slot of a cluster. Repeating it is safe.
    pub async fn release(&self, id: &ClusterId, shard: ShardId) -> Result<(), CollectionError> {
        for slots in self.slots(Some(shard)).await? {
            if slots.value.clusters.contains_key(id) {
                let changed =
                    self.records.slots.update(&slots.key, |slots| slots.clusters.remove(id).is_some());
                changed.await?;
            }
        }
        // The kept view has the slot still.
        self.turn.lock().await.take();
        Ok(())
    }

    /// How many clusters each shard has.
    pub async fn load_of(&self, shard: ShardId) -> Result<usize, CollectionError> {
        Ok(self.slots(Some(shard)).await?.iter().map(|slots| slots.value.clusters.len()).sum())
    }

    /// Removes a shard that has no clusters, together with other documents of the partition; `false` if it has some, or one of
    /// them changed meanwhile.
    pub async fn remove(&self, shard: &Typed<ShardRecord>, with: Vec<Op>) -> Result<bool, CollectionError> {
        let slots = self.slots(Some(shard.value.id)).await?;
        if slots.iter().any(|slots| !slots.value.clusters.is_empty()) {
            return Ok(false);
        }
        let mut batch =
            self.records.shards.batch(&PartitionKey::new(SHARDS)).with(self.records.shards.delete(shard));
        for slots in &slots {
            batch.push(self.records.slots.delete(slots));
        }
        for op in with {
            batch.push(op);
        }
        match self.records.store().write(batch).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Releases slots whose clusters were never stored, or are gone. Returns how many.
    pub async fn sweep(&self) -> Result<usize, CollectionError> {
        let now = self.clock.now();
        let mut released = 0;
        for slots in self.slots(None).await? {
            for (id, since) in &slots.value.clusters {
                let is_old = now.duration_since(since.0) > ABANDONED;
                if is_old && self.records.store().get(&cluster_key(id)).await?.is_none() {
                    self.release(id, slots.value.shard).await?;
                    released += 1;
                }
            }
        }
        Ok(released)
    }

    /// A shard by its id.
    pub async fn find(&self, id: ShardId) -> Result<Option<Typed<ShardRecord>>, CollectionError> {
        self.records.shards.find(&shard_key(id)).await
    }

    async fn read(&self) -> Result<Seen, CollectionError> {
        let shards = self.records.shards.in_partition(&PartitionKey::new(SHARDS));
        let shards = self.records.shards.all(&shards).await?.complete()?;
        Ok(Seen { shards, slots: self.slots(None).await? })
    }

    async fn slots(&self, shard: Option<ShardId>) -> Result<Vec<Typed<SlotsRecord>>, CollectionError> {
        let query =
            Query::partition(CONTAINER, PartitionKey::new(SHARDS)).of_type(SlotsRecord::KIND.resource_type());
        let query = match shard {
            Some(shard) => query.under(format!("{SHARD_PREFIX}{shard}/")),
            None => query,
        };
        self.records.slots.all(&query).await?.complete()
    }
}
