//! The life of clusters, node pools and external auths through frontend and backend.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests, and their helpers")]

mod chaos;
mod children;
mod clusters;
mod deletion;
mod faults;
mod preflight;
mod real;
mod region;
mod replicas;
