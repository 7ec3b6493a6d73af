//! One cluster in this process, asked without a socket.

mod identity;
mod support;
