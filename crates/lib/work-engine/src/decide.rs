//! What is to be written for one manifest, if anything.

use std::time::Duration;

use aro_crds::work::v1::UpdateStrategyType;
use aro_net::Backoff;
use tokio::time::Instant;

use crate::live::Live;

/// What is known of an object on the cluster.
#[derive(Debug, Clone)]
pub(crate) enum Known<L> {
    /// It was not read yet.
    Unknown,
    /// It is not there.
    Absent,
    /// It is there.
    There(L),
}

/// What is remembered of a manifest that was written, or found as it should be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Of which generation.
    pub(crate) generation: i64,
    /// What the manifest covers looked like then; `None` for those that are only made or read.
    pub(crate) print: Option<u64>,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// It is as it should be.
    Nothing,
    /// It is applied. `repair`: another writer changed what the engine had written.
    Apply { repair: bool },
    /// It is made unless it is there.
    Create,
    /// Only the owner reference of the record is set or removed.
    Own,
    /// It is looked up.
    Read,
}

/// What the decision follows from, beside what is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) strategy: UpdateStrategyType,
    pub(crate) generation: i64,
    pub(crate) written: Option<Written>,
    /// Whether a report before a restart said that this generation was applied.
    pub(crate) trusted: bool,
    /// Whether the object's references are as they should be.
    pub(crate) owned_right: bool,
}

/// Decides. `print` and `contains` look at the object that is there.
pub(crate) fn decide(
    facts: Facts,
    known: &Known<&Live>,
    print: impl FnOnce() -> u64,
    contains: impl FnOnce() -> bool,
) -> Act {
    let before = facts.written.is_some_and(|written| written.generation == facts.generation);
    match (facts.strategy, known) {
        (UpdateStrategyType::ReadOnly, Known::Unknown) => Act::Read,
        (UpdateStrategyType::ReadOnly, _) => Act::Nothing,
        (UpdateStrategyType::CreateOnly, Known::There(_)) if facts.owned_right => Act::Nothing,
        (UpdateStrategyType::CreateOnly, Known::There(live)) if live.is_deleting() => Act::Nothing,
        (UpdateStrategyType::CreateOnly, Known::There(_)) => Act::Own,
        (UpdateStrategyType::CreateOnly, _) => Act::Create,
        (_, Known::Unknown) => Act::Apply { repair: false },
        (_, Known::Absent) => Act::Apply { repair: before },
        // It goes; when it is gone, it is made anew.
        (_, Known::There(live)) if live.is_deleting() => Act::Nothing,
        (_, Known::There(_)) if !facts.owned_right => Act::Apply { repair: before },
        (_, Known::There(_)) => match facts.written {
            Some(Written { print: Some(was), .. }) if before => {
                if print() == was {
                    Act::Nothing
                } else {
                    Act::Apply { repair: true }
                }
            }
            _ if facts.trusted && contains() => Act::Nothing,
            _ => Act::Apply { repair: false },
        },
    }
}

/// Repairs of one object: the first few at once, then ever slower, so that two who want different things of one object do
/// not fight at full speed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Repairs {
    count: u32,
    last: Option<Instant>,
}

const AT_ONCE: u32 = 3;
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_mins(1));
const FORGIVEN: Duration = Duration::from_mins(3);

impl Repairs {
    /// How long to wait before the next repair. `None`: not at all.
    pub(crate) fn pause(&self, now: Instant) -> Option<Duration> {
        let last = self.last?;
        let over = self.count.checked_sub(AT_ONCE)?;
        let pause = BACKOFF.base_delay(over.saturating_add(1));
        pause.checked_sub(now.saturating_duration_since(last)).filter(|left| !left.is_zero())
    }

    /// One more.
    pub(crate) fn repaired(&mut self, now: Instant) {
        let quiet = self.last.is_none_or(|last| now.saturating_duration_since(last) > FORGIVEN);
        self.count = if quiet { 1 } else { self.count.saturating_add(1) };
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_not_as_it_should_be_is_written() {
        use UpdateStrategyType::{CreateOnly, ReadOnly, ServerSideApply, Update};
        let there = Live::new(json!({"metadata": {"uid": "u"}}));
        let going = Live::new(json!({"metadata": {"uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"}}));
        let base =
            Facts { strategy: Update, generation: 2, written: None, trusted: false, owned_right: true };
        let written = |generation, print| Some(Written { generation, print });
        let (unknown, absent, there, going) =
            (Known::Unknown, Known::Absent, Known::There(&there), Known::There(&going));
        let apply = |repair| Act::Apply { repair };
        for (name, facts, known, contains, expected) in [
            ("not read yet", base, &unknown, true, apply(false)),
            ("it is not there", base, &absent, true, apply(false)),
            ("it was deleted", Facts { written: written(2, Some(7)), ..base }, &absent, true, apply(true)),
            ("it is there, of whatever making", base, &there, true, apply(false)),
            ("after a restart", Facts { trusted: true, ..base }, &there, true, Act::Nothing),
            ("after a restart, changed", Facts { trusted: true, ..base }, &there, false, apply(false)),
            ("unchanged", Facts { written: written(2, Some(7)), ..base }, &there, false, Act::Nothing),
            ("changed", Facts { written: written(2, Some(8)), ..base }, &there, true, apply(true)),
            ("a new generation", Facts { written: written(1, Some(7)), ..base }, &there, true, apply(false)),
            ("going", Facts { written: written(2, Some(8)), ..base }, &going, true, Act::Nothing),
            (
                "not owned",
                Facts { written: written(2, Some(7)), owned_right: false, ..base },
                &there,
                true,
                apply(true),
            ),
            ("applied", Facts { strategy: ServerSideApply, ..base }, &there, true, apply(false)),
            ("made once", Facts { strategy: CreateOnly, ..base }, &unknown, true, Act::Create),
            ("made once, deleted", Facts { strategy: CreateOnly, ..base }, &absent, true, Act::Create),
            ("made once, there", Facts { strategy: CreateOnly, ..base }, &there, false, Act::Nothing),
            (
                "made by others",
                Facts { strategy: CreateOnly, owned_right: false, ..base },
                &there,
                false,
                Act::Own,
            ),
            ("read", Facts { strategy: ReadOnly, owned_right: false, ..base }, &unknown, false, Act::Read),
            (
                "read, there",
                Facts { strategy: ReadOnly, owned_right: false, ..base },
                &there,
                false,
                Act::Nothing,
            ),
            ("read, absent", Facts { strategy: ReadOnly, ..base }, &absent, false, Act::Nothing),
        ] {
            assert_eq!(decide(facts, known, || 7, || contains), expected, "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_fight_get_slower() {
        let mut repairs = Repairs::default();
        for _ in 0..AT_ONCE {
            assert_eq!(repairs.pause(Instant::now()), None);
            repairs.repaired(Instant::now());
        }
        assert_eq!(repairs.pause(Instant::now()), Some(BACKOFF.base_delay(1)));
        repairs.repaired(Instant::now());
        assert_eq!(repairs.pause(Instant::now()), Some(BACKOFF.base_delay(2)));
        for _ in 0..40 {
            repairs.repaired(Instant::now());
        }
        assert_eq!(repairs.pause(Instant::now()), Some(BACKOFF.max()));
        tokio::time::advance(FORGIVEN * 2).await;
        assert_eq!(repairs.pause(Instant::now()), None);
        repairs.repaired(Instant::now());
        assert_eq!(repairs.pause(Instant::now()), None, "that was long ago");
    }
}
