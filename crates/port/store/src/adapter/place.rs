//! Positions in the feed, for adapters whose feed is ordered by one number per container.

use crate::{Container, Cursor, StoreError};

/// Where a consumer is: everything up to `seq` was delivered.
///
/// A consumer that started at the beginning has never seen what was deleted before it started, so tombstones up to
/// `until` (the feed's end at that moment) do not concern it while it is still on its way there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The number of the last change delivered.
    pub seq: i64,
    /// The feed's end when a consumer started at the beginning; 0 once it got there.
    pub until: i64,
}

impl Place {
    /// Whether a purged tombstone could have been news to this consumer, or the place is not of this feed.
    pub fn expired(self, purged: i64, latest: i64) -> bool {
        purged > self.seq.max(self.until) || self.seq > latest
    }

    /// Writes it as text. `life` names the database, so that a cursor of another one is known as such.
    pub fn write(self, life: &str, container: Container) -> Cursor {
        let until = if self.until > self.seq { self.until } else { 0 };
        Cursor::new(format!("{life}.{}.{until}.{container}", self.seq))
    }

    /// A cursor of another container or of another database cannot be compared with ours.
    pub fn read(cursor: &Cursor, life: &str, container: Container) -> Result<Self, StoreError> {
        let mut parts = cursor.as_str().splitn(4, '.');
        let (Some(of), Some(seq), Some(until), Some(name)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(StoreError::CursorExpired);
        };
        match (seq.parse(), until.parse()) {
            (Ok(seq), Ok(until)) if of == life && name == container.name() => Ok(Self { seq, until }),
            _ => Err(StoreError::CursorExpired),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTAINER: Container = Container::new("a.b");

    #[test]
    fn a_cursor_survives_the_round_trip_and_a_foreign_one_does_not() {
        let place = Place { seq: 7, until: 9 };
        let cursor = place.write("life", CONTAINER);
        assert_eq!(Place::read(&cursor, "life", CONTAINER).unwrap(), place);
        assert!(Place::read(&cursor, "other", CONTAINER).is_err());
        assert!(Place::read(&cursor, "life", Container::new("a")).is_err());
        assert!(Place::read(&Cursor::new("junk"), "life", CONTAINER).is_err());
    }

    #[test]
    fn only_a_purge_beyond_what_was_seen_expires_a_cursor() {
        assert!(!Place { seq: 5, until: 0 }.expired(5, 9));
        assert!(Place { seq: 4, until: 0 }.expired(5, 9));
        assert!(!Place { seq: 1, until: 5 }.expired(5, 9), "deleted before it began");
        assert!(Place { seq: 1, until: 5 }.expired(6, 9));
        assert!(Place { seq: 10, until: 0 }.expired(0, 9), "from a future that is not ours");
    }
}
