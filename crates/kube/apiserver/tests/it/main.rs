//! One cluster in this process, asked without a socket.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod admission;
mod authorization;
mod certificates;
mod clusters;
mod events;
mod identity;
mod limits;
mod lists;
mod logs;
mod nodes;
mod portforward;
mod scale;
mod server;
mod support;
