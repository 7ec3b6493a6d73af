//! Leases: which replica may apply what.
//!
//! What it is: a [`LeaseTable`], the record that the replicas of one controller share, and [`Lease`], the port that stores
//! it. The table is a pure value: [`LeaseTable::renew`] is acquire and renew in one, [`LeaseTable::release`] gives
//! everything back. [`crate::Shards`] is the loop around them.
//!
//! Why one record for all shards: a renewal is one conditional write however many shards a replica holds, and members and
//! holders never disagree.
//!
//! Invariants:
//! * A shard has one holder. Whenever the holder changes, the epoch grows.
//! * No wall clock is compared between replicas. A member whose renewal count stands still for the lease's duration, by the
//!   observer's own monotonic clock, is dead.
//! * A replica that could not renew for that long stops to apply by itself; if it is too slow to notice, the epoch fences
//!   its writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use aro_base::{Class, Classify};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::shards::stable_hash;

#[cfg(test)]
mod tests;

/// Names a replica: unique among all that ever share a lease, and new after a restart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReplicaId(String);

impl ReplicaId {
    /// A replica by name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Counts the holders of a shard. A write with a lower epoch than one that the written system has seen is refused there:
/// it is a former holder's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// What a holder presents with its writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FencingToken {
    /// The shard's number.
    pub shard: usize,
    /// The epoch under which it is held.
    pub epoch: Epoch,
}

/// One shard of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which replica may apply; `None` before the first and after a release.
    pub holder: Option<ReplicaId>,
    /// Counts the holders so far.
    pub epoch: Epoch,
}

/// The replicas of a controller, and which holds which shard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseTable {
    /// Live replicas, with the number of their renewals.
    pub members: BTreeMap<ReplicaId, u64>,
    /// The shards by number.
    pub shards: Vec<Shard>,
}

/// What one replica knows beside the table.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// Members that have not renewed for the lease's duration.
    pub(crate) dead: BTreeSet<ReplicaId>,
    /// Shards that this replica has stopped to apply, and hands over.
    pub(crate) drained: BTreeSet<usize>,
}

impl LeaseTable {
    /// A table of this many shards without members.
    pub fn new(shards: usize) -> Self {
        Self { members: BTreeMap::new(), shards: vec![Shard::default(); shards.max(1)] }
    }

    /// Renews the membership of `replica`, removes dead members, hands over drained shards and takes free ones that the
    /// replica is preferred for.
    pub(crate) fn renew(&mut self, replica: &ReplicaId, view: &View) {
        self.members.retain(|member, _| member == replica || !view.dead.contains(member));
        *self.members.entry(replica.clone()).or_default() += 1;
        for number in 0..self.shards.len() {
            let preferred = self.preferred(number) == Some(replica);
            let Some(shard) = self.shards.get_mut(number) else { continue };
            let holder_alive = shard.holder.as_ref().is_some_and(|holder| self.members.contains_key(holder));
            match &shard.holder {
                Some(holder) if holder == replica => {
                    if view.drained.contains(&number) && !preferred {
                        shard.holder = None;
                    }
                }
                _ if holder_alive || !preferred => {}
                _ => {
                    shard.holder = Some(replica.clone());
                    shard.epoch.0 += 1;
                }
            }
        }
    }

    /// Gives back everything that `replica` holds, and its membership.
    pub fn release(&mut self, replica: &ReplicaId) {
        self.members.remove(replica);
        for shard in &mut self.shards {
            if shard.holder.as_ref() == Some(replica) {
                shard.holder = None;
            }
        }
    }

    /// The member that should hold a shard: the one with the highest score (rendezvous hashing), so that a member that
    /// joins or leaves moves only its own shards.
    pub(crate) fn preferred(&self, shard: usize) -> Option<&ReplicaId> {
        self.members.keys().max_by_key(|member| (stable_hash(&format_args!("{shard}/{member}")), *member))
    }
}

/// Why a lease could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("update lease `{name}`")]
pub struct LeaseError {
    /// Which lease.
    pub name: String,
    /// Why.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl Classify for LeaseError {
    /// The table is stored or it is not; both are found out by the next renewal.
    fn class(&self) -> Class {
        Class::Retry
    }
}

/// Stores one lease table. A port implements it with compare-and-swap.
#[async_trait]
pub trait Lease: Send + Sync + 'static {
    /// Reads the table (an empty one if there is none), applies `change` and writes it, unless it was written meanwhile:
    /// then all over again. Returns the table as written.
    async fn update(
        &self,
        change: &mut (dyn for<'a> FnMut(&'a mut LeaseTable) + Send),
    ) -> Result<LeaseTable, LeaseError>;
}
