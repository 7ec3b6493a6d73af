//! Conditions: their words, and how a new set of them follows from the last.

use aro_base::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

pub(crate) const APPLIED: &str = "Applied";
pub(crate) const AVAILABLE: &str = "Available";
pub(crate) const FEEDBACK: &str = "StatusFeedbackSynced";
pub(crate) const DELETING: &str = "Deleting";
pub(crate) const COMPLETE: &str = "Complete";
pub(crate) const PROGRESSING: &str = "Progressing";

/// Conditions that follow from rules carry a reason that begins so.
pub(crate) const RULE_PREFIX: &str = "ConditionRule";

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    pub(crate) fn of(yes: bool) -> Self {
        if yes { Self::True } else { Self::False }
    }
}

/// A condition before it is known since when it is so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) kind: String,
    pub(crate) truth: Truth,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// The generation it speaks of, where it does.
    pub(crate) generation: Option<i64>,
}

impl Claim {
    pub(crate) fn new(kind: &str, truth: Truth, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), truth, reason, message: message.into(), generation: None }
    }

    pub(crate) fn at(self, generation: i64) -> Self {
        Self { generation: Some(generation), ..self }
    }
}

/// The conditions that `claims` make: a time stays as long as status and generation do. `anew` names a condition
/// whose time is now, whatever it was.
pub(crate) fn settle(
    old: &[Condition],
    claims: Vec<Claim>,
    now: Timestamp,
    anew: Option<&str>,
) -> Vec<Condition> {
    claims
        .into_iter()
        .map(|claim| {
            let before = find(old, &claim.kind).filter(|before| {
                before.status == claim.truth.word()
                    && before.observed_generation == claim.generation
                    && anew != Some(claim.kind.as_str())
            });
            let time = before.map_or_else(|| seconds(now), |before| before.last_transition_time.clone());
            Condition {
                last_transition_time: time,
                message: claim.message,
                observed_generation: claim.generation,
                reason: claim.reason.to_owned(),
                status: claim.truth.word().to_owned(),
                type_: claim.kind,
            }
        })
        .collect()
}

/// Times in conditions have whole seconds.
fn seconds(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

pub(crate) fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

pub(crate) fn is_true(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_stays_while_status_and_generation_do() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let claim = |truth, generation| vec![Claim::new(APPLIED, truth, "R", "m").at(generation)];
        let first = settle(&[], claim(Truth::True, 1), at(10), None);
        let when = |conditions: &[Condition]| conditions[0].last_transition_time.0.as_second();
        assert_eq!(when(&first), 10);
        assert_eq!(when(&settle(&first, claim(Truth::True, 1), at(20), None)), 10);
        assert_eq!(when(&settle(&first, claim(Truth::False, 1), at(20), None)), 20);
        assert_eq!(when(&settle(&first, claim(Truth::True, 2), at(20), None)), 20);
        assert_eq!(when(&settle(&first, claim(Truth::True, 1), at(20), Some(APPLIED))), 20);
        assert!(is_true(&first, APPLIED) && !is_true(&first, AVAILABLE));
    }
}
