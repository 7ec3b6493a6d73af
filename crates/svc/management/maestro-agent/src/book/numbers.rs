//! The numbers that order what an agent says.

use aro_base::Timestamp;
use aro_bundle::{SequenceId, SequenceSource};

/// Makes sequence ids that are above all that were said before, and all that anybody has heard.
#[derive(Debug, Default)]
pub struct Numbers {
    source: SequenceSource,
    highest: Option<SequenceId>,
}

impl Numbers {
    /// Goes on after an id that was used before.
    pub fn after(last: Option<SequenceId>) -> Self {
        Self { source: SequenceSource::after(last), highest: last }
    }

    /// The next one.
    pub fn next(&mut self, now: Timestamp) -> SequenceId {
        let next = self.source.next(now);
        self.highest = Some(next);
        next
    }

    /// Somebody has heard this one. An agent that lost its store and whose clock is behind would not be heard otherwise.
    pub fn heard(&mut self, known: SequenceId) {
        if self.highest.is_none_or(|highest| known > highest) {
            *self = Self::after(Some(known));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_above_all_that_was_said_or_heard_whatever_the_clock_says() {
        let early: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let late: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let ahead = SequenceSource::default().next(late);
        let mut numbers = Numbers::default();
        let first = numbers.next(early);
        assert!(first < ahead);
        numbers.heard(ahead);
        let second = numbers.next(early);
        assert!(second > ahead);
        numbers.heard(first);
        assert!(numbers.next(early) > second, "what is older changes nothing");
    }
}
