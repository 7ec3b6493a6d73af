//! Which store a stack uses, and how it is opened, migrated and closed.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use aro_base::{Secret, SharedClock};
use aro_runtime::config::{SecretFile, redacted};
use aro_runtime::{ByteSize, Checked, Period, Problems, Section};
use aro_store::SharedStore;
use aro_store_postgres::{PostgresOptions, PostgresStore};
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use serde::{Deserialize, Serialize};

use crate::{DataDir, StartError};

/// The stores there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    /// Embedded, in the data directory.
    Sqlite,
    /// A PostgreSQL server.
    Postgres,
}

aro_runtime::section! {
    /// The document store.
    pub struct StoreConfig in "store" {
        /// `sqlite` (embedded, in the data directory) or `postgres`.
        pub kind: StoreKind = StoreKind::Sqlite,
        /// The PostgreSQL URL, without a password: `postgres://user@host/database`.
        pub url: Option<String> = None,
        /// A file with the PostgreSQL URL, for URLs with a password.
        pub url_file: Option<SecretFile> = None,
        /// Certificates (PEM) of the authorities that may vouch for the PostgreSQL server. With them, only TLS is spoken, and
        /// the server's certificate must name the host in the URL.
        pub ca_file: Option<PathBuf> = None,
        /// How many connections to PostgreSQL may be open.
        pub pool_size: usize = 16,
        /// How long one call of PostgreSQL may take, waiting for a connection included.
        pub deadline: Period = Period::secs(10),
        /// How much memory the embedded store's cache may take.
        pub cache: ByteSize = ByteSize::mib(64),
        /// How long a deletion can be seen on the change feed; who was away for longer lists again.
        pub tombstone_retention: Period = Period::secs(24 * 3600),
    }
}

impl Section for StoreConfig {
    fn examine(&self, problems: &mut Problems) {
        if self.pool_size == 0 {
            problems.add("pool_size", "must be at least 1");
        }
        if self.deadline.get().is_zero() {
            problems.add("deadline", "must be longer than nothing");
        }
        if self.url.as_deref().is_some_and(|url| redacted(url) != url) {
            problems.add("url", "holds a password; put the URL into a file and name it in `store.url_file`");
        }
        match (self.kind, &self.url, &self.url_file) {
            (StoreKind::Postgres, None, None) => {
                problems.add("url", "is needed for PostgreSQL (or `store.url_file`)");
            }
            (StoreKind::Postgres, Some(_), Some(_)) => {
                problems.add("url_file", "is given together with `store.url`; give one of them");
            }
            (StoreKind::Sqlite, Some(_), _) => problems.add("url", "means nothing to the embedded store"),
            (StoreKind::Sqlite, None, Some(_)) => {
                problems.add("url_file", "means nothing to the embedded store");
            }
            (StoreKind::Postgres, _, _) | (StoreKind::Sqlite, None, None) => {}
        }
    }
}

/// A store and how to close it.
pub(crate) enum OpenStore {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

impl OpenStore {
    /// Opens the configured store. The embedded one is migrated on the way; of PostgreSQL the schema must be right
    /// already (`aro migrate`), since several replicas share it.
    pub(crate) async fn open(
        config: &Checked<StoreConfig>,
        data: &DataDir,
        clock: SharedClock,
    ) -> Result<Self, StartError> {
        match config.kind {
            StoreKind::Sqlite => open_sqlite(config, data, clock).await.map(Self::Sqlite),
            StoreKind::Postgres => {
                let opened = PostgresStore::connect(postgres_options(config)?, clock).await;
                opened.map(Self::Postgres).map_err(|error| failed("postgres", error))
            }
        }
    }

    pub(crate) fn shared(&self) -> SharedStore {
        match self {
            Self::Sqlite(store) => store.clone(),
            Self::Postgres(store) => store.clone(),
        }
    }

    /// Finishes what is queued and lets go.
    pub(crate) async fn close(self) {
        match self {
            // Joins its threads: not for a thread of the runtime.
            Self::Sqlite(store) => {
                let _ = tokio::task::spawn_blocking(move || store.close()).await;
            }
            Self::Postgres(store) => store.close().await,
        }
    }
}

impl fmt::Debug for OpenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite(_) => "OpenStore::Sqlite",
            Self::Postgres(_) => "OpenStore::Postgres",
        })
    }
}

fn failed(kind: &'static str, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StartError {
    StartError::Store { kind, source: error.into() }
}

async fn open_sqlite(
    config: &StoreConfig,
    data: &DataDir,
    clock: SharedClock,
) -> Result<Arc<SqliteStore>, StartError> {
    data.take().await?;
    let mut options = SqliteOptions::new(data.path().join("store"));
    options.cache_bytes = usize::try_from(config.cache.get()).unwrap_or(usize::MAX);
    options.tombstone_retention = config.tombstone_retention.get();
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(options, clock)).await;
    opened.map_err(|error| failed("sqlite", error))?.map_err(|error| failed("sqlite", error))
}

fn postgres_options(config: &StoreConfig) -> Result<PostgresOptions, StartError> {
    let url = match (&config.url_file, &config.url) {
        (Some(file), _) => file.read()?,
        // `check` made sure that there is one.
        (None, url) => Secret::new(url.clone().unwrap_or_default()),
    };
    let mut options = PostgresOptions::new("");
    options.connection = url;
    options.ca_file.clone_from(&config.ca_file);
    options.pool_size = config.pool_size;
    options.deadline = config.deadline.get();
    options.tombstone_retention = config.tombstone_retention.get();
    Ok(options)
}

/// Brings the configured store's schema up to date.
pub async fn migrate(
    config: &Checked<StoreConfig>,
    data: &DataDir,
    clock: SharedClock,
) -> Result<(), StartError> {
    match config.kind {
        StoreKind::Sqlite => {
            // Opening it is migrating it.
            OpenStore::open(config, data, clock).await?.close().await;
            Ok(())
        }
        StoreKind::Postgres => {
            let migrated = PostgresStore::migrate(&postgres_options(config)?).await;
            migrated.map_err(|error| failed("postgres", error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(config: StoreConfig) -> Vec<String> {
        config.check().err().map(|all| all.iter().map(|one| one.key.clone()).collect()).unwrap_or_default()
    }

    #[test]
    fn a_url_belongs_to_postgres_and_a_password_to_a_file() {
        let url = |url: &str| Some(url.to_owned());
        let postgres = StoreConfig { kind: StoreKind::Postgres, ..StoreConfig::default() };
        assert_eq!(problems(postgres.clone()), ["store.url"]);
        assert!(problems(StoreConfig { url: url("postgres://db/aro"), ..postgres.clone() }).is_empty());
        let leaky = StoreConfig { url: url("postgres://aro:hunter2@db/aro"), ..postgres.clone() };
        assert_eq!(problems(leaky), ["store.url"]);
        let both =
            StoreConfig { url: url("postgres://db/aro"), url_file: Some(SecretFile::new("/x")), ..postgres };
        assert_eq!(problems(both), ["store.url_file"]);
        let embedded = StoreConfig { url: url("postgres://db/aro"), ..StoreConfig::default() };
        assert_eq!(problems(embedded), ["store.url"]);
    }
}
