//! When this replica published which version, until its first status arrives.

use std::collections::HashMap;
use std::sync::Arc;

use aro_base::Timestamp;
use parking_lot::Mutex;

/// Times kept at most. Statuses that other replicas receive never remove theirs, so all are dropped when this is reached.
const MAX_TIMES: usize = 100_000;

/// Publish times by bundle.
#[derive(Debug, Default)]
pub struct PublishTimes(Mutex<HashMap<Arc<str>, Published>>);

#[derive(Debug, Clone, Copy)]
struct Published {
    version: i32,
    at: Timestamp,
}

impl PublishTimes {
    /// Records the first time a version was published.
    pub fn record(&self, id: &Arc<str>, version: i32, at: Timestamp) {
        let mut times = self.0.lock();
        if times.len() >= MAX_TIMES {
            times.clear();
        }
        let known = times.entry(id.clone()).or_insert(Published { version, at });
        if known.version != version {
            *known = Published { version, at };
        }
    }

    pub fn find(&self, id: &str, version: i32) -> Option<Timestamp> {
        self.0.lock().get(id).filter(|known| known.version == version).map(|known| known.at)
    }

    /// Removes and returns the time of a bundle, whatever its version.
    pub fn remove(&self, id: &str) -> Option<Timestamp> {
        self.0.lock().remove(id).map(|known| known.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_publish_of_a_version_counts_and_a_new_version_replaces_it() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let times = PublishTimes::default();
        let id: Arc<str> = "a".into();
        times.record(&id, 1, at(1));
        times.record(&id, 1, at(2));
        assert_eq!(times.find("a", 1), Some(at(1)));
        times.record(&id, 2, at(3));
        assert_eq!((times.find("a", 1), times.find("a", 2)), (None, Some(at(3))));
        assert_eq!((times.remove("a"), times.remove("a")), (Some(at(3)), None));
    }
}
