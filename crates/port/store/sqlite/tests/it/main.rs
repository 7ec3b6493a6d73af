//! The SQLite adapter against the contract, and what is special about it.

mod conformance;
mod crash;
mod lifecycle;
mod replicas;
