//! The latest stretches of the feed, in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use aro_store::Cursor;

/// The most stretches, and the most bytes of their events.
const MAX_STRETCHES: usize = 1024;
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// A stretch of the feed: what follows the stretch before it.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    pub(super) end: Cursor,
    /// Each as JSON. Not every change is an event.
    pub(super) events: Vec<Arc<str>>,
}

impl Stretch {
    fn bytes(&self) -> usize {
        self.events.iter().map(|event| event.len()).sum()
    }
}

/// What is known after a cursor.
#[derive(Debug)]
pub(super) enum After {
    /// These events, and where to continue.
    Events(Vec<Arc<str>>, Cursor),
    /// The cursor is none of those in memory.
    Unknown,
}

/// The latest stretches. Each begins where the one before it ends; the first at `start`.
#[derive(Debug, Default)]
pub(super) struct Ring {
    start: Option<Cursor>,
    stretches: VecDeque<Stretch>,
    bytes: usize,
}

impl Ring {
    /// Forgets everything and continues at a cursor.
    pub(super) fn restart(&mut self, start: Cursor) {
        self.start = Some(start);
        self.stretches.clear();
        self.bytes = 0;
    }

    pub(super) fn push(&mut self, stretch: Stretch) {
        self.bytes += stretch.bytes();
        self.stretches.push_back(stretch);
        while self.stretches.len() > MAX_STRETCHES || (self.bytes > MAX_BYTES && self.stretches.len() > 1) {
            let Some(oldest) = self.stretches.pop_front() else { break };
            self.bytes -= oldest.bytes();
            self.start = Some(oldest.end);
        }
    }

    /// At least one stretch with events, and more until there are `size` events.
    pub(super) fn after(&self, cursor: &Cursor, size: usize) -> After {
        let first = if self.start.as_ref() == Some(cursor) {
            0
        } else {
            // A client that follows is near the end.
            match self.stretches.iter().rposition(|stretch| stretch.end == *cursor) {
                Some(before) => before + 1,
                None => return After::Unknown,
            }
        };
        let mut events = Vec::new();
        let mut end = cursor;
        for stretch in self.stretches.iter().skip(first) {
            if events.len() >= size {
                break;
            }
            events.extend(stretch.events.iter().cloned());
            end = &stretch.end;
        }
        After::Events(events, end.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(end: &str, events: &[&str]) -> Stretch {
        Stretch { end: Cursor::new(end), events: events.iter().map(|event| Arc::from(*event)).collect() }
    }

    fn after(ring: &Ring, cursor: &str, size: usize) -> Option<(String, String)> {
        match ring.after(&Cursor::new(cursor), size) {
            After::Events(events, end) => Some((events.concat(), end.as_str().to_owned())),
            After::Unknown => None,
        }
    }

    #[test]
    fn whole_stretches_follow_a_known_cursor() {
        let mut ring = Ring::default();
        assert_eq!(after(&ring, "0", 10), None);
        ring.restart(Cursor::new("0"));
        assert_eq!(after(&ring, "0", 10), Some((String::new(), "0".to_owned())));
        for one in [stretch("1", &["a", "b"]), stretch("2", &[]), stretch("3", &["c"])] {
            ring.push(one);
        }
        assert_eq!(after(&ring, "0", 10), Some(("abc".to_owned(), "3".to_owned())));
        assert_eq!(after(&ring, "0", 1), Some(("ab".to_owned(), "1".to_owned())));
        assert_eq!(after(&ring, "1", 1), Some(("c".to_owned(), "3".to_owned())));
        assert_eq!(after(&ring, "3", 1), Some((String::new(), "3".to_owned())));
        assert_eq!(after(&ring, "other", 1), None);
    }

    #[test]
    fn memory_is_bounded_and_old_cursors_become_unknown() {
        let mut ring = Ring::default();
        ring.restart(Cursor::new("0"));
        for n in 1..=MAX_STRETCHES + 2 {
            ring.push(stretch(&n.to_string(), &["x"]));
        }
        assert_eq!((after(&ring, "0", 1), after(&ring, "1", 1)), (None, None));
        assert!(after(&ring, "2", 1).is_some());
        let large = "y".repeat(MAX_BYTES);
        ring.push(stretch("large", &[&large]));
        ring.push(stretch("last", &["z"]));
        assert_eq!(after(&ring, "large", 1).unwrap().0, "z");
        assert!(ring.bytes <= MAX_BYTES);
    }
}
