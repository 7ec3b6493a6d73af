//! The PostgreSQL adapter against the contract, on a real server, and what is special about it.

mod conformance;
mod faults;
mod groups;
mod server;
mod storm;
mod tls;
