//! What tests and benchmarks need beside the suite: a real PostgreSQL server of their own.

pub mod postgres;
