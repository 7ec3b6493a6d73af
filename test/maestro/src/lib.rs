//! Maestro and its parts, tried together: on our API server in this process, and the core of it on a real one.
//!
//! [`chain`] is everything as real processes; [`world`] is a cluster with the definitions the agents need; [`agent`] an engine on it whose reports are kept; [`request_counter`] counts requests.

pub mod agent;
pub mod chain;
pub mod peers;
pub mod pki;
pub mod request_counter;
pub mod world;
