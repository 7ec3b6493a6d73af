//! Typed clients of our own APIs, and the way from one model to another's.
//!
//! What it is:
//! * [`ClustersService`], the client that the frontend and the backend use: clusters, node pools, external auths, checks,
//!   upgrade policies, break-glass credentials, versions, and the event feed;
//! * [`CallError`], why a call failed, by what the caller can do about it;
//! * [`CallContext`], the trace and the correlation id that every call carries;
//! * [`translate`], pure functions from ARM's resources to the bodies of Clusters Service;
//! * [`Versions`], the catalogue of releases, cached, and the rule that selects the release of a control plane.
//!
//! What it is not: it decides nothing about a resource and retries nothing. Reconcilers do.
//!
//! The flow of a call: a typed method makes the request → the context's headers → [`Transport`] within a deadline → status →
//! value or error.
//!
//! Invariants:
//! * Every call ends at its deadline.
//! * [`CallError::Unreachable`] and [`CallError::Unavailable`] never prove that nothing happened.
#![warn(missing_docs)]

mod call;
mod clusters_service;
mod error;
pub mod translate;
mod transport;
mod versions;

pub use call::CallContext;
pub use clusters_service::{ClustersService, ClustersServiceOptions, EventPage};
pub use error::{CallError, Refusal, RefusalDetail};
pub use transport::{HyperTransport, MAX_REPLY, Transport, TransportError};
pub use versions::{Catalogue, Offered, Versions};
