//! Integration tests.

mod published;
mod round_trip;
