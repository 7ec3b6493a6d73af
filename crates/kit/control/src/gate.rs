//! Whether a key may be applied now: pause, dry-run, and the shards that this replica holds.
//!
//! A gate withholds `apply`, never `observe`: a withheld key is still previewed, so that a standby stays warm and an operator
//! reads what a controller would do ([`Gate::withheld`]). The gate enqueues a withheld key again once it is permitted.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::Arc;

use aro_runtime::{Fault, Scope, TaskKind};
use parking_lot::Mutex;

use crate::lease::FencingToken;
use crate::shards::{Shards, stable_hash};
use crate::{Key, Preview, Queue};

/// Why a key is not applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The key or its controller is paused.
    Paused,
    /// The controller only plans.
    DryRun,
    /// Another replica holds the key's shard, or this one could not renew its lease.
    Standby,
}

/// The right to apply, as of now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    /// To be presented with every write; `None` where a controller has only one replica.
    pub token: Option<FencingToken>,
}

/// A key whose pass waits for a permit, and what its last preview planned. Keys that are as desired are not withheld.
#[derive(Debug, Clone)]
pub struct Withheld<K> {
    /// Which.
    pub key: K,
    /// Why.
    pub reason: Reason,
    /// The printed plan; `None` for reconcilers that do not plan.
    pub plan: Option<String>,
}

/// The shards of a controller, and the hash that maps a key to one.
type Sharding<K> = (Shards, fn(&K) -> u64);

/// Decides whether keys of one controller are applied. Cloning gives another handle to the same gate.
pub struct Gate<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    queue: Queue<K>,
    /// The shards, and the hash that assigns a key to one.
    shards: Option<Sharding<K>>,
    state: Mutex<State<K>>,
}

struct State<K> {
    all_paused: bool,
    dry_run: bool,
    paused: HashSet<K>,
    withheld: HashMap<K, (Reason, Option<String>)>,
}

impl<K> Clone for Gate<K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<K> std::fmt::Debug for Gate<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.inner.state.lock();
        f.debug_struct("Gate")
            .field("all_paused", &state.all_paused)
            .field("dry_run", &state.dry_run)
            .field("paused", &state.paused.len())
            .field("withheld", &state.withheld.len())
            .finish_non_exhaustive()
    }
}

impl<K: Key> Gate<K> {
    /// A gate of a controller with one replica: it withholds what is paused or dry-run.
    pub fn new(queue: &Queue<K>) -> Self {
        Self::with(queue, None)
    }

    /// A gate of a controller with several replicas: it withholds keys of shards that other replicas hold as well. A key is
    /// assigned to a shard by its printed form, which must be the same in every replica.
    pub fn sharded(queue: &Queue<K>, shards: Shards) -> Self
    where
        K: Display,
    {
        Self::with(queue, Some((shards, |key| stable_hash(key))))
    }

    fn with(queue: &Queue<K>, shards: Option<Sharding<K>>) -> Self {
        let state =
            State { all_paused: false, dry_run: false, paused: HashSet::new(), withheld: HashMap::new() };
        Self { inner: Arc::new(Inner { queue: queue.clone(), shards, state: Mutex::new(state) }) }
    }

    /// Whether the key may be applied now. Ask before every act: a lease may have expired since the last one.
    pub fn permit(&self, key: &K) -> Result<Permit, Reason> {
        self.decide(&self.inner.state.lock(), key)
    }

    fn decide(&self, state: &State<K>, key: &K) -> Result<Permit, Reason> {
        if state.all_paused || state.paused.contains(key) {
            return Err(Reason::Paused);
        }
        if state.dry_run {
            return Err(Reason::DryRun);
        }
        match &self.inner.shards {
            None => Ok(Permit { token: None }),
            Some((shards, hash)) => match shards.token_of(hash(key)) {
                Some(token) => Ok(Permit { token: Some(token) }),
                None => Err(Reason::Standby),
            },
        }
    }

    /// Pauses one key.
    pub fn pause(&self, key: K) {
        self.inner.state.lock().paused.insert(key);
    }

    /// Resumes one key.
    pub fn resume(&self, key: &K) {
        self.inner.state.lock().paused.remove(key);
        self.readmit();
    }

    /// Pauses every key.
    pub fn pause_all(&self) {
        self.inner.state.lock().all_paused = true;
    }

    /// Resumes the controller. Keys that were paused on their own stay paused.
    pub fn resume_all(&self) {
        self.inner.state.lock().all_paused = false;
        self.readmit();
    }

    /// With `true` the controller plans and applies nothing.
    pub fn set_dry_run(&self, dry_run: bool) {
        self.inner.state.lock().dry_run = dry_run;
        self.readmit();
    }

    /// Every key whose pass waits for a permit, in no order.
    pub fn withheld(&self) -> Vec<Withheld<K>> {
        let state = self.inner.state.lock();
        let keys = state.withheld.iter().map(|(key, (reason, plan))| Withheld {
            key: key.clone(),
            reason: *reason,
            plan: plan.clone(),
        });
        keys.collect()
    }

    /// [`Gate::permit`] at the start of a pass: a permitted key is not withheld any longer.
    pub(crate) fn admit(&self, key: &K) -> Result<Permit, Reason> {
        let mut state = self.inner.state.lock();
        let decision = self.decide(&state, key);
        if decision.is_ok() {
            state.withheld.remove(key);
        }
        decision
    }

    /// Remembers a key that was previewed instead of reconciled. Permitted meanwhile, it is enqueued at once.
    pub(crate) fn withhold(&self, key: &K, reason: Reason, preview: Preview) {
        let mut state = self.inner.state.lock();
        let Preview::Pending { plan } = preview else {
            state.withheld.remove(key);
            return;
        };
        state.withheld.insert(key.clone(), (reason, plan));
        if self.decide(&state, key).is_ok() {
            drop(state);
            self.inner.queue.add(key.clone());
        }
    }

    /// Enqueues every withheld key that is permitted now.
    fn readmit(&self) {
        let state = self.inner.state.lock();
        let permitted = state.withheld.keys().filter(|key| self.decide(&state, key).is_ok());
        let permitted: Vec<K> = permitted.cloned().collect();
        drop(state);
        for key in permitted {
            self.inner.queue.add(key);
        }
    }

    /// Readmits keys whenever this replica gains a shard.
    pub(crate) fn run(&self, scope: &Scope) {
        let Some((shards, _)) = &self.inner.shards else { return };
        let (gate, mut gains) = (self.clone(), shards.gains());
        scope.spawn(TaskKind::Helper, "gate", async move {
            while gains.changed().await.is_ok() {
                gate.readmit();
            }
            Ok::<_, Fault>(())
        });
    }
}
