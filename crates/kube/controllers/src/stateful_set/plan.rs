//! What a set needs next. Pure.
//!
//! An ordered set does one thing at a time: it waits at the first member that is not well. One exception, which upstream
//! lacks (there, a set whose update never becomes ready stays stuck even after the template was mended): a member that has
//! not been ready for a while and is not of the wanted revision is replaced, because nothing is lost by that, as long as
//! no replacement is still coming up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::identity::{first_ordinal, is_wanted, ordinal_in, replicas, revision_of};
use crate::pods::{self, Available};

/// Everything a decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    pub set: &'a StatefulSet,
    /// The members that are there, in no order.
    pub pods: &'a [Arc<Pod>],
    /// The name of the revision members had before the update.
    pub current: &'a str,
    /// The name of the revision members shall have.
    pub update: &'a str,
    pub now: Timestamp,
}

/// Which of the two revisions a new member is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Current,
    Update,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    Create {
        ordinal: i32,
        revision: Which,
    },
    Delete {
        pod: Arc<Pod>,
        ordinal: i32,
    },
    /// Look after its labels and claims.
    Tend {
        pod: Arc<Pod>,
        ordinal: i32,
    },
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    pub acts: Vec<Act>,
    /// When the next pass is due without a change.
    pub again: Option<Duration>,
}

/// How long an outdated member may be unready before it counts as broken. It may only miss a peer that is being updated.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);

struct Members<'a> {
    seen: Seen<'a>,
    wanted: BTreeMap<i32, &'a Arc<Pod>>,
    surplus: BTreeMap<i32, &'a Arc<Pod>>,
    ordered: bool,
    min_ready: i32,
}

pub fn plan(seen: Seen<'_>) -> Plan {
    if seen.set.metadata.deletion_timestamp.is_some() {
        return Plan::default();
    }
    let members = Members::of(seen);
    let mut acts = Vec::new();
    let well = members.keep(&mut acts) && members.shrink(&mut acts);
    members.update(well, &mut acts);
    Plan { acts, again: members.next_look() }
}

impl<'a> Members<'a> {
    fn of(seen: Seen<'a>) -> Self {
        let name = seen.set.metadata.name.as_deref().unwrap_or_default();
        let (mut wanted, mut surplus) = (BTreeMap::new(), BTreeMap::new());
        for pod in seen.pods {
            let Some(ordinal) = ordinal_in(name, pod.metadata.name.as_deref().unwrap_or_default()) else {
                continue;
            };
            let side = if is_wanted(seen.set, ordinal) { &mut wanted } else { &mut surplus };
            side.insert(ordinal, pod);
        }
        let spec = seen.set.spec.as_ref();
        let parallel = spec.and_then(|spec| spec.pod_management_policy.as_deref()) == Some("Parallel");
        let min_ready = spec.and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
        Self { seen, wanted, surplus, ordered: !parallel, min_ready }
    }

    fn ordinals(&self) -> std::ops::Range<i32> {
        let first = first_ordinal(self.seen.set);
        first..first.saturating_add(replicas(self.seen.set))
    }

    fn is_available(&self, pod: &Pod) -> bool {
        !pods::is_terminating(pod) && pods::availability(pod, self.min_ready, self.seen.now) == Available::Yes
    }

    /// Wanted members: the finished go, the missing come. Returns whether the set is well so far.
    fn keep(&self, acts: &mut Vec<Act>) -> bool {
        let mut well = true;
        for ordinal in self.ordinals() {
            let fine = match self.wanted.get(&ordinal) {
                None => {
                    acts.push(Act::Create { ordinal, revision: self.revision_for(ordinal) });
                    false
                }
                Some(pod) if pods::is_terminating(pod) => false,
                Some(pod) if pods::is_finished(pod) => {
                    acts.push(Act::Delete { pod: Arc::clone(pod), ordinal });
                    false
                }
                Some(pod) => {
                    acts.push(Act::Tend { pod: Arc::clone(pod), ordinal });
                    is_ready(pod) && self.is_available(pod)
                }
            };
            well &= fine;
            if !well && self.ordered {
                return false;
            }
        }
        // Without an order, nothing holds anything up.
        true
    }

    /// Surplus members are deleted, the highest first. Returns whether all are gone.
    fn shrink(&self, acts: &mut Vec<Act>) -> bool {
        let unwell = |pod: &&&Arc<Pod>| !self.is_available(pod);
        let first_unwell = self.wanted.values().find(unwell).or_else(|| self.surplus.values().find(unwell));
        acts.extend(
            self.surplus.iter().map(|(ordinal, pod)| Act::Tend { pod: Arc::clone(pod), ordinal: *ordinal }),
        );
        for (ordinal, pod) in self.surplus.iter().rev() {
            if pods::is_terminating(pod) {
                if self.ordered {
                    return false;
                }
                continue;
            }
            let sick = !is_ready(pod) || !self.is_available(pod);
            let is_first = first_unwell.is_some_and(|first| Arc::ptr_eq(first, pod));
            if self.ordered && sick && !is_first {
                return false;
            }
            acts.push(Act::Delete { pod: Arc::clone(pod), ordinal: *ordinal });
            if self.ordered {
                return false;
            }
        }
        true
    }

    /// Members of another revision are replaced, the highest first; those that are down anyway before all others.
    fn update(&self, well: bool, acts: &mut Vec<Act>) {
        let Some(rolling) = Rolling::of(self.seen.set) else { return };
        let from = first_ordinal(self.seen.set).saturating_add(rolling.partition);
        let down = self
            .ordinals()
            .filter(|ordinal| self.wanted.get(ordinal).is_none_or(|pod| !self.is_available(pod)))
            .count();
        let outdated = self.wanted.iter().rev().filter(|(ordinal, pod)| {
            **ordinal >= from && revision_of(pod) != self.seen.update && pods::is_active(pod)
        });
        let (unready, working): (Vec<_>, Vec<_>) = outdated.partition(|(_, pod)| !is_ready(pod));
        let broken: Vec<_> =
            unready.into_iter().filter(|(_, pod)| self.patience_with(pod).is_zero()).collect();
        let made = acts.iter().filter(|act| matches!(act, Act::Create { .. })).count();
        let unwell = self.wanted.values().filter(|pod| !self.is_available(pod)).count();
        let coming = made + unwell.saturating_sub(broken.len());
        let room = rolling.max_unavailable.saturating_sub(coming);
        let free = if well { rolling.max_unavailable.saturating_sub(down) } else { 0 };
        let chosen = broken.into_iter().take(room).chain(working.into_iter().take(free));
        acts.extend(chosen.map(|(ordinal, pod)| Act::Delete { pod: Arc::clone(pod), ordinal: *ordinal }));
    }

    fn revision_for(&self, ordinal: i32) -> Which {
        let partition = Rolling::of(self.seen.set).map_or(0, |rolling| rolling.partition);
        if ordinal < first_ordinal(self.seen.set).saturating_add(partition) {
            Which::Current
        } else {
            Which::Update
        }
    }

    /// How long a member that is not ready gets to become so.
    fn patience_with(&self, pod: &Pod) -> Duration {
        let since = pods::condition(pod, "Ready").and_then(|ready| ready.last_transition_time.as_ref());
        let since = since.or(pod.metadata.creation_timestamp.as_ref());
        let waited = since.map_or(SignedDuration::MAX, |since| self.seen.now.duration_since(since.0));
        Duration::try_from(PATIENCE.saturating_sub(waited)).unwrap_or_default()
    }

    /// When to look again even if nothing happens.
    fn next_look(&self) -> Option<Duration> {
        let waits = self.wanted.values().filter_map(|pod| {
            match pods::availability(pod, self.min_ready, self.seen.now) {
                Available::After(wait) => Some(wait),
                Available::No if revision_of(pod) != self.seen.update && pods::is_active(pod) => {
                    Some(self.patience_with(pod)).filter(|wait| !wait.is_zero())
                }
                Available::Yes | Available::No => None,
            }
        });
        waits.min()
    }
}

fn is_ready(pod: &Pod) -> bool {
    pods::phase(pod) == "Running" && pods::is_ready(pod)
}

struct Rolling {
    partition: i32,
    max_unavailable: usize,
}

impl Rolling {
    /// `None`: members are only updated after a client deletes them.
    fn of(set: &StatefulSet) -> Option<Self> {
        let strategy = set.spec.as_ref()?.update_strategy.as_ref();
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return None;
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or(0).max(0);
        let max = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        Some(Self { partition, max_unavailable: at_least_one(max, replicas(set)) })
    }
}

/// A number, or a share of all rounded down; never less than one.
fn at_least_one(value: Option<&IntOrString>, of: i32) -> usize {
    let number = match value {
        None => 1,
        Some(IntOrString::Int(number)) => i64::from(*number),
        Some(IntOrString::String(text)) => {
            let percent = text.strip_suffix('%').and_then(|text| text.parse::<i64>().ok());
            percent.unwrap_or(0).saturating_mul(i64::from(of)) / 100
        }
    };
    usize::try_from(number.max(1)).unwrap_or(usize::MAX)
}

/// What the set says about itself.
pub fn status(seen: Seen<'_>, collisions: i32) -> StatefulSetStatus {
    let min_ready = seen.set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
    let count = |holds: &dyn Fn(&Pod) -> bool| {
        i32::try_from(seen.pods.iter().filter(|pod| !pods::phase(pod).is_empty() && holds(pod)).count())
            .unwrap_or(i32::MAX)
    };
    let of = |revision: &str| count(&|pod| !pods::is_terminating(pod) && revision_of(pod) == revision);
    let mut status = StatefulSetStatus {
        observed_generation: seen.set.metadata.generation,
        replicas: count(&|_| true),
        ready_replicas: Some(count(&is_ready)),
        available_replicas: Some(count(&|pod| {
            is_ready(pod) && pods::availability(pod, min_ready, seen.now) == Available::Yes
        })),
        current_replicas: Some(of(seen.current)),
        updated_replicas: Some(of(seen.update)),
        current_revision: Some(seen.current.to_owned()),
        update_revision: Some(seen.update.to_owned()),
        collision_count: Some(collisions),
        conditions: seen.set.status.as_ref().and_then(|status| status.conditions.clone()),
    };
    let all = replicas(seen.set);
    let done = [Some(status.replicas), status.updated_replicas, status.ready_replicas];
    if Rolling::of(seen.set).is_some() && done.iter().all(|count| *count == Some(all)) {
        status.current_replicas = status.updated_replicas;
        status.current_revision.clone_from(&status.update_revision);
    }
    status
}

#[cfg(test)]
mod tests;
