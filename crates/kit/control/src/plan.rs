//! What a controller is going to do, as a value.

use std::fmt;

use aro_base::Timestamp;

use crate::Outcome;

/// The acts of one pass, in order, and what happens after them. Printable, so that it can be read instead of applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<A> {
    /// Applied in order; the first failure ends the pass.
    pub acts: Vec<A>,
    /// How the pass ends if every act succeeds.
    pub outcome: Outcome,
}

/// What one sub-plan decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<A> {
    /// These acts, then the next sub-plan.
    Continue(Vec<A>),
    /// These acts and no further sub-plan: the pass ends with this outcome.
    Stop(Vec<A>, Outcome),
}

impl<A> Step<A> {
    /// Nothing to do here.
    pub const fn pass() -> Self {
        Self::Continue(Vec::new())
    }
}

/// One part of a controller's decision. Pure.
pub type SubPlan<S, A> = fn(&S, Timestamp) -> Step<A>;

impl<A> Plan<A> {
    /// These acts; nothing is left to do after them.
    pub const fn of(acts: Vec<A>) -> Self {
        Self { acts, outcome: Outcome::Settled }
    }

    /// No act; the object is as desired.
    pub const fn settled() -> Self {
        Self::of(Vec::new())
    }

    /// Sub-plans in order. The first `Stop` ends the pass; acts that were collected before it are kept.
    pub fn chain<S>(seen: &S, now: Timestamp, sub_plans: &[SubPlan<S, A>]) -> Self {
        let mut acts = Vec::new();
        for sub_plan in sub_plans {
            match sub_plan(seen, now) {
                Step::Continue(more) => acts.extend(more),
                Step::Stop(more, outcome) => {
                    acts.extend(more);
                    return Self { acts, outcome };
                }
            }
        }
        Self::of(acts)
    }
}

impl<A: fmt::Display> fmt::Display for Plan<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, act) in self.acts.iter().enumerate() {
            writeln!(f, "{}. {act}", number + 1)?;
        }
        match self.outcome {
            Outcome::Settled => f.write_str("then settled"),
            Outcome::RequeueAfter(delay) => write!(f, "then again after {delay:?}"),
            Outcome::Waiting { on, .. } => write!(f, "then waits for {on}"),
        }
    }
}
