//! SPDY/3.1 without input and output: bytes in, events out; calls in, bytes out.
//!
//! What it is: the frames, the compressed header blocks and the life of streams, as far as Kubernetes' clients use
//! them (`kubectl port-forward` multiplexes its connections this way). What it is not: it owns no socket, no task and
//! no clock, and knows nothing of what streams carry; `aro-kube-apiserver` drives it.
//!
//! The flow: the owner of the transport passes what it read to [`Connection::receive`] and acts on the [`Event`]s, and
//! writes what [`Connection::take_output`] returns.
//!
//! Invariants: no input panics, or makes the connection hold more than its [`Limits`] allow: control frames and
//! inflated header blocks are bounded, data is passed on as it comes and never gathered, and streams are counted.
//! After an [`Error`] the connection is of no use: what is left to do is to write its output, which says goodbye.

mod connection;
mod decoder;
mod dictionary;
mod encoder;
mod frame;
mod headers;

pub use connection::{Connection, Event, Limits, Side};
pub use frame::{Error, ResetCode};
pub use headers::Headers;
