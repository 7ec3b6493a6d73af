//! Keys that are generated before they are asked for: a cluster requests the credentials of ten identities at once, and each
//! RSA key takes longer than everything else of such a request.
//!
//! Each new identity of a customer brings one key into the pool, made in the background while the customer sets up the rest.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aro_pki::KeyPem;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{Directory, DirectoryError, keys};

/// Keys in the pool, at most: about 2 KB each.
const MOST: usize = 2000;
/// Between two keys, so that requests come first.
const PAUSE: Duration = Duration::from_millis(2);

/// The pool.
#[derive(Default)]
pub(crate) struct PreparedKeys {
    ready: Mutex<Vec<KeyPem>>,
    wanted: AtomicUsize,
    changed: Notify,
}

impl PreparedKeys {
    /// One more identity will want a key.
    pub(crate) fn want(&self) {
        let more = |wanted: usize| (wanted < MOST).then_some(wanted + 1);
        if self.wanted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok() {
            self.changed.notify_one();
        }
    }

    /// A prepared key, or a new one.
    pub(super) async fn take(&self) -> Result<KeyPem, DirectoryError> {
        let ready = self.ready.lock().pop();
        if let Some(key) = ready {
            return Ok(key);
        }
        // It need not be prepared any more.
        let fewer = |wanted: usize| wanted.checked_sub(1);
        let _ = self.wanted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
        keys::generate().await
    }

    async fn prepare(&self) -> Result<(), DirectoryError> {
        loop {
            let fewer = |wanted: usize| wanted.checked_sub(1);
            if self.ready.lock().len() < MOST
                && self.wanted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_ok()
            {
                let key = keys::generate().await?;
                self.ready.lock().push(key);
                tokio::time::sleep(PAUSE).await;
            } else {
                self.changed.notified().await;
            }
        }
    }
}

impl Directory {
    /// Prepares keys of identities until it is dropped, or one cannot be generated.
    pub async fn prepare_keys(&self) -> Result<(), DirectoryError> {
        self.0.prepared.prepare().await
    }
}
