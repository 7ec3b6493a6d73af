//! The role as a whole, and real clients against it.

mod grammar;
mod peers;
mod region;
mod sdk;
mod search;
