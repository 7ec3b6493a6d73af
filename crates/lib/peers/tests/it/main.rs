//! The translation of ARM's resources, held against the model of Clusters Service and its rules about updates.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests, and their helpers")]

mod children;
mod clusters;
mod support;
mod wire;
