//! Whose question is answered next.
//!
//! Of one consumer one question is answered at a time, and consumers take turns: whoever asks a thousand times waits for
//! everybody who asks once. A question that is asked again before its turn takes the place of the one that waits, since it
//! knows more. What waits is bounded, per consumer and in all.

use std::collections::{BTreeMap, HashMap, VecDeque};

use aro_bundle::IdRange;

/// Questions of one consumer that may wait: pages of a list. Even the longest list has fewer.
pub const OF_ONE: usize = 32;
/// Questions that may wait in all.
pub const OF_ALL: usize = 2048;

/// Questions in the order in which they are answered.
#[derive(Debug)]
pub struct Turns<T> {
    consumers: HashMap<String, Asked<T>>,
    /// Consumers that have something waiting and nothing under way.
    order: VecDeque<String>,
    waiting: usize,
}

#[derive(Debug)]
struct Asked<T> {
    under_way: bool,
    /// By a number that grows.
    waiting: BTreeMap<u64, (IdRange, T)>,
    next: u64,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { consumers: HashMap::new(), order: VecDeque::new(), waiting: 0 }
    }
}

impl<T> Turns<T> {
    /// Adds a question. Returns the one that is not answered because of it: an older one of the same range, the oldest of a
    /// consumer that has too many, or this one if there are too many of everybody's.
    #[must_use]
    pub fn add(&mut self, consumer: &str, range: IdRange, question: T) -> Option<T> {
        let asked = self.consumers.entry(consumer.to_owned()).or_insert_with(|| Asked {
            under_way: false,
            waiting: BTreeMap::new(),
            next: 0,
        });
        if let Some((_, waiting)) = asked.waiting.values_mut().find(|(of, _)| *of == range) {
            return Some(std::mem::replace(waiting, question));
        }
        let mut unanswered = None;
        if asked.waiting.len() >= OF_ONE {
            unanswered = asked.waiting.pop_first().map(|(_, (_, oldest))| oldest);
        } else if self.waiting >= OF_ALL {
            self.tidy(consumer);
            return Some(question);
        } else {
            self.waiting += 1;
        }
        if asked.waiting.is_empty() && !asked.under_way {
            self.order.push_back(consumer.to_owned());
        }
        asked.waiting.insert(asked.next, (range, question));
        asked.next += 1;
        unanswered
    }

    /// The next question, which is under way from now on.
    pub fn next(&mut self) -> Option<(String, T)> {
        let consumer = self.order.pop_front()?;
        let asked = self.consumers.get_mut(&consumer)?;
        let (_, (_, question)) = asked.waiting.pop_first()?;
        asked.under_way = true;
        self.waiting -= 1;
        Some((consumer, question))
    }

    /// The question of a consumer that was under way is answered. If it has another one, it goes to the end.
    pub fn done(&mut self, consumer: &str) {
        if let Some(asked) = self.consumers.get_mut(consumer) {
            asked.under_way = false;
            if !asked.waiting.is_empty() {
                self.order.push_back(consumer.to_owned());
            }
        }
        self.tidy(consumer);
    }

    fn tidy(&mut self, consumer: &str) {
        if self.consumers.get(consumer).is_some_and(|asked| !asked.under_way && asked.waiting.is_empty()) {
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

    fn all(turns: &mut Turns<usize>) -> Vec<(String, usize)> {
        let mut answered = Vec::new();
        while let Some((consumer, question)) = turns.next() {
            turns.done(&consumer);
            answered.push((consumer, question));
        }
        answered
    }

    #[test]
    fn a_question_asked_again_before_its_turn_replaces_the_one_that_waits() {
        let mut turns = Turns::default();
        assert_eq!(turns.add("a", IdRange::default(), 1), None);
        assert_eq!(turns.add("b", IdRange::default(), 2), None);
        assert_eq!(turns.add("a", IdRange::default(), 3), Some(1));
        assert_eq!(turns.add("a", page(7), 4), None, "another page is another question");
        let expected = [("a", 3), ("b", 2), ("a", 4)].map(|(name, number)| (name.to_owned(), number));
        assert_eq!(all(&mut turns), expected);
        assert!(turns.consumers.is_empty(), "nothing is kept of those who asked");
    }

    #[test]
    fn one_consumer_is_answered_once_at_a_time_and_waits_for_everybody_else() {
        let mut turns = Turns::default();
        for number in 0..10 {
            assert_eq!(turns.add("loud", page(number), number), None);
        }
        assert_eq!(turns.next(), Some(("loud".to_owned(), 0)));
        assert_eq!(turns.next(), None, "one of it is under way");
        assert_eq!(turns.add("quiet", page(0), 100), None);
        assert_eq!(turns.next(), Some(("quiet".to_owned(), 100)));
        turns.done("loud");
        assert_eq!(turns.add("late", page(0), 200), None);
        assert_eq!(turns.next(), Some(("loud".to_owned(), 1)));
        assert_eq!(turns.next(), Some(("late".to_owned(), 200)));
        assert_eq!(turns.next(), None);
    }

    #[test]
    fn one_consumer_cannot_make_more_wait_than_a_list_has_pages() {
        let mut turns = Turns::default();
        let dropped: Vec<usize> =
            (0..1000).filter_map(|number| turns.add("loud", page(number), number)).collect();
        assert_eq!(dropped, (0..1000 - OF_ONE).collect::<Vec<_>>(), "the oldest goes");
        assert_eq!(all(&mut turns).len(), OF_ONE);
    }

    proptest! {
        #[test]
        fn whatever_is_asked_no_question_is_lost_and_the_bounds_hold(
            steps in prop::collection::vec((0..5_u8, 0..40_usize, 0..3_u8), 0..400),
        ) {
            let mut turns = Turns::default();
            let (mut asked, mut over, mut under_way) = (0, 0, Vec::<String>::new());
            for (consumer, range, step) in steps {
                match step {
                    0 | 1 => {
                        asked += 1;
                        over += usize::from(turns.add(&consumer.to_string(), page(range), ()).is_some());
                    }
                    _ => {
                        if under_way.len() == 2 {
                            turns.done(&under_way.remove(0));
                        }
                        if let Some((consumer, ())) = turns.next() {
                            prop_assert!(!under_way.contains(&consumer), "two at once");
                            under_way.push(consumer);
                            over += 1;
                        }
                    }
                }
                let waiting: usize = turns.consumers.values().map(|asked| asked.waiting.len()).sum();
                prop_assert_eq!(turns.waiting, waiting);
                prop_assert_eq!(asked, over + waiting);
                prop_assert!(turns.consumers.values().all(|asked| asked.waiting.len() <= OF_ONE));
            }
        }
    }
}
