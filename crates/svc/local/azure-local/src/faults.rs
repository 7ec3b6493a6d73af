//! The fault switchboard: what goes wrong in the cloud on purpose (ADR 0077).
//!
//! An operator adds rules ([`Rule`]). `call` describes a request, `decide` draws whether a rule fires (pure and seeded, so that a
//! failure can be replayed), `act` does it around the service that handles the request. Faults that only the engine can
//! make (quota, late role assignments, stuck operations) are asked for by the engine through [`FaultHooks`].
//!
//! Invariants:
//! * Without rules a request costs one atomic load.
//! * Rules are in memory and bounded in number; a restart clears them.
//! * A fault that refuses a request happens before the request is handled; a lost reply happens after its effect is durable.

mod act;
mod call;
mod decide;
mod rule;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aro_azure_local_engine::{FaultHooks, Stick, Target};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

pub(crate) use act::act;
pub(crate) use call::Call;
pub(crate) use decide::Plan;
use decide::{RuleState, decide, decide_inside};
pub use rule::{Fault, Operation, Rule};

/// How many rules there may be.
pub(crate) const MAX_RULES: usize = 1000;

/// A rule with its number and what it has done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleStatus {
    pub id: u64,
    /// Requests that it was for.
    pub matched: u64,
    /// Faults that it caused.
    pub fired: u64,
    pub rule: Rule,
}

/// The rules of a cloud.
#[derive(Debug)]
pub(crate) struct Switchboard {
    seed: u64,
    /// How many rules there are, for requests to read without the lock.
    active: AtomicUsize,
    rules: Mutex<Rules>,
}

#[derive(Debug, Default)]
struct Rules {
    last_id: u64,
    all: Vec<RuleState>,
}

/// Why a rule was not added.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotAdded {
    Invalid(String),
    TooMany,
}

impl Switchboard {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, active: AtomicUsize::new(0), rules: Mutex::default() }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn add(&self, rule: Rule) -> Result<RuleStatus, NotAdded> {
        rule.check().map_err(NotAdded::Invalid)?;
        let mut rules = self.rules.lock();
        if rules.all.len() >= MAX_RULES {
            return Err(NotAdded::TooMany);
        }
        rules.last_id += 1;
        let state = RuleState { id: rules.last_id, rule, matched: 0, fired: 0 };
        let status = status_of(&state);
        rules.all.push(state);
        self.active.store(rules.all.len(), Ordering::Release);
        Ok(status)
    }

    pub(crate) fn list(&self) -> Vec<RuleStatus> {
        self.rules.lock().all.iter().map(status_of).collect()
    }

    /// Removes a rule, or all; returns what was removed.
    pub(crate) fn clear(&self, id: Option<u64>) -> Vec<RuleStatus> {
        let mut rules = self.rules.lock();
        let (removed, kept): (Vec<RuleState>, Vec<RuleState>) =
            std::mem::take(&mut rules.all).into_iter().partition(|state| id.is_none_or(|id| state.id == id));
        rules.all = kept;
        self.active.store(rules.all.len(), Ordering::Release);
        removed.iter().map(status_of).collect()
    }

    /// Decides about a request.
    pub(crate) fn plan(&self, call: impl FnOnce() -> Call) -> Plan {
        if self.active.load(Ordering::Acquire) == 0 {
            return Plan::PASS;
        }
        decide(self.seed, &mut self.rules.lock().all, &call())
    }

    fn inside<T>(&self, fault: Fault, target: Target<'_>, then: impl FnOnce(&RuleState) -> T) -> Option<T> {
        if self.active.load(Ordering::Acquire) == 0 {
            return None;
        }
        let call = Call::of_resource(target.method, target.id);
        decide_inside(self.seed, &mut self.rules.lock().all, fault, &call).map(then)
    }
}

impl FaultHooks for Switchboard {
    fn exhausts_quota(&self, target: Target<'_>) -> bool {
        self.inside(Fault::QuotaExhausted, target, |_| ()).is_some()
    }

    fn assignment_delay(&self, target: Target<'_>) -> Duration {
        let delay = |state: &RuleState| state.rule.delay.map(aro_runtime::Period::get).unwrap_or_default();
        self.inside(Fault::LateRoleAssignment, target, delay).unwrap_or_default()
    }

    fn sticks(&self, target: Target<'_>) -> Option<Stick> {
        let stick = |state: &RuleState| Stick { rule: state.id, polls: state.rule.polls };
        self.inside(Fault::StuckOperation, target, stick)
    }
}

fn status_of(state: &RuleState) -> RuleStatus {
    RuleStatus { id: state.id, matched: state.matched, fired: state.fired, rule: state.rule.clone() }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::faults::decide::Act;

    fn call() -> Call {
        Call::of_arm(&Method::GET, "/subscriptions/s", "")
    }

    #[test]
    fn a_switchboard_without_rules_lets_everything_pass_and_asks_for_nothing() {
        let board = Switchboard::new(1);
        assert_eq!(board.plan(|| panic!("the request is not looked at")), Plan::PASS);
    }

    #[test]
    fn rules_are_counted_listed_and_cleared() {
        let board = Switchboard::new(1);
        let first = board.add(Rule { count: Some(1), ..Rule::of(Fault::Cut) }).unwrap();
        let second = board.add(Rule::of(Fault::ServerError)).unwrap();
        assert_eq!(board.plan(call).act, Act::Cut);
        assert_eq!(board.plan(call).act, Act::ServerError);
        let counts: Vec<_> =
            board.list().iter().map(|status| (status.id, status.matched, status.fired)).collect();
        assert_eq!(counts, [(first.id, 2, 1), (second.id, 1, 1)]);
        assert_eq!(board.clear(Some(first.id)).len(), 1);
        assert_eq!(board.clear(Some(first.id)), []);
        assert_eq!(board.clear(None).len(), 1);
        assert_eq!(board.plan(call), Plan::PASS);
    }

    #[test]
    fn the_number_of_rules_is_bounded() {
        let board = Switchboard::new(1);
        for _ in 0..MAX_RULES {
            board.add(Rule::of(Fault::Cut)).unwrap();
        }
        assert_eq!(board.add(Rule::of(Fault::Cut)), Err(NotAdded::TooMany));
        board.clear(None);
        assert!(board.add(Rule::of(Fault::Cut)).is_ok());
        assert!(matches!(board.add(Rule::of(Fault::Latency)), Err(NotAdded::Invalid(_))));
    }
}
