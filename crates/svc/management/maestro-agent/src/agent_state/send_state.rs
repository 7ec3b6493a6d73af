//! Whether a report about one work waits to be published, and the queue that orders those that wait.
//!
//! Per work at most one report is in flight. What changes meanwhile is published after the broker has answered, so the
//! number of reports that wait is bounded by the number of works.

use std::collections::VecDeque;

/// What makes a report due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The state changed; a status that the broker has acknowledged already is not published again.
    Change,
    /// The server requested it; it is published even if the broker has acknowledged it before.
    Request,
}

impl Cause {
    /// Both causes in one report: a request outweighs a change.
    fn and(self, other: Self) -> Self {
        if self == Self::Request { self } else { other }
    }
}

/// Where the report about one work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SendState {
    /// Nothing to publish.
    #[default]
    Idle,
    /// In the queue.
    Queued(Cause),
    /// With the broker; `next` is set when another report has become due since.
    InFlight {
        /// Why another report follows.
        next: Option<Cause>,
    },
}

impl SendState {
    /// A report is due.
    #[must_use]
    pub fn request(self, cause: Cause) -> Self {
        match self {
            Self::Idle => Self::Queued(cause),
            Self::Queued(waiting) => Self::Queued(waiting.and(cause)),
            Self::InFlight { next } => {
                Self::InFlight { next: Some(next.map_or(cause, |next| next.and(cause))) }
            }
        }
    }

    /// The queued report is handed to the broker. `remaining` is what it leaves unanswered.
    #[must_use]
    pub fn start(self, remaining: Option<Cause>) -> Self {
        match self {
            Self::Queued(_) => Self::InFlight { next: remaining },
            other => other,
        }
    }

    /// The queued report turned out to be empty.
    #[must_use]
    pub fn skip(self) -> Self {
        match self {
            Self::Queued(_) => Self::Idle,
            other => other,
        }
    }

    /// The broker acknowledged the report in flight.
    #[must_use]
    pub fn ack(self) -> Self {
        match self {
            Self::InFlight { next: Some(cause) } => Self::Queued(cause),
            Self::InFlight { next: None } => Self::Idle,
            other => other,
        }
    }

    /// The report in flight, which had this cause, was not delivered: it is queued again.
    #[must_use]
    pub fn nack(self, cause: Cause) -> Self {
        match self {
            Self::InFlight { next } => Self::Queued(next.map_or(cause, |next| next.and(cause))),
            other => other,
        }
    }

    pub fn is_queued(self) -> bool {
        matches!(self, Self::Queued(_))
    }
}

/// The order of the works whose state is [`SendState::Queued`]; each is in it once.
#[derive(Debug, Default)]
pub struct SendQueue(VecDeque<String>);

impl SendQueue {
    /// Appends a work that has just become queued.
    pub fn update(&mut self, id: &str, before: SendState, after: SendState) {
        if !before.is_queued() && after.is_queued() {
            self.0.push_back(id.to_owned());
        }
    }

    pub fn pop(&mut self) -> Option<String> {
        self.0.pop_front()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[cfg(test)]
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_while_in_flight_is_published_after_the_ack() {
        let state = SendState::Idle.request(Cause::Change).start(None);
        assert_eq!(state, SendState::InFlight { next: None });
        assert_eq!(state.ack(), SendState::Idle);
        let changed = state.request(Cause::Change);
        assert_eq!(changed.ack(), SendState::Queued(Cause::Change));
        assert_eq!(changed.request(Cause::Request).ack(), SendState::Queued(Cause::Request));
    }

    #[test]
    fn nacked_report_keeps_its_request() {
        let state = SendState::Idle.request(Cause::Request).start(None);
        assert_eq!(state.nack(Cause::Request), SendState::Queued(Cause::Request));
        assert_eq!(state.request(Cause::Change).nack(Cause::Request), SendState::Queued(Cause::Request));
        assert_eq!(state.nack(Cause::Change), SendState::Queued(Cause::Change));
    }

    #[test]
    fn queued_request_survives_later_changes() {
        let state = SendState::Idle.request(Cause::Request).request(Cause::Change);
        assert_eq!(state, SendState::Queued(Cause::Request));
        assert_eq!(state.skip(), SendState::Idle);
    }
}
