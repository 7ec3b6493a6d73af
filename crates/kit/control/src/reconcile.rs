//! What a controller implements.

use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use aro_base::Classify;

/// How a pass ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The object is as desired. The next change enqueues it.
    Settled,
    /// The object needs another pass after this long, changed or not.
    RequeueAfter(Duration),
    /// Another object has to change first, and its source enqueues the key. `recheck` covers conditions without a source.
    Waiting {
        /// What the object waits for.
        on: &'static str,
        /// The latest time of the next pass.
        recheck: Option<Duration>,
    },
}

/// What a pass would do that is not permitted now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preview {
    /// Nothing: the object is as desired, or gone. The next change enqueues it.
    Settled,
    /// Something: the key gets a pass as soon as it is permitted.
    Pending {
        /// The printed plan; `None` for reconcilers that do not plan.
        plan: Option<String>,
    },
}

/// Names one object of a controller.
pub trait Key: Clone + Eq + Hash + Debug + Send + Sync + 'static {}
impl<K: Clone + Eq + Hash + Debug + Send + Sync + 'static> Key for K {}

/// Makes one object equal to its desired state.
///
/// A pass gets a key, never an event: it reads the present state, so a restart, a lost event and a repeated event are the
/// same case.
pub trait Reconcile: Send + Sync + 'static {
    /// Names one object.
    type Key: Key;
    /// Why a pass fails. Its class decides about the next pass, see [`crate::Runner`].
    type Error: Classify + std::error::Error + Send + Sync + 'static;
    /// The controller's name in logs and metrics.
    const NAME: &'static str;

    /// One pass. Idempotent: it may run at any time and any number of times.
    fn reconcile(&self, key: &Self::Key) -> impl Future<Output = Result<Outcome, Self::Error>> + Send;

    /// Runs instead of [`Reconcile::reconcile`] while the [`crate::Gate`] withholds the key: reads and plans, writes nothing.
    fn preview(&self, _key: &Self::Key) -> impl Future<Output = Result<Preview, Self::Error>> + Send {
        std::future::ready(Ok(Preview::Pending { plan: None }))
    }

    /// Records a failure that no further pass can repair: sets the condition, fails the operation. Called once for each
    /// pass that ends with a terminal error; the object gets no further pass until a source enqueues it. An error of class
    /// `Retry` or `Wait` repeats the pass, so that the record is not lost.
    fn on_terminal(
        &self,
        _key: &Self::Key,
        _error: &Self::Error,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        std::future::ready(Ok(()))
    }
}
