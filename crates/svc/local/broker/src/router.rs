//! The subscriptions of all clients.
//!
//! Agents subscribe to one exact topic each, servers to a few patterns: exact filters are looked up, patterns and shares
//! are tried one after another.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::outbox::Outbox;
use crate::topics::Filter;

/// A subscriber of a filter.
#[derive(Debug, Clone)]
pub struct Subscriber {
    pub outbox: Arc<Outbox>,
    pub qos: u8,
    /// It does not get its own messages.
    pub no_local: bool,
}

/// The members of a share.
#[derive(Debug)]
struct Share {
    id: u64,
    filter: Filter,
    members: Vec<Subscriber>,
    next: AtomicUsize,
}

/// All subscriptions.
#[derive(Debug, Default)]
pub struct Router {
    exact: HashMap<String, Vec<Subscriber>>,
    patterns: Vec<(Filter, Vec<Subscriber>)>,
    shares: Vec<Share>,
    last_share: u64,
}

impl Router {
    /// Adds a subscription, or replaces the one of the same client and filter.
    pub fn subscribe(&mut self, filter: &Filter, subscriber: Subscriber) {
        self.unsubscribe(filter, subscriber.outbox.id);
        if filter.share().is_some() {
            if let Some(share) = self.shares.iter_mut().find(|share| share.filter == *filter) {
                share.members.push(subscriber);
            } else {
                self.last_share += 1;
                let (id, filter) = (self.last_share, filter.clone());
                self.shares.push(Share { id, filter, members: vec![subscriber], next: AtomicUsize::new(0) });
            }
        } else if filter.is_pattern() {
            match self.patterns.iter_mut().find(|(known, _)| known == filter) {
                Some((_, subscribers)) => subscribers.push(subscriber),
                None => self.patterns.push((filter.clone(), vec![subscriber])),
            }
        } else {
            self.exact.entry(filter.path().to_owned()).or_default().push(subscriber);
        }
    }

    /// Removes a subscription; returns whether there was one.
    pub fn unsubscribe(&mut self, filter: &Filter, id: u64) -> bool {
        fn remove(from: &mut Vec<Subscriber>, id: u64) -> bool {
            let before = from.len();
            from.retain(|subscriber| subscriber.outbox.id != id);
            from.len() < before
        }
        if filter.share().is_some() {
            let found = self.shares.iter_mut().find(|share| share.filter == *filter);
            let removed = found.is_some_and(|share| remove(&mut share.members, id));
            self.shares.retain(|share| !share.members.is_empty());
            removed
        } else if filter.is_pattern() {
            let found = self.patterns.iter_mut().find(|(known, _)| known == filter);
            let removed = found.is_some_and(|(_, subscribers)| remove(subscribers, id));
            self.patterns.retain(|(_, subscribers)| !subscribers.is_empty());
            removed
        } else {
            let Some(subscribers) = self.exact.get_mut(filter.path()) else { return false };
            let removed = remove(subscribers, id);
            if subscribers.is_empty() {
                self.exact.remove(filter.path());
            }
            removed
        }
    }

    /// Calls `to` for every subscriber of a topic, with the share it was routed by. In each share one member gets the message,
    /// in turn.
    pub fn route(&self, publisher: u64, topic: &str, mut to: impl FnMut(&Subscriber, Option<u64>)) {
        let exact = self.exact.get(topic).into_iter().flatten();
        let patterns = self.patterns.iter().filter(|(filter, _)| filter.matches(topic));
        for subscriber in exact.chain(patterns.flat_map(|(_, subscribers)| subscribers)) {
            if !(subscriber.no_local && subscriber.outbox.id == publisher) {
                to(subscriber, None);
            }
        }
        for share in self.shares.iter().filter(|share| share.filter.matches(topic)) {
            if let Some(member) = share.turn() {
                to(member, Some(share.id));
            }
        }
    }

    /// Another member of a share.
    pub fn member_of(&self, share: u64) -> Option<&Subscriber> {
        self.shares.iter().find(|known| known.id == share)?.turn()
    }
}

impl Share {
    /// The next member that accepts messages.
    fn turn(&self) -> Option<&Subscriber> {
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.members.len();
        (0..count)
            .filter_map(|step| self.members.get((start.wrapping_add(step)) % count))
            .find(|member| member.outbox.is_open())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::Bounds;

    fn client(id: u64) -> Subscriber {
        let bounds = Bounds { messages: 10, bytes: 1000, window: 10, largest: 1000 };
        Subscriber { outbox: Arc::new(Outbox::new(id, bounds)), qos: 1, no_local: false }
    }

    fn filter(text: &str) -> Filter {
        Filter::parse(text).unwrap()
    }

    fn receivers(router: &Router, topic: &str) -> Vec<u64> {
        let mut found = Vec::new();
        router.route(0, topic, |subscriber, _| found.push(subscriber.outbox.id));
        found
    }

    #[test]
    fn exact_filters_and_patterns_both_match() {
        let mut router = Router::default();
        router.subscribe(&filter("a/b"), client(1));
        router.subscribe(&filter("a/+"), client(2));
        router.subscribe(&filter("a/c"), client(3));
        assert_eq!(receivers(&router, "a/b"), [1, 2]);
        assert!(router.unsubscribe(&filter("a/+"), 2));
        assert!(!router.unsubscribe(&filter("a/+"), 2));
        assert_eq!(receivers(&router, "a/b"), [1]);
        router.unsubscribe(&filter("a/b"), 1);
        assert!(router.exact.len() == 1 && router.patterns.is_empty(), "nothing is left behind");
    }

    #[test]
    fn repeated_subscription_replaces_the_first() {
        let mut router = Router::default();
        let one = client(1);
        router.subscribe(&filter("a/b"), one.clone());
        router.subscribe(&filter("a/b"), one);
        assert_eq!(receivers(&router, "a/b"), [1]);
    }

    #[test]
    fn share_delivers_to_one_live_member_in_turn() {
        let mut router = Router::default();
        let (one, two) = (client(1), client(2));
        router.subscribe(&filter("$share/g/a/+"), one.clone());
        router.subscribe(&filter("$share/g/a/+"), two);
        let turns: Vec<u64> = (0..4).flat_map(|_| receivers(&router, "a/b")).collect();
        assert_eq!(turns, [1, 2, 1, 2]);
        one.outbox.end(0);
        let turns: Vec<u64> = (0..3).flat_map(|_| receivers(&router, "a/b")).collect();
        assert_eq!(turns, [2, 2, 2]);
    }

    #[test]
    fn no_local_subscriber_does_not_get_its_own_messages() {
        let mut router = Router::default();
        router.subscribe(&filter("a"), Subscriber { no_local: true, ..client(0) });
        assert!(receivers(&router, "a").is_empty());
    }
}
