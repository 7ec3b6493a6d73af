//! What every client of a network service needs, whatever protocol it speaks.
//!
//! What it is: [`Resolve`], the one way from a host name to an address (a Service of the region, or DNS); [`Dialer`], the
//! one way to open a connection, plain or TLS, within a deadline; [`accept()`], the one way to take one; [`Admission`], the
//! limits of a listener; [`Backoff`], the one rule for delays between attempts.
//!
//! What it is not: a client. Protocols live in the ports; this crate knows no resource and no message.
//!
//! Invariants:
//! * Opening a connection ends at its deadline, whichever step hangs.
//! * A delay never exceeds its maximum, and jitter only shortens it: a deadline computed from the maximum holds.
#![warn(missing_docs)]

mod accept;
mod admission;
mod backoff;
mod dial;
mod resolve;

pub use accept::accept;
pub use admission::{Admission, AdmissionLimits, Established, Pending};
pub use backoff::{Attempts, Backoff};
pub use dial::{Connection, DialError, Dialer, HostPort, Tls};
pub use resolve::{Resolve, SystemResolve, service_name};
