//! The proxy over real sockets.

mod support;
mod tunnels;
