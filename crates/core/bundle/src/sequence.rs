//! Sequence ids, which order the statuses of one agent.
//!
//! A snowflake: milliseconds since an epoch, a node (always 1) and a step, in one number written in decimal. Receivers
//! accept a status only if its id is greater than the last one's. So an agent's ids must rise across restarts and when its
//! clock is set back: [`SequenceSource`] never returns an id below its last one.

use std::fmt;

use aro_base::Timestamp;

/// The Unix milliseconds at which ids begin.
const EPOCH: i64 = 1_288_834_974_657;
const TIME_SHIFT: u32 = 22;
const NODE_SHIFT: u32 = 12;
const STEPS: u64 = 1 << NODE_SHIFT;
/// The node part of all ids: receivers compare ids of one node only.
const NODE: u64 = 1;

/// One id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SequenceId(u64);

impl SequenceId {
    /// Parses an id.
    pub fn parse(text: &str) -> Option<Self> {
        let number: u64 = text.parse().ok()?;
        (i64::try_from(number).is_ok()).then_some(Self(number))
    }

    /// When it was created, by its creator's clock.
    pub fn time(self) -> Option<Timestamp> {
        let milliseconds = i64::try_from(self.0 >> TIME_SHIFT).ok()?;
        Timestamp::from_millisecond(milliseconds + EPOCH).ok()
    }

    /// Its node.
    pub fn node(self) -> u64 {
        (self.0 >> NODE_SHIFT) & 0x3ff
    }

    /// Its position within the millisecond.
    pub fn step(self) -> u64 {
        self.0 & (STEPS - 1)
    }

    /// Whether a status with id `new` replaces one with id `known`. An id that cannot be parsed is older than any.
    pub fn supersedes(new: &str, known: Option<&str>) -> bool {
        let Some(new) = Self::parse(new) else { return false };
        known.and_then(Self::parse).is_none_or(|known| new > known)
    }
}

impl fmt::Display for SequenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Creates ids.
#[derive(Debug, Clone, Copy, Default)]
pub struct SequenceSource {
    last: u64,
}

impl SequenceSource {
    /// Continues after an id that was used before.
    pub fn after(last: Option<SequenceId>) -> Self {
        Self { last: last.map_or(0, |last| last.0) }
    }

    /// The next id: by the clock, but always above the last one.
    pub fn next(&mut self, now: Timestamp) -> SequenceId {
        let time = u64::try_from(now.as_millisecond() - EPOCH).unwrap_or_default();
        let by_clock = (time << TIME_SHIFT) | (NODE << NODE_SHIFT);
        let last = SequenceId(self.last);
        let by_last = if last.step() + 1 < STEPS {
            self.last + 1
        } else {
            // All steps of the millisecond are used: take the next one.
            (((self.last >> TIME_SHIFT) + 1) << TIME_SHIFT) | (NODE << NODE_SHIFT)
        };
        self.last = by_clock.max(if self.last == 0 { 0 } else { by_last });
        SequenceId(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_of_the_original_is_decoded() {
        let id = SequenceId::parse("2000808179721572352").unwrap();
        let time = Timestamp::from_millisecond(1_765_864_817_921).unwrap();
        assert_eq!((id.time(), id.node(), id.step()), (Some(time), 1, 0));
    }

    #[test]
    fn ids_rise_within_a_millisecond_over_restarts_and_when_the_clock_is_set_back() {
        let noon: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let earlier: Timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
        let mut source = SequenceSource::default();
        let mut last = source.next(noon);
        assert_eq!(last.time(), Some(noon));
        for turn in 0..20_000 {
            let now = if turn % 3 == 0 { earlier } else { noon };
            let next = source.next(now);
            assert!(next > last && next.node() == 1, "{turn}: {next} after {last}");
            last = next;
        }
        let mut restarted = SequenceSource::after(Some(last));
        assert!(restarted.next(earlier) > last);
    }

    #[test]
    fn only_a_greater_valid_id_supersedes() {
        assert!(SequenceId::supersedes("5", None));
        assert!(SequenceId::supersedes("5", Some("")));
        assert!(SequenceId::supersedes("5", Some("4")));
        for (new, known) in [("5", "5"), ("4", "5"), ("x", "5"), ("-1", "5"), ("", "5")] {
            assert!(!SequenceId::supersedes(new, Some(known)), "{new} after {known}");
        }
    }
}
