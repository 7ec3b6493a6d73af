//! The journal of what roles decided about a resource, so that `aro why` can print one timeline of a request.
//!
//! A role appends an [`Entry`] whenever it decides something that an operator would ask for: a request was accepted, a step
//! started, waits or failed, a bundle was published, a state changed. Entries are keyed by the hosted cluster's resource id;
//! every other name of the thing (the id in Clusters Service, an operation, a bundle) is an alias that leads there.
//!
//! The flow: [`Decisions::record`] queues the entry, one task writes what is queued in batches, [`Timeline::read`] finds the
//! entries by any of their names.
//!
//! What it is not: part of any decision. No role reads the journal, and a journal that cannot be written slows nothing down:
//! entries beyond the budget are dropped and counted.
//!
//! Invariants:
//! * `record` never blocks and never fails.
//! * Entries hold no secret; the text is written for the operator.
//! * Entries expire after a week, as operations do.
#![warn(missing_docs)]

mod documents;
mod entry;
mod journal;
#[cfg(test)]
mod tests;
mod timeline;

pub use entry::{Entry, Outcome, Recorded};
pub use journal::Decisions;
pub use timeline::{Timeline, TimelineError};
