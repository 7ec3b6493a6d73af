//! The server all tests share; those that kill one start their own.

use std::sync::OnceLock;

use aro_store::testing::postgres::TestPostgres;

/// The shared server.
pub fn shared() -> &'static TestPostgres {
    static SERVER: OnceLock<TestPostgres> = OnceLock::new();
    SERVER.get_or_init(|| TestPostgres::launch().expect("PostgreSQL starts"))
}
