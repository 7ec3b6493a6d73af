//! What tests of this crate share.

use std::sync::Arc;

use aro_runtime::SystemClock;
use aro_store::SharedStore;
use aro_store_sqlite::{SqliteOptions, SqliteStore};

/// A store of its own; it is gone with the directory.
pub(crate) async fn store() -> (SharedStore, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let store: Arc<SqliteStore> =
        SqliteStore::open(SqliteOptions::new(directory.path()), SystemClock::shared()).unwrap();
    (store, directory)
}
