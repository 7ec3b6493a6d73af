//! What a subscriber still has to be sent: the newest of each bundle, in the order of their first mention.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use aro_bundle::Event;

/// How much may wait.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bundles.
    pub bundles: usize,
    /// Bytes of their events.
    pub bytes: usize,
}

/// Events that wait for a subscriber. A newer one of the same bundle takes the place of the older.
#[derive(Debug, Default)]
pub struct Pending {
    order: VecDeque<Arc<str>>,
    newest: HashMap<Arc<str>, Arc<Event>>,
    bytes: usize,
}

impl Pending {
    /// Adds an event. `false`: it is too much, and nothing was added.
    pub fn add(&mut self, bundle: &str, event: Arc<Event>, most: Bounds) -> bool {
        let older = self.newest.get(bundle).map(|older| older.size());
        let bytes = self.bytes - older.unwrap_or_default() + event.size();
        if bytes > most.bytes || (older.is_none() && self.newest.len() >= most.bundles) {
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

    /// Takes the next one.
    pub fn take(&mut self) -> Option<Arc<Event>> {
        let event = self.newest.remove(&self.order.pop_front()?)?;
        self.bytes -= event.size();
        Some(event)
    }

    /// Lets go of everything.
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
    fn a_slow_subscriber_is_sent_the_newest_of_each_bundle_and_never_all_of_them() {
        let two = Bounds { bundles: 2, bytes: usize::MAX };
        let mut pending = Pending::default();
        for turn in 0..1000 {
            assert!(pending.add("a", event(&format!("a{turn}")), two));
            assert!(pending.add("b", event(&format!("b{turn}")), two));
        }
        assert!(!pending.add("c", event("c"), two), "a third bundle is one too many");
        let taken: Vec<String> =
            std::iter::from_fn(|| pending.take()).map(|event| event.id.clone()).collect();
        assert_eq!(taken, ["a999", "b999"]);
        assert!(pending.add("c", event("c"), two));
    }

    #[test]
    fn few_bundles_with_large_statuses_are_too_much_as_well() {
        let most = Bounds { bundles: 1000, bytes: 1_000_000 };
        let mut pending = Pending::default();
        assert!(pending.add("a", of_size(400_000), most) && pending.add("b", of_size(400_000), most));
        assert!(!pending.add("c", of_size(400_000), most));
        assert!(!pending.add("a", of_size(900_000), most), "a newer one may be larger");
        assert!(pending.add("a", of_size(1), most), "or smaller");
        assert!(pending.add("c", of_size(400_000), most));
    }

    proptest! {
        #[test]
        fn what_waits_is_counted_exactly_and_never_above_the_bounds(
            steps in prop::collection::vec((0..6_u8, 0..3000_usize, any::<bool>()), 0..200),
        ) {
            let most = Bounds { bundles: 4, bytes: 8000 };
            let mut pending = Pending::default();
            for (bundle, size, take) in steps {
                if take {
                    pending.take();
                } else {
                    pending.add(&bundle.to_string(), of_size(size), most);
                }
                let bytes: usize = pending.newest.values().map(|event| event.size()).sum();
                prop_assert_eq!(pending.bytes, bytes);
                prop_assert!(bytes <= most.bytes && pending.newest.len() <= most.bundles);
                prop_assert_eq!(pending.order.len(), pending.newest.len());
            }
        }
    }
}
