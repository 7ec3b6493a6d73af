//! The shards that this replica holds, kept by renewing a lease.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Write as _};
use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_runtime::{Fault, Phase, Scope, TaskKind};
use parking_lot::RwLock;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::lease::{Epoch, FencingToken, Lease, LeaseTable, ReplicaId, View};

#[cfg(test)]
mod tests;

/// How a replica shares work with others.
#[derive(Debug, Clone)]
pub struct ShardOptions {
    /// The replica's name in the lease.
    pub replica: ReplicaId,
    /// How many shards a new lease has. An existing lease keeps its number.
    pub shards: usize,
    /// A member that does not renew for so long is dead. It renews every third of that.
    pub duration: Duration,
}

/// The shards that this replica holds. Cloning gives another handle.
#[derive(Clone)]
pub struct Shards {
    held: Arc<RwLock<Held>>,
    /// Counts renewals after which this replica holds a shard that it did not hold before.
    gains: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Held {
    /// Shards altogether; 0 before the first renewal.
    total: usize,
    epochs: BTreeMap<usize, Epoch>,
    /// Without a renewal until then, others count this replica as dead.
    valid_until: Option<Instant>,
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shards").field(&*self.held.read()).finish()
    }
}

impl Shards {
    /// Joins a lease and renews it until the scope is closed; then gives everything back, after the controllers have
    /// finished.
    pub fn start(lease: Arc<dyn Lease>, options: ShardOptions, scope: &Scope) -> Self {
        let shards = Self { held: Arc::default(), gains: watch::Sender::new(0) };
        let keeper = Keeper {
            lease,
            shards: shards.clone(),
            observed: BTreeMap::new(),
            draining: BTreeSet::new(),
            options,
        };
        let scope = scope.child(Phase::Roles, "lease");
        let inside = scope.clone();
        scope.spawn(TaskKind::Worker, "renew", async move {
            keeper.run(&inside).await;
            Ok::<_, Fault>(())
        });
        shards
    }

    /// The numbers of the shards that this replica holds now.
    pub fn held(&self) -> BTreeSet<usize> {
        let held = self.held.read();
        if held.is_valid() { held.epochs.keys().copied().collect() } else { BTreeSet::new() }
    }

    /// The token under which a key of this hash may be applied now; `None` if its shard is not held.
    pub(crate) fn token_of(&self, hash: u64) -> Option<FencingToken> {
        let held = self.held.read();
        let shard = (hash % u64::try_from(held.total).ok().filter(|total| *total > 0)?) as usize;
        let epoch = held.epochs.get(&shard).copied().filter(|_| held.is_valid())?;
        Some(FencingToken { shard, epoch })
    }

    pub(crate) fn gains(&self) -> watch::Receiver<u64> {
        self.gains.subscribe()
    }
}

impl Held {
    fn is_valid(&self) -> bool {
        self.valid_until.is_some_and(|until| Instant::now() < until)
    }
}

/// The loop that renews.
struct Keeper {
    lease: Arc<dyn Lease>,
    options: ShardOptions,
    shards: Shards,
    /// The last renewal count of each member, and when it was first seen.
    observed: BTreeMap<ReplicaId, (u64, Instant)>,
    /// Shards that another replica is preferred for; not applied since the last renewal, handed over by the next.
    draining: BTreeSet<usize>,
}

impl Keeper {
    async fn run(mut self, scope: &Scope) {
        let interval = self.options.duration / 3;
        let mut failed = false;
        while !scope.is_cancelled() {
            let began = Instant::now();
            match tokio::time::timeout(interval, self.renew()).await {
                Ok(Ok(table)) => {
                    if std::mem::take(&mut failed) {
                        tracing::info!(replica = %self.options.replica, "lease renewed again");
                    }
                    self.publish(&table, began);
                }
                Ok(Err(error)) => {
                    failed = true;
                    tracing::warn!(replica = %self.options.replica, error = %chain(&error), "lease not renewed");
                }
                Err(_) => {
                    failed = true;
                    tracing::warn!(replica = %self.options.replica, "lease renewal timed out");
                }
            }
            tokio::select! {
                () = scope.cancelled() => {}
                () = tokio::time::sleep_until(began + interval) => {}
            }
        }
        self.shards.held.write().epochs.clear();
        let replica = self.options.replica.clone();
        let release = async { self.lease.update(&mut |table| table.release(&replica)).await };
        // A release that fails costs the others the lease's duration.
        match tokio::time::timeout(interval, release).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%replica, error = %chain(&error), "lease not released"),
            Err(_) => tracing::warn!(%replica, "lease release timed out"),
        }
    }

    async fn renew(&mut self) -> Result<LeaseTable, crate::lease::LeaseError> {
        let Self { lease, options, observed, draining, .. } = self;
        let drained = draining.clone();
        lease
            .update(&mut |table| {
                if table.shards.is_empty() {
                    *table = LeaseTable::new(options.shards);
                }
                let dead = dead_members(observed, table, options.duration);
                table.renew(&options.replica, &View { dead, drained: drained.clone() });
            })
            .await
    }

    /// Takes over what the table states, measured from when the renewal began.
    fn publish(&mut self, table: &LeaseTable, began: Instant) {
        let replica = &self.options.replica;
        observe(&mut self.observed, table);
        let (mut epochs, mut draining) = (BTreeMap::new(), BTreeSet::new());
        for (number, shard) in table.shards.iter().enumerate() {
            if shard.holder.as_ref() == Some(replica) {
                if table.preferred(number) == Some(replica) {
                    epochs.insert(number, shard.epoch);
                } else {
                    draining.insert(number);
                }
            }
        }
        let mut held = self.shards.held.write();
        let lapsed = !held.is_valid();
        let gained = epochs.iter().any(|shard| lapsed || held.epochs.get(shard.0) != Some(shard.1));
        if held.epochs != epochs {
            tracing::info!(%replica, shards = ?epochs.keys().collect::<Vec<_>>(), "shards held");
        }
        *held = Held {
            total: table.shards.len(),
            epochs,
            valid_until: Some(began + self.options.duration * 5 / 6),
        };
        drop(held);
        self.draining = draining;
        if gained {
            self.shards.gains.send_modify(|gains| *gains += 1);
        }
    }
}

/// Notes renewal counts, and since when they stand.
fn observe(observed: &mut BTreeMap<ReplicaId, (u64, Instant)>, table: &LeaseTable) {
    let now = Instant::now();
    observed.retain(|member, _| table.members.contains_key(member));
    for (member, renewals) in &table.members {
        let entry = observed.entry(member.clone()).or_insert((*renewals, now));
        if entry.0 != *renewals {
            *entry = (*renewals, now);
        }
    }
}

/// Members whose renewal count has stood still for the lease's duration.
fn dead_members(
    observed: &BTreeMap<ReplicaId, (u64, Instant)>,
    table: &LeaseTable,
    duration: Duration,
) -> BTreeSet<ReplicaId> {
    let stands = |(member, renewals): (&ReplicaId, &u64)| {
        let (seen, since) = observed.get(member)?;
        (seen == renewals && since.elapsed() >= duration).then(|| member.clone())
    };
    table.members.iter().filter_map(stands).collect()
}

/// The same for the same text in every process and version: FNV-1a, with its bits mixed once more, as short texts differ in
/// few of them.
pub(crate) fn stable_hash(text: &(impl Display + ?Sized)) -> u64 {
    struct Fnv(u64);
    impl fmt::Write for Fnv {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for byte in text.bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
            Ok(())
        }
    }
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    // The writer above never fails; a `Display` that does yields the hash of what it printed.
    let _ = write!(hash, "{text}");
    let mut bits = hash.0;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
