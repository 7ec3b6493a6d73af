//! The definitions against the published ones, and objects through the types and back.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

mod hypershift;
mod published;
mod round_trip;
