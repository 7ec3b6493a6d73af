//! Which bodies a query lets through.

use aro_store::adapter::{holds, matches, may_hold, needles};
use aro_store::{Query, Raw};

/// Conditions are checked here and not in the statement: the reference is at hand, and it looks only at what it needs.
pub(crate) struct Sieve<'q> {
    query: &'q Query,
    needles: Vec<&'q str>,
}

impl<'q> Sieve<'q> {
    pub(crate) fn new(query: &'q Query) -> Self {
        Self { query, needles: query.condition.as_ref().map(needles).unwrap_or_default() }
    }

    /// Whether everything passes, so that bodies need not be read.
    pub(crate) fn is_open(&self) -> bool {
        self.query.filters.is_empty() && self.query.condition.is_none()
    }

    pub(crate) fn passes(&self, body: &str) -> bool {
        if self.is_open() {
            return true;
        }
        if !may_hold(&self.needles, body) {
            return false;
        }
        let body = Raw::stored(body);
        matches(&self.query.filters, &body)
            && self.query.condition.as_ref().is_none_or(|condition| holds(condition, &body))
    }
}
