//! What can be chosen when connecting.

use std::path::PathBuf;
use std::time::Duration;

use aro_base::Secret;

/// How to reach and use the database.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// A connection string (`host=… user=… dbname=…` or `postgresql://…`); may hold a password.
    pub connection: Secret<String>,
    /// Certificates (PEM) of the authorities that may vouch for the server. With them, only TLS is spoken, and the server's
    /// certificate must name its host; needed for `sslmode=require`.
    pub ca_file: Option<PathBuf>,
    /// How many connections may be open.
    pub pool_size: usize,
    /// How long one call may take, waiting for a connection included.
    pub deadline: Duration,
    /// How long a deletion can be seen on the feed. A consumer that is away for longer must list again.
    pub tombstone_retention: Duration,
    /// How often expired documents and old tombstones are removed. They are invisible long before.
    pub purge_interval: Duration,
    /// About how many rows one purge removes.
    pub purge_rows: i32,
}

impl PostgresOptions {
    /// The defaults, for this connection string.
    pub fn new(connection: impl Into<String>) -> Self {
        Self {
            connection: Secret::new(connection.into()),
            ca_file: None,
            pool_size: 16,
            deadline: Duration::from_secs(10),
            tombstone_retention: Duration::from_hours(24),
            purge_interval: Duration::from_secs(30),
            purge_rows: 1000,
        }
    }
}
