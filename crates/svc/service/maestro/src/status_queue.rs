//! The queue of agents' statuses, round-robin over consumers.
//!
//! Each consumer has a queue of its own, bounded in messages and bytes, and a share of the workers: an agent that floods the
//! server delays its own statuses. What does not fit is dropped; once the consumer's queue is empty, its statuses are requested
//! again. Statuses of one bundle are taken in order, and the next one only when the one before is stored.

use std::collections::{HashMap, HashSet, VecDeque};

/// What the queue holds at most.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    /// Statuses of one consumer that wait.
    pub messages: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Bytes of all statuses that wait or are being stored.
    pub total_bytes: usize,
    /// Statuses of one consumer that are stored concurrently.
    pub concurrency: usize,
}

/// Statuses in the order in which they are stored.
#[derive(Debug)]
pub struct StatusQueue<T> {
    limits: QueueLimits,
    consumers: HashMap<String, Consumer<T>>,
    /// Consumers that wait for their turn.
    order: VecDeque<String>,
    bytes: usize,
}

#[derive(Debug)]
struct Consumer<T> {
    waiting: VecDeque<Waiting<T>>,
    bytes: usize,
    /// Bundles whose status is being stored.
    under_way: HashSet<String>,
    /// It is in `order`.
    queued: bool,
    /// Something was dropped since the queue was last empty.
    dropped: bool,
}

#[derive(Debug)]
struct Waiting<T> {
    bundle: String,
    bytes: usize,
    status: T,
}

/// A status to be stored. It is under way until [`StatusQueue::finish`].
#[derive(Debug, PartialEq, Eq)]
pub struct Taken<T> {
    pub consumer: String,
    pub bundle: String,
    pub bytes: usize,
    pub status: T,
}

impl<T> StatusQueue<T> {
    pub fn new(limits: QueueLimits) -> Self {
        Self { limits, consumers: HashMap::new(), order: VecDeque::new(), bytes: 0 }
    }

    /// Adds a status of this many bytes. Returns it if there is no room for it.
    ///
    /// # Errors
    ///
    /// The status, when a limit is reached.
    pub fn add(&mut self, consumer: &str, bundle: &str, bytes: usize, status: T) -> Result<(), T> {
        let limits = self.limits;
        let total = self.bytes.saturating_add(bytes);
        let queue = self.consumers.entry(consumer.to_owned()).or_insert_with(Consumer::new);
        let fits = queue.waiting.len() < limits.messages
            && queue.bytes.saturating_add(bytes) <= limits.bytes
            && total <= limits.total_bytes;
        // One status always fits: every consumer makes progress, and something follows what is dropped.
        if !fits && !queue.waiting.is_empty() {
            queue.dropped = true;
            return Err(status);
        }
        queue.waiting.push_back(Waiting { bundle: bundle.to_owned(), bytes, status });
        queue.bytes += bytes;
        self.bytes = total;
        self.enqueue(consumer);
        Ok(())
    }

    /// Takes the next status, of the consumer whose turn it is.
    pub fn next(&mut self) -> Option<Taken<T>> {
        // Each consumer is looked at once; one that has nothing to take comes back with `finish`.
        while let Some(consumer) = self.order.pop_front() {
            let Some(queue) = self.consumers.get_mut(&consumer) else { continue };
            queue.queued = false;
            if let Some(Waiting { bundle, bytes, status }) = queue.take(self.limits.concurrency) {
                self.enqueue(&consumer);
                return Some(Taken { consumer, bundle, bytes, status });
            }
        }
        None
    }

    /// Ends the storing of a status. Returns whether statuses of its consumer were dropped and have to be requested: its
    /// queue is empty now.
    pub fn finish(&mut self, consumer: &str, bundle: &str, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_sub(bytes);
        let Some(queue) = self.consumers.get_mut(consumer) else { return false };
        queue.under_way.remove(bundle);
        if !queue.waiting.is_empty() {
            self.enqueue(consumer);
            return false;
        }
        let dropped = queue.under_way.is_empty() && std::mem::take(&mut queue.dropped);
        if queue.under_way.is_empty() {
            self.consumers.remove(consumer);
        }
        dropped
    }

    fn enqueue(&mut self, consumer: &str) {
        if let Some(queue) = self.consumers.get_mut(consumer)
            && !queue.queued
            && !queue.waiting.is_empty()
        {
            queue.queued = true;
            self.order.push_back(consumer.to_owned());
        }
    }
}

impl<T> Consumer<T> {
    fn new() -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, under_way: HashSet::new(), queued: false, dropped: false }
    }

    /// The first status whose bundle has none under way.
    fn take(&mut self, concurrency: usize) -> Option<Waiting<T>> {
        if self.under_way.len() >= concurrency {
            return None;
        }
        let index = self.waiting.iter().position(|one| !self.under_way.contains(&one.bundle))?;
        let taken = self.waiting.remove(index)?;
        self.bytes -= taken.bytes;
        self.under_way.insert(taken.bundle.clone());
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: QueueLimits = QueueLimits { messages: 10, bytes: 1000, total_bytes: 1500, concurrency: 2 };

    fn queue() -> StatusQueue<usize> {
        StatusQueue::new(LIMITS)
    }

    /// Takes and finishes everything, one after another.
    fn drain(queue: &mut StatusQueue<usize>) -> Vec<(String, usize)> {
        let mut all = Vec::new();
        while let Some(Taken { consumer, bundle, bytes, status }) = queue.next() {
            queue.finish(&consumer, &bundle, bytes);
            all.push((consumer, status));
        }
        all
    }

    #[test]
    fn flooding_consumer_delays_the_others_by_one_status() {
        let mut queue = queue();
        let accepted = (0..1000).filter(|n| queue.add("flood", &format!("b{n}"), 1, *n).is_ok()).count();
        assert_eq!(accepted, LIMITS.messages);
        queue.add("quiet", "b", 1, 7).unwrap();
        let order = drain(&mut queue);
        let place = order.iter().position(|(consumer, _)| consumer == "quiet");
        assert!(place.is_some_and(|place| place <= 1), "{order:?}");
        assert_eq!(order.len(), LIMITS.messages + 1);
        assert!(queue.consumers.is_empty() && queue.bytes == 0, "nothing is left behind");
    }

    #[test]
    fn flooding_consumer_occupies_its_share_of_the_workers_only() {
        let mut queue = queue();
        for number in 0..5 {
            queue.add("flood", &format!("b{number}"), 1, number).unwrap();
        }
        let held = [queue.next().unwrap(), queue.next().unwrap()];
        assert!(queue.next().is_none(), "the third has to wait");
        queue.add("quiet", "b", 1, 7).unwrap();
        assert_eq!(queue.next().unwrap().consumer, "quiet");
        queue.finish("flood", &held[0].bundle, 1);
        assert_eq!(queue.next().unwrap().status, 2);
    }

    #[test]
    fn statuses_of_one_bundle_are_stored_in_order_and_not_at_once() {
        let mut queue = queue();
        queue.add("c", "same", 1, 1).unwrap();
        queue.add("c", "same", 1, 2).unwrap();
        queue.add("c", "other", 1, 3).unwrap();
        assert_eq!(queue.next().unwrap().status, 1);
        assert_eq!(queue.next().unwrap().status, 3, "another bundle overtakes");
        assert!(queue.next().is_none());
        queue.finish("c", "same", 1);
        assert_eq!(queue.next().unwrap().status, 2);
    }

    #[test]
    fn bytes_are_bounded_for_each_consumer_and_for_all() {
        let mut queue = queue();
        assert!(queue.add("large", "a", 1200, 1).is_ok(), "one always fits");
        assert_eq!(queue.add("large", "b", 1, 2), Err(2));
        assert!(queue.add("other", "a", 300, 3).is_ok());
        assert!(queue.add("third", "a", 300, 5).is_ok(), "one always fits");
        assert_eq!(queue.add("other", "b", 1, 4), Err(4), "all together are bounded");
        drain(&mut queue);
        assert!(queue.add("other", "b", 1, 4).is_ok());
    }

    #[test]
    fn what_was_dropped_is_requested_once_the_queue_is_empty() {
        let mut queue = queue();
        for number in 0..=LIMITS.messages {
            let _ = queue.add("c", &format!("b{number}"), 1, number);
        }
        let mut requested = 0;
        while let Some(Taken { consumer, bundle, bytes, .. }) = queue.next() {
            requested += usize::from(queue.finish(&consumer, &bundle, bytes));
        }
        assert_eq!(requested, 1);
        queue.add("c", "b", 1, 1).unwrap();
        let taken = queue.next().unwrap();
        assert!(!queue.finish("c", &taken.bundle, 1), "nothing was dropped this time");
    }
}
