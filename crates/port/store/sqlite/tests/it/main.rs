//! The SQLite adapter against the contract, and what is special about it.

mod conformance;
mod crash;
mod disk;
mod lifecycle;
mod replicas;
mod sagas;
