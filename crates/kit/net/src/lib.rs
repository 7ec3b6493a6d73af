//! What every client of a network service needs, whatever protocol it speaks.
//!
//! What it is: [`Backoff`], the one rule for delays between attempts.
//!
//! What it is not: a client. Protocols live in the ports; this crate knows no resource and no message.
//!
//! Invariants:
//! * A delay never exceeds its maximum, and jitter only shortens it: a deadline computed from the maximum holds.
#![warn(missing_docs)]

mod backoff;

pub use backoff::{Attempts, Backoff};
