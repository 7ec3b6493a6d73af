//! Whether a rule fires. Pure: the same seed, rules and sequence of requests give the same faults.

use std::time::Duration;

use aro_azure_local_engine::authorization::matches;

use super::call::Call;
use super::rule::{Fault, Rule};

/// Without a time in the rule, a throttled client comes back after this long.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);

/// A rule and what it has done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RuleState {
    pub id: u64,
    pub rule: Rule,
    /// Requests that it was for.
    pub matched: u64,
    /// Faults that it caused.
    pub fired: u64,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Before anything else.
    pub delay: Duration,
    pub act: Act,
}

/// What happens to a request after its delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Pass,
    Throttle(Duration),
    ServerError,
    PermissionMissing,
    Cut,
    LostReply,
}

impl Plan {
    pub(crate) const PASS: Self = Self { delay: Duration::ZERO, act: Act::Pass };
}

/// Decides about a request as a whole. Delays add up; of the other faults the first that fires counts.
pub(crate) fn decide(seed: u64, rules: &mut [RuleState], call: &Call) -> Plan {
    let mut plan = Plan::PASS;
    for state in rules.iter_mut().filter(|state| is_for(&state.rule, call)) {
        let time = state.rule.delay.map(aro_runtime::Period::get);
        let act = match state.rule.fault {
            Fault::Latency => Act::Pass,
            Fault::Throttle => Act::Throttle(time.unwrap_or(DEFAULT_RETRY_AFTER)),
            Fault::ServerError => Act::ServerError,
            Fault::PermissionMissing => Act::PermissionMissing,
            Fault::Cut => Act::Cut,
            Fault::LostReply => Act::LostReply,
            // The engine asks for these where they matter.
            Fault::QuotaExhausted | Fault::LateRoleAssignment | Fault::StuckOperation => continue,
        };
        if !fires(seed, state) {
            continue;
        }
        if state.rule.fault == Fault::Latency {
            plan.delay = plan.delay.saturating_add(time.unwrap_or_default());
            continue;
        }
        plan.act = act;
        break;
    }
    plan
}

/// Decides about a fault inside of the engine; returns the rule that fires.
pub(crate) fn decide_inside<'r>(
    seed: u64,
    rules: &'r mut [RuleState],
    fault: Fault,
    call: &Call,
) -> Option<&'r RuleState> {
    let mut of_fault =
        rules.iter_mut().filter(|state| state.rule.fault == fault && is_for(&state.rule, call));
    of_fault.find_map(|state| fires(seed, state).then_some(&*state))
}

/// Whether a rule is for a request.
fn is_for(rule: &Rule, call: &Call) -> bool {
    rule.service == call.service
        && rule.operation.is_none_or(|operation| operation == call.operation)
        && rule.method.as_ref().is_none_or(|method| method.eq_ignore_ascii_case(&call.method))
        && rule.resource_type.as_ref().is_none_or(|pattern| matches(pattern, &call.resource_type))
        && rule.resource.as_ref().is_none_or(|pattern| matches(pattern, &call.resource))
}

/// Counts a match and draws.
fn fires(seed: u64, state: &mut RuleState) -> bool {
    state.matched += 1;
    if state.rule.count.is_some_and(|count| state.fired >= count) {
        return false;
    }
    let fires = draw(seed, state.rule.seed.unwrap_or(state.id), state.matched) < state.rule.probability;
    state.fired += u64::from(fires);
    fires
}

/// The n-th number of a stream, from 0 to below 1.
fn draw(seed: u64, stream: u64, n: u64) -> f64 {
    let mixed = mix(mix(mix(seed) ^ stream) ^ n);
    // 53 bits are what a float holds exactly.
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

/// splitmix64.
fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use aro_runtime::Period;
    use http::Method;

    use super::*;
    use crate::front_door::Service;

    const VNET: &str = "/subscriptions/S/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v";

    fn states(rules: Vec<Rule>) -> Vec<RuleState> {
        let numbered = rules.into_iter().zip(1..);
        numbered.map(|(rule, id)| RuleState { id, rule, matched: 0, fired: 0 }).collect()
    }

    fn put() -> Call {
        Call::of_arm(&Method::PUT, VNET, "")
    }

    fn sequence(seed: u64, rule: &Rule) -> Vec<bool> {
        let mut rules = states(vec![rule.clone()]);
        (0..200).map(|_| decide(seed, &mut rules, &put()).act == Act::Cut).collect()
    }

    #[test]
    fn a_rule_is_for_what_it_names() {
        let base = Rule::of(Fault::Cut);
        let typed = |text: &str| Rule { resource_type: Some(text.to_owned()), ..base.clone() };
        let of = |text: &str| Rule { resource: Some(text.to_owned()), ..base.clone() };
        for (rule, expected) in [
            (base.clone(), true),
            (typed("microsoft.network/VIRTUALNETWORKS"), true),
            (typed("Microsoft.Network/*"), true),
            (typed("Microsoft.Compute/*"), false),
            (of("*/resourcegroups/G/*"), true),
            (of("*/resourcegroups/other/*"), false),
            (Rule { method: Some("put".to_owned()), ..base.clone() }, true),
            (Rule { method: Some("GET".to_owned()), ..base.clone() }, false),
            (Rule { operation: Some(super::super::rule::Operation::Write), ..base.clone() }, true),
            (Rule { operation: Some(super::super::rule::Operation::Poll), ..base.clone() }, false),
            (Rule { service: Service::Login, ..base.clone() }, false),
        ] {
            assert_eq!(is_for(&rule, &put()), expected, "{rule:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_faults_and_another_one_others() {
        let rule = Rule { probability: 0.5, ..Rule::of(Fault::Cut) };
        assert_eq!(sequence(7, &rule), sequence(7, &rule));
        assert_ne!(sequence(7, &rule), sequence(8, &rule));
        let own = Rule { seed: Some(99), ..rule.clone() };
        assert_ne!(sequence(7, &rule), sequence(7, &own));
    }

    #[test]
    fn probability_and_count_limit_how_often_a_rule_fires() {
        let half = Rule { probability: 0.5, ..Rule::of(Fault::Cut) };
        let fired = sequence(1, &half).into_iter().filter(|fired| *fired).count();
        assert!((70..130).contains(&fired), "{fired} of 200");
        let twice = Rule { count: Some(2), ..Rule::of(Fault::Cut) };
        assert_eq!(sequence(1, &twice).into_iter().filter(|fired| *fired).count(), 2);
    }

    #[test]
    fn delays_add_up_and_the_first_other_fault_counts() {
        let slow = Rule { delay: Some(Period::secs(2)), ..Rule::of(Fault::Latency) };
        let mut rules =
            states(vec![slow.clone(), Rule::of(Fault::Throttle), slow.clone(), Rule::of(Fault::Cut)]);
        let plan = decide(1, &mut rules, &put());
        assert_eq!(plan, Plan { delay: Duration::from_secs(2), act: Act::Throttle(Duration::from_secs(1)) });
        let fired: Vec<u64> = rules.iter().map(|state| state.fired).collect();
        assert_eq!(fired, [1, 1, 0, 0], "what comes after the fault is not asked");
        let plan = decide(1, &mut states(vec![slow.clone(), slow]), &put());
        assert_eq!(plan, Plan { delay: Duration::from_secs(4), act: Act::Pass });
    }

    #[test]
    fn faults_of_the_engine_fire_where_the_engine_asks() {
        let mut rules = states(vec![Rule::of(Fault::QuotaExhausted), Rule::of(Fault::StuckOperation)]);
        assert_eq!(decide(1, &mut rules, &put()), Plan::PASS);
        assert!(rules.iter().all(|state| state.matched == 0));
        let fired = decide_inside(1, &mut rules, Fault::StuckOperation, &put());
        assert_eq!(fired.map(|state| (state.id, state.fired)), Some((2, 1)));
        assert!(decide_inside(1, &mut rules, Fault::LateRoleAssignment, &put()).is_none());
    }
}
