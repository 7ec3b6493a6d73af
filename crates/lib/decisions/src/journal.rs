//! Appending to the journal.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use aro_base::{SharedClock, chain};
use aro_runtime::{Fault, Metrics, Scope, TaskKind};
use aro_store::{PartitionKey, SharedStore, StoreError, UnreadableDocuments};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;

use crate::documents::{Alias, Documents};
use crate::entry::{Entry, Recorded, hosted_cluster};

/// Entries that wait to be written, in bytes.
const BUDGET: usize = 4 << 20;
/// Entries of one batch.
const BATCH: usize = 50;
/// Aliases that are remembered as written.
const KNOWN_ALIASES: usize = 50_000;

/// A role's end of the journal. Cloning gives another handle.
#[derive(Clone)]
pub struct Decisions(Arc<Inner>);

struct Inner {
    role: &'static str,
    clock: SharedClock,
    sequence: AtomicU64,
    queued: Arc<AtomicUsize>,
    sender: mpsc::UnboundedSender<Recorded>,
    /// Taken by the one task that writes.
    receiver: Mutex<Option<mpsc::UnboundedReceiver<Recorded>>>,
    documents: Documents,
    dropped: Counter,
}

impl std::fmt::Debug for Decisions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Decisions({})", self.0.role)
    }
}

impl Decisions {
    /// The journal of a role in a store. Nothing is written before [`Decisions::start`].
    pub fn new(store: &SharedStore, role: &'static str, clock: SharedClock, metrics: &Metrics) -> Self {
        let dropped = Counter::default();
        metrics.register(|registry| {
            registry.register(
                "aro_decisions_dropped",
                "Entries of the decision journal that were dropped because the store was too slow",
                dropped.clone(),
            );
        });
        // Bounded by the bytes in it.
        let (sender, receiver) = mpsc::unbounded_channel();
        Self(Arc::new(Inner {
            role,
            clock,
            sequence: AtomicU64::new(0),
            queued: Arc::default(),
            sender,
            receiver: Mutex::new(Some(receiver)),
            documents: Documents::new(store, &UnreadableDocuments::new(metrics)),
            dropped,
        }))
    }

    /// Queues an entry. It is dropped if the store is so slow that the budget is used up.
    pub fn record(&self, entry: Entry) {
        let inner = &self.0;
        let sequence = inner.sequence.fetch_add(1, Ordering::Relaxed);
        let recorded = Recorded::new(entry, inner.role, inner.clock.now(), sequence);
        if recorded.subjects.is_empty() {
            return;
        }
        let size = recorded.size();
        if inner.queued.fetch_add(size, Ordering::Relaxed) + size > BUDGET
            || inner.sender.send(recorded).is_err()
        {
            inner.queued.fetch_sub(size, Ordering::Relaxed);
            inner.dropped.inc();
        }
    }

    /// Writes what is recorded until the scope is cancelled, then what is left.
    pub fn start(&self, scope: &Scope) {
        let Some(mut receiver) = self.0.receiver.lock().take() else { return };
        let (inner, inside) = (self.0.clone(), scope.clone());
        scope.spawn(TaskKind::Worker, "decisions", async move {
            let mut writer = Writer { documents: inner.documents.clone(), known: HashMap::new() };
            let mut entries = Vec::with_capacity(BATCH);
            loop {
                let received = tokio::select! {
                    biased;
                    received = receiver.recv_many(&mut entries, BATCH) => received,
                    () = inside.cancelled() => match receiver.try_recv() {
                        Ok(entry) => { entries.push(entry); 1 }
                        Err(_) => 0,
                    },
                };
                if received == 0 {
                    return Ok::<_, Fault>(());
                }
                let size: usize = entries.iter().map(Recorded::size).sum();
                if let Err(error) = writer.write(std::mem::take(&mut entries)).await {
                    tracing::debug!(error = %chain(&error), "decisions not recorded");
                    inner.dropped.inc_by(u64::try_from(received).unwrap_or(u64::MAX));
                }
                inner.queued.fetch_sub(size, Ordering::Relaxed);
            }
        });
    }
}

struct Writer {
    documents: Documents,
    /// Names that lead to a partition, as far as this process knows.
    known: HashMap<String, String>,
}

impl Writer {
    /// Writes entries, those of one partition in one batch.
    async fn write(&mut self, entries: Vec<Recorded>) -> Result<(), aro_store::CollectionError> {
        let mut by_partition: BTreeMap<String, Vec<Recorded>> = BTreeMap::new();
        for entry in entries {
            let Some(place) = self.place(&entry).await? else { continue };
            by_partition.entry(place).or_default().push(entry);
        }
        for (place, entries) in by_partition {
            let partition = PartitionKey::new(&place);
            let mut batch = self.documents.entries.batch(&partition);
            let mut others = HashSet::new();
            for entry in &entries {
                batch.push(self.documents.entries.create(Documents::entry_names(entry), entry)?);
                others.extend(entry.subjects.iter().filter(|name| **name != place).cloned());
            }
            self.documents.entries.store().write(batch).await?;
            for name in others {
                self.alias(name, &place).await?;
            }
        }
        Ok(())
    }

    /// The partition of an entry: that of its cluster, or the one that its names are known to lead to.
    async fn place(&mut self, entry: &Recorded) -> Result<Option<String>, aro_store::CollectionError> {
        if let Some(cluster) = entry.subjects.iter().find_map(|name| hosted_cluster(name)) {
            return Ok(Some(cluster.to_owned()));
        }
        for name in &entry.subjects {
            if let Some(known) = self.known.get(name) {
                return Ok(Some(known.clone()));
            }
            if let Some(alias) = self.documents.aliases.find(&Documents::alias_key(name)).await? {
                self.remember(name.clone(), alias.value.of.clone());
                return Ok(Some(alias.value.of));
            }
        }
        Ok(entry.subjects.first().cloned())
    }

    async fn alias(&mut self, name: String, place: &str) -> Result<(), aro_store::CollectionError> {
        if self.known.get(&name).is_some_and(|known| known == place) || hosted_cluster(&name) == Some(place) {
            return Ok(());
        }
        let partition = PartitionKey::new(&name);
        let alias = Alias { of: place.to_owned() };
        let batch = self.documents.aliases.batch(&partition);
        let batch = batch.with(self.documents.aliases.create(Documents::alias_names(), &alias)?);
        match self.documents.aliases.store().write(batch).await {
            Ok(_) | Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.remember(name, place.to_owned());
        Ok(())
    }

    fn remember(&mut self, name: String, place: String) {
        if self.known.len() >= KNOWN_ALIASES {
            self.known.clear();
        }
        self.known.insert(name, place);
    }
}
