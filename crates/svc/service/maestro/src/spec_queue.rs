//! The queue of bundles to publish.
//!
//! Deletions and creations share one queue, each bundle once, in the order of its first entry: a burst of one kind does not
//! starve the other.

use std::collections::HashMap;
use std::sync::Arc;

use aro_control::Queue;
use parking_lot::Mutex;

use crate::rows::Bundle;

/// Rows kept for publishing without a read; further rows are read from the store.
const MAX_ROWS: usize = 4096;

/// Bundles to publish, some with the row that was just stored.
#[derive(Default)]
pub struct SpecQueue {
    ids: Queue<Arc<str>>,
    rows: Mutex<HashMap<Arc<str>, Bundle>>,
}

impl SpecQueue {
    /// The ids, for the controller that publishes them.
    pub fn ids(&self) -> Queue<Arc<str>> {
        self.ids.clone()
    }

    pub fn enqueue(&self, id: Arc<str>) {
        self.ids.add(id);
    }

    /// Enqueues a bundle whose row this replica has just stored.
    pub fn enqueue_stored(&self, row: Bundle) {
        let id: Arc<str> = row.id.as_str().into();
        let mut rows = self.rows.lock();
        if rows.len() < MAX_ROWS || rows.contains_key(&id) {
            rows.insert(id.clone(), row);
        }
        drop(rows);
        self.ids.add(id);
    }

    /// Removes the row that came with an id.
    pub fn take_row(&self, id: &str) -> Option<Bundle> {
        self.rows.lock().remove(id)
    }
}
