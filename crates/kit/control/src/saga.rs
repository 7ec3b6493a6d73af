//! Sagas: ordered work for one request that either completes or is undone.
//!
//! What it is: a [`Saga`] names its steps ([`Steps`]) and the typed state that they fill; a [`Driver`] runs them for one key,
//! from wherever the [`Journal`] shows that the work stands. It has no task of its own: a reconciler calls
//! [`Driver::advance`] with its key, and the result tells when to call again.
//!
//! What it is not: a graph. Stages run in order; the steps of one stage ([`Steps::together`]) run at once. Desired state that
//! changes under way belongs to a reconciler. The reasons are in `docs/adr/0079-sagas.md`.
//!
//! The flow of a stage: steps → state → journal. The write that records a stage as done also records that the next one has
//! begun, so a stage costs one write.
//!
//! Invariants:
//! * A step runs at least once and may run again after a crash: it looks first, then creates.
//! * Every write names the revision that was read, and the epoch of the caller's lease: a former holder's write fails.
//! * A terminal failure, or a deadline, before the commit point undoes the steps in reverse order; after it the saga is stuck,
//!   as is one whose undo fails. A stuck saga keeps its reason and resumes by [`Driver::resume`].
//! * A journal of another version, or with a step that this version does not know, is left as it is.

mod driver;
mod error;
mod journal;
mod registry;
mod steps;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

#[cfg(test)]
mod tests;

use std::time::Duration;

use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use driver::{Advance, DriveError, Driver, DriverOptions, Progress};
pub use error::StepError;
pub use journal::{Entry, Journal, JournalError, Phase, Record, Revision, Waiting};
pub use registry::{Registered, Registry};
pub use steps::{PollFn, StepFn, Steps, Wait};

/// Ordered work with a journal.
pub trait Saga: Sized + Send + Sync + 'static {
    /// Persisted: never renamed.
    const NAME: &'static str;
    /// Grows when a stored journal can no longer be continued by these steps.
    const VERSION: u16;
    /// What the steps know and find out; an object in JSON. A member is set once its step is done. It holds no secret.
    type State: Clone + Serialize + DeserializeOwned + Send + Sync;
    /// What the steps act with.
    type Cx: Send + Sync;

    /// The steps, in order.
    fn steps() -> Steps<Self>;

    /// Whether there is nothing left to do this for: the target is gone, or its deletion was requested. Asked between stages
    /// and before a step is repeated.
    fn gone(_cx: &Self::Cx) -> BoxFuture<'_, Result<bool, StepError>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// How long a step may take, with all its attempts, unless it has a deadline of its own.
    fn deadline(_cx: &Self::Cx) -> Duration {
        Duration::from_mins(10)
    }
}
