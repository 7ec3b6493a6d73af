//! What waits for a subscriber: the newest event of each bundle, in the order of their first entry.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use aro_bundle::Event;

/// Limits of what waits.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bundles.
    pub bundles: usize,
    /// Bytes of their events.
    pub bytes: usize,
}

/// Events that wait for a subscriber. A newer event of a bundle replaces the older.
#[derive(Debug, Default)]
pub struct Pending {
    order: VecDeque<Arc<str>>,
    newest: HashMap<Arc<str>, Arc<Event>>,
    bytes: usize,
}

impl Pending {
    /// Adds an event. Returns false, and adds nothing, if a limit is exceeded.
    pub fn add(&mut self, bundle: &str, event: Arc<Event>, limits: Limits) -> bool {
        let older = self.newest.get(bundle).map(|older| older.size());
        let bytes = self.bytes - older.unwrap_or_default() + event.size();
        if bytes > limits.bytes || (older.is_none() && self.newest.len() >= limits.bundles) {
            return false;
        }
        self.bytes = bytes;
        if let Some(waiting) = self.newest.get_mut(bundle) {
            *waiting = event;
        } else {
            let bundle: Arc<str> = bundle.into();
            self.order.push_back(bundle.clone());
            self.newest.insert(bundle, event);
        }
        true
    }

    /// Takes the next event.
    pub fn take(&mut self) -> Option<Arc<Event>> {
        let event = self.newest.remove(&self.order.pop_front()?)?;
        self.bytes -= event.size();
        Some(event)
    }

    /// Removes all events.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use aro_bundle::{Action, EventType};
    use proptest::prelude::*;

    use super::*;

    fn event(id: &str) -> Arc<Event> {
        Arc::new(Event::new(id, "agent", EventType::status(Action::Update), "c1"))
    }

    fn of_size(bytes: usize) -> Arc<Event> {
        let mut event = Event::new("e", "agent", EventType::status(Action::Update), "c1");
        event.data = vec![b'x'; bytes].into();
        Arc::new(event)
    }

    #[test]
    fn slow_subscriber_gets_only_the_newest_event_of_each_bundle() {
        let limits = Limits { bundles: 2, bytes: usize::MAX };
        let mut pending = Pending::default();
        for turn in 0..1000 {
            assert!(pending.add("a", event(&format!("a{turn}")), limits));
            assert!(pending.add("b", event(&format!("b{turn}")), limits));
        }
        assert!(!pending.add("c", event("c"), limits), "a third bundle exceeds the limit");
        let taken: Vec<String> =
            std::iter::from_fn(|| pending.take()).map(|event| event.id.clone()).collect();
        assert_eq!(taken, ["a999", "b999"]);
        assert!(pending.add("c", event("c"), limits));
    }

    #[test]
    fn few_bundles_with_large_statuses_exceed_the_byte_limit() {
        let limits = Limits { bundles: 1000, bytes: 1_000_000 };
        let mut pending = Pending::default();
        assert!(pending.add("a", of_size(400_000), limits) && pending.add("b", of_size(400_000), limits));
        assert!(!pending.add("c", of_size(400_000), limits));
        assert!(!pending.add("a", of_size(900_000), limits), "a newer one may be larger");
        assert!(pending.add("a", of_size(1), limits), "or smaller");
        assert!(pending.add("c", of_size(400_000), limits));
    }

    proptest! {
        #[test]
        fn what_waits_is_counted_exactly_and_within_the_limits(
            steps in prop::collection::vec((0..6_u8, 0..3000_usize, any::<bool>()), 0..200),
        ) {
            let limits = Limits { bundles: 4, bytes: 8000 };
            let mut pending = Pending::default();
            for (bundle, size, take) in steps {
                if take {
                    pending.take();
                } else {
                    pending.add(&bundle.to_string(), of_size(size), limits);
                }
                let bytes: usize = pending.newest.values().map(|event| event.size()).sum();
                prop_assert_eq!(pending.bytes, bytes);
                prop_assert!(bytes <= limits.bytes && pending.newest.len() <= limits.bundles);
                prop_assert_eq!(pending.order.len(), pending.newest.len());
            }
        }
    }
}
