//! Maestro, end to end.

mod agent;
mod apply;
mod chain;
mod mce;
mod original;
mod region;
