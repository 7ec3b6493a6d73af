//! What a budget's status says. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;

use crate::pods::share::{Round, of_whole};
use crate::pods::{controller_of, is_ready, is_terminating};
use crate::replica_set::time;

/// How long an evicted pod may take until its deletion shows.
const PATIENCE: SignedDuration = SignedDuration::from_mins(2);

/// Who decides how many pods there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub uid: String,
    pub size: i32,
}

/// Everything a pass looks at.
#[derive(Debug, Clone)]
pub struct Seen {
    pub budget: Arc<PodDisruptionBudget>,
    /// Those the budget protects.
    pub pods: Vec<Arc<Pod>>,
    /// By the uid of the pods' controllers; `None`: its size is unknown.
    pub owners: BTreeMap<String, Option<Owner>>,
    pub now: Timestamp,
}

/// What to write and when to look again.
#[derive(Debug, Clone)]
pub struct Plan {
    pub status: PodDisruptionBudgetStatus,
    pub next: Option<Duration>,
    /// Pods that were evicted long ago and are still there.
    pub overdue: Vec<Arc<Pod>>,
}

pub fn plan(seen: &Seen) -> Plan {
    let budget = &*seen.budget;
    let before = budget.status.clone().unwrap_or_default();
    let (expected, desired) = match numbers(seen) {
        Ok(numbers) => numbers,
        // What cannot be counted must not be disturbed.
        Err(why) => {
            let conditions =
                with_condition(&before, "False", "SyncFailed", why, before.observed_generation, seen.now);
            let conditions = Some(conditions);
            let status = PodDisruptionBudgetStatus { disruptions_allowed: Some(0), conditions, ..before };
            return Plan { status, next: None, overdue: Vec::new() };
        }
    };
    let (noted, next, overdue) = noted(seen, before.disrupted_pods.as_ref());
    let healthy =
        |pod: &&Arc<Pod>| !is_terminating(pod) && !noted.contains_key(&pod.name_any()) && is_ready(pod);
    let healthy = i32::try_from(seen.pods.iter().filter(healthy).count()).unwrap_or(i32::MAX);
    let allowed = if expected <= 0 { 0 } else { healthy.saturating_sub(desired).max(0) };
    let generation = budget.metadata.generation;
    let (state, reason) =
        if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let status = PodDisruptionBudgetStatus {
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        expected_pods: Some(expected),
        disruptions_allowed: Some(allowed),
        disrupted_pods: (!noted.is_empty()).then_some(noted),
        observed_generation: generation,
        conditions: Some(with_condition(&before, state, reason, String::new(), generation, seen.now)),
    };
    Plan { status, next, overdue }
}

/// How many pods there should be, and how many of them have to be healthy.
fn numbers(seen: &Seen) -> Result<(i32, i32), String> {
    let spec = seen.budget.spec.clone().unwrap_or_default();
    let wrong = |value: &IntOrString| format!("invalid value for IntOrString: {value:?}");
    if let Some(most) = spec.max_unavailable {
        let expected = expected(seen)?;
        let missing = of_whole(&most, expected, Round::Up).ok_or_else(|| wrong(&most))?;
        return Ok((expected, expected.saturating_sub(missing).max(0)));
    }
    match spec.min_available {
        Some(IntOrString::Int(least)) => Ok((i32::try_from(seen.pods.len()).unwrap_or(i32::MAX), least)),
        Some(share) => {
            let expected = expected(seen)?;
            let least = of_whole(&share, expected, Round::Up).ok_or_else(|| wrong(&share))?;
            Ok((expected, least))
        }
        None => Ok((0, 0)),
    }
}

/// The sizes of all who own the pods. Pods without a controller do not count.
fn expected(seen: &Seen) -> Result<i32, String> {
    let mut sizes: BTreeMap<&str, i32> = BTreeMap::new();
    for pod in &seen.pods {
        let Some(reference) = controller_of(&**pod) else { continue };
        let Some(Some(owner)) = seen.owners.get(&reference.uid) else {
            return Err(format!("found no controllers for pod {:?}", pod.name_any()));
        };
        sizes.insert(&owner.uid, owner.size);
    }
    Ok(sizes.values().fold(0, |sum, size| sum.saturating_add(*size)))
}

type Noted = BTreeMap<String, Time>;

/// Evicted pods whose deletion has not shown yet, when the first of them is overdue, and those that are.
fn noted(seen: &Seen, before: Option<&Noted>) -> (Noted, Option<Duration>, Vec<Arc<Pod>>) {
    let (mut noted, mut next, mut overdue) = (Noted::new(), None, Vec::new());
    for pod in seen.pods.iter().filter(|pod| !is_terminating(pod)) {
        let Some(at) = before.and_then(|before| before.get(&pod.name_any())) else { continue };
        let left = PATIENCE.saturating_sub(seen.now.duration_since(at.0));
        match Duration::try_from(left) {
            Ok(left) if !left.is_zero() => {
                noted.insert(pod.name_any(), at.clone());
                next = Some(next.map_or(left, |next: Duration| next.min(left)));
            }
            _ => overdue.push(pod.clone()),
        }
    }
    (noted, next, overdue)
}

fn with_condition(
    before: &PodDisruptionBudgetStatus,
    state: &str,
    reason: &str,
    message: String,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    const KIND: &str = "DisruptionAllowed";
    let mut all = before.conditions.clone().unwrap_or_default();
    let known = all.iter().position(|condition| condition.type_ == KIND);
    let since = known.map(|known| &all[known]).filter(|known| known.status == state);
    let since = since.map_or_else(|| time(now), |known| known.last_transition_time.clone());
    let new = Condition {
        type_: KIND.to_owned(),
        status: state.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: generation,
        last_transition_time: since,
    };
    match known {
        Some(known) => all[known] = new,
        None => all.push(new),
    }
    all
}
