//! Front Door in front of a real origin in the same process.

mod caching;
mod rules;
mod support;
mod tls;
