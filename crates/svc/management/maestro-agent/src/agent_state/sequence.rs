//! The sequence ids that order an agent's statuses.

use aro_base::Timestamp;
use aro_bundle::{SequenceId, SequenceSource};

/// Makes sequence ids above all that this agent has used and all that the server is known to have.
#[derive(Debug, Default)]
pub struct Sequence {
    source: SequenceSource,
    highest: Option<SequenceId>,
}

impl Sequence {
    /// Continues after an id that was used before.
    pub fn after(last: Option<SequenceId>) -> Self {
        Self { source: SequenceSource::after(last), highest: last }
    }

    pub fn next(&mut self, now: Timestamp) -> SequenceId {
        let next = self.source.next(now);
        self.highest = Some(next);
        next
    }

    /// Raises the sequence above an id that the server has. Without this the server would discard every status of an
    /// agent that lost its store and whose clock is behind.
    pub fn raise_above(&mut self, known: SequenceId) {
        if self.highest.is_none_or(|highest| known > highest) {
            *self = Self::after(Some(known));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_above_all_used_or_known_ones_whatever_the_clock_shows() {
        let early: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let late: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let ahead = SequenceSource::default().next(late);
        let mut sequence = Sequence::default();
        let first = sequence.next(early);
        assert!(first < ahead);
        sequence.raise_above(ahead);
        let second = sequence.next(early);
        assert!(second > ahead);
        sequence.raise_above(first);
        assert!(sequence.next(early) > second, "a lower id changes nothing");
    }
}
