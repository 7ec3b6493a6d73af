//! The DNS server against documents in a real store, asked over real sockets.

mod serve;
mod support;
