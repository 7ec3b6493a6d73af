//! The server against real sockets.

mod client;
mod drain;
mod limits;
mod serving;
mod tracing_spans;
