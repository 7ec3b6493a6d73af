//! Which call fails, and how. Pure but for the state of its generator.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::{Container, Cursor};

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// `get`.
    Get,
    /// `write`.
    Write,
    /// `query`.
    Query,
    /// `changes` and `latest_cursor`.
    Changes,
    /// `ping`.
    Ping,
}

/// A way to fail. What makes no sense for a call does nothing to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call never reaches the store.
    FailBefore,
    /// A write happens, but the caller gets `Unavailable`.
    LostReply,
    /// A write is refused as if another writer had been faster; nothing is written.
    Conflict,
    /// The call takes this much longer.
    Delay(Duration),
    /// The feed delivers an earlier page again.
    Redeliver,
}

/// How often each fault happens at random, from 0 (never) to 1 (always). Drawn one after the other per call.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rates {
    /// Any call fails before it reaches the store.
    pub fail_before: f64,
    /// A write happens but its reply is lost.
    pub lost_reply: f64,
    /// A write is refused.
    pub conflict: f64,
    /// A call is delayed.
    pub delay: f64,
    /// By how much at most.
    pub delay_up_to: Duration,
    /// A page of the feed comes again.
    pub redeliver: f64,
}

pub(super) struct Plan {
    scripts: HashMap<Call, VecDeque<Fault>>,
    pub(super) rates: Rates,
    pub(super) injected: u64,
    random: u64,
    /// Where recently delivered pages began, to deliver one of them again.
    delivered: HashMap<Container, VecDeque<Option<Cursor>>>,
}

/// How many pages back a redelivery may go.
const MEMORY: usize = 4;

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            scripts: HashMap::new(),
            rates: Rates::default(),
            injected: 0,
            // The generator must not start at zero, where it would stay.
            random: seed ^ 0x9e37_79b9_7f4a_7c15 | 1,
            delivered: HashMap::new(),
        }
    }

    pub(super) fn script(&mut self, call: Call, faults: impl IntoIterator<Item = Fault>) {
        self.scripts.entry(call).or_default().extend(faults);
    }

    pub(super) fn heal(&mut self) {
        self.scripts.clear();
        self.rates = Rates::default();
    }

    /// The fault of the next call of this kind.
    pub(super) fn draw(&mut self, call: Call) -> Option<Fault> {
        let scripted = self.scripts.get_mut(&call).and_then(VecDeque::pop_front);
        let fault = scripted.or_else(|| self.draw_random(call));
        self.injected += u64::from(fault.is_some());
        fault
    }

    fn draw_random(&mut self, call: Call) -> Option<Fault> {
        let rates = self.rates;
        if self.chance(rates.fail_before) {
            return Some(Fault::FailBefore);
        }
        if call == Call::Write && self.chance(rates.lost_reply) {
            return Some(Fault::LostReply);
        }
        if call == Call::Write && self.chance(rates.conflict) {
            return Some(Fault::Conflict);
        }
        if call == Call::Changes && self.chance(rates.redeliver) {
            return Some(Fault::Redeliver);
        }
        if self.chance(rates.delay) {
            let share = self.next();
            return Some(Fault::Delay(rates.delay_up_to.mul_f64(share)));
        }
        None
    }

    fn chance(&mut self, rate: f64) -> bool {
        // Nothing is drawn for what is off, so that switching one fault on does not change the others' course.
        rate > 0.0 && self.next() < rate
    }

    /// A number from 0 up to but not including 1 (xorshift64*).
    fn next(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn delivered(&mut self, container: Container, began_after: Option<Cursor>) {
        let pages = self.delivered.entry(container).or_default();
        pages.push_back(began_after);
        if pages.len() > MEMORY {
            pages.pop_front();
        }
    }

    /// The oldest remembered page; each comes again once. The outer `None`: there is none.
    #[allow(clippy::option_option, reason = "the inner option is a cursor, where none is the beginning")]
    pub(super) fn earlier(&mut self, container: Container) -> Option<Option<Cursor>> {
        self.delivered.get_mut(&container)?.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_come_first_and_in_order() {
        let mut plan = Plan::new(1);
        plan.script(Call::Write, [Fault::LostReply, Fault::Conflict]);
        assert_eq!(plan.draw(Call::Get), None);
        assert_eq!(plan.draw(Call::Write), Some(Fault::LostReply));
        assert_eq!(plan.draw(Call::Write), Some(Fault::Conflict));
        assert_eq!(plan.draw(Call::Write), None);
        assert_eq!(plan.injected, 2);
    }

    #[test]
    fn the_same_seed_gives_the_same_faults_at_about_the_asked_rate() {
        let draw = |seed| {
            let mut plan = Plan::new(seed);
            plan.rates = Rates { lost_reply: 0.3, ..Rates::default() };
            (0..1000).map(|_| plan.draw(Call::Write)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let lost = draw(7).into_iter().flatten().count();
        assert!((250..350).contains(&lost), "{lost}");
    }
}
