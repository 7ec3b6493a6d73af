//! Parts of a server for unit tests.

use std::path::Path;
use std::sync::Arc;

use aro_base::{ManualClock, Timestamp};
use aro_store_sqlite::{SqliteOptions, SqliteStore};

use crate::rows::Rows;

/// Rows on a store of their own.
pub fn rows(directory: &Path) -> (Rows, Arc<ManualClock>) {
    let clock = ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap());
    let store = SqliteStore::open(SqliteOptions::new(directory), clock.clone()).unwrap();
    (Rows::new(store, clock.clone(), "maestro"), clock)
}
