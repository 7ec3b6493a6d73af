//! The queue of agents' resync requests, round-robin over consumers.
//!
//! One request per consumer is answered at a time, and consumers take queue, so an agent that sends a thousand requests
//! delays the others by one. A request for the same range replaces the one that waits, since it is newer. The queue is
//! bounded, per consumer and in all.

use std::collections::{BTreeMap, HashMap, VecDeque};

use aro_bundle::IdRange;

/// Requests of one consumer that wait: pages of a list. Even the longest list has fewer.
pub const PER_CONSUMER: usize = 32;
/// Requests that wait in all.
pub const TOTAL: usize = 2048;

/// Requests in the order of their responses.
#[derive(Debug)]
pub struct RequestQueue<T> {
    consumers: HashMap<String, Requests<T>>,
    /// Consumers with a request waiting and no response under way.
    order: VecDeque<String>,
    waiting: usize,
}

#[derive(Debug)]
struct Requests<T> {
    under_way: bool,
    /// By an increasing number.
    waiting: BTreeMap<u64, (IdRange, T)>,
    next: u64,
}

impl<T> Default for RequestQueue<T> {
    fn default() -> Self {
        Self { consumers: HashMap::new(), order: VecDeque::new(), waiting: 0 }
    }
}

impl<T> RequestQueue<T> {
    /// Adds a request. Returns the one it displaces: an older one of the same range, the oldest of a consumer with too many,
    /// or this one if the queue is full.
    #[must_use]
    pub fn add(&mut self, consumer: &str, range: IdRange, request: T) -> Option<T> {
        let requests = self.consumers.entry(consumer.to_owned()).or_insert_with(|| Requests {
            under_way: false,
            waiting: BTreeMap::new(),
            next: 0,
        });
        if let Some((_, waiting)) = requests.waiting.values_mut().find(|(of, _)| *of == range) {
            return Some(std::mem::replace(waiting, request));
        }
        let mut displaced = None;
        if requests.waiting.len() >= PER_CONSUMER {
            displaced = requests.waiting.pop_first().map(|(_, (_, oldest))| oldest);
        } else if self.waiting >= TOTAL {
            self.remove_if_empty(consumer);
            return Some(request);
        } else {
            self.waiting += 1;
        }
        if requests.waiting.is_empty() && !requests.under_way {
            self.order.push_back(consumer.to_owned());
        }
        requests.waiting.insert(requests.next, (range, request));
        requests.next += 1;
        displaced
    }

    /// Takes the next request; its response is under way until [`RequestQueue::finish`].
    pub fn next(&mut self) -> Option<(String, T)> {
        let consumer = self.order.pop_front()?;
        let requests = self.consumers.get_mut(&consumer)?;
        let (_, (_, request)) = requests.waiting.pop_first()?;
        requests.under_way = true;
        self.waiting -= 1;
        Some((consumer, request))
    }

    /// Ends the response under way of a consumer. If it has another request, it goes to the end of the queue.
    pub fn finish(&mut self, consumer: &str) {
        if let Some(requests) = self.consumers.get_mut(consumer) {
            requests.under_way = false;
            if !requests.waiting.is_empty() {
                self.order.push_back(consumer.to_owned());
            }
        }
        self.remove_if_empty(consumer);
    }

    fn remove_if_empty(&mut self, consumer: &str) {
        if self
            .consumers
            .get(consumer)
            .is_some_and(|requests| !requests.under_way && requests.waiting.is_empty())
        {
            self.consumers.remove(consumer);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(number: usize) -> IdRange {
        IdRange { from: Some(number.to_string()), to: None }
    }

    fn drain(queue: &mut RequestQueue<usize>) -> Vec<(String, usize)> {
        let mut finished = Vec::new();
        while let Some((consumer, request)) = queue.next() {
            queue.finish(&consumer);
            finished.push((consumer, request));
        }
        finished
    }

    #[test]
    fn repeated_request_replaces_the_waiting_one() {
        let mut queue = RequestQueue::default();
        assert_eq!(queue.add("a", IdRange::default(), 1), None);
        assert_eq!(queue.add("b", IdRange::default(), 2), None);
        assert_eq!(queue.add("a", IdRange::default(), 3), Some(1));
        assert_eq!(queue.add("a", page(7), 4), None, "another page is another request");
        let expected = [("a", 3), ("b", 2), ("a", 4)].map(|(name, number)| (name.to_owned(), number));
        assert_eq!(drain(&mut queue), expected);
        assert!(queue.consumers.is_empty(), "nothing is kept of finished consumers");
    }

    #[test]
    fn consumer_has_one_response_at_a_time_and_waits_for_all_others() {
        let mut queue = RequestQueue::default();
        for number in 0..10 {
            assert_eq!(queue.add("loud", page(number), number), None);
        }
        assert_eq!(queue.next(), Some(("loud".to_owned(), 0)));
        assert_eq!(queue.next(), None, "a response is under way");
        assert_eq!(queue.add("quiet", page(0), 100), None);
        assert_eq!(queue.next(), Some(("quiet".to_owned(), 100)));
        queue.finish("loud");
        assert_eq!(queue.add("late", page(0), 200), None);
        assert_eq!(queue.next(), Some(("loud".to_owned(), 1)));
        assert_eq!(queue.next(), Some(("late".to_owned(), 200)));
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn waiting_requests_of_one_consumer_are_bounded() {
        let mut queue = RequestQueue::default();
        let dropped: Vec<usize> =
            (0..1000).filter_map(|number| queue.add("loud", page(number), number)).collect();
        assert_eq!(dropped, (0..1000 - PER_CONSUMER).collect::<Vec<_>>(), "the oldest is displaced");
        assert_eq!(drain(&mut queue).len(), PER_CONSUMER);
    }

    proptest! {
        #[test]
        fn no_request_is_lost_and_the_bounds_hold(
            steps in prop::collection::vec((0..5_u8, 0..40_usize, 0..3_u8), 0..400),
        ) {
            let mut queue = RequestQueue::default();
            let (mut asked, mut over, mut under_way) = (0, 0, Vec::<String>::new());
            for (consumer, range, step) in steps {
                match step {
                    0 | 1 => {
                        asked += 1;
                        over += usize::from(queue.add(&consumer.to_string(), page(range), ()).is_some());
                    }
                    _ => {
                        if under_way.len() == 2 {
                            queue.finish(&under_way.remove(0));
                        }
                        if let Some((consumer, ())) = queue.next() {
                            prop_assert!(!under_way.contains(&consumer), "two at once");
                            under_way.push(consumer);
                            over += 1;
                        }
                    }
                }
                let waiting: usize = queue.consumers.values().map(|requests| requests.waiting.len()).sum();
                prop_assert_eq!(queue.waiting, waiting);
                prop_assert_eq!(asked, over + waiting);
                prop_assert!(queue.consumers.values().all(|requests| requests.waiting.len() <= PER_CONSUMER));
            }
        }
    }
}
