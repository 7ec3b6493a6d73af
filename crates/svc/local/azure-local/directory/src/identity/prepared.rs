//! Keys that are generated before they are asked for: a cluster requests the credentials of ten identities at once, and each
//! RSA key takes longer than everything else of such a request.
//!
//! Each new identity of a customer brings one key into the pool, made in the background while the customer sets up the rest.
//! Few keys are generated at once, so that many requests do not slow one another down; one that gives up wastes no key.

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{Directory, DirectoryError, keys};
use aro_pki::KeyPem;

/// Keys in the pool, at most: about 2 KB each.
const MOST: usize = 2000;
/// Keys that are generated at once.
const AT_ONCE: usize = 2;

/// The pool.
#[derive(Default)]
pub(crate) struct PreparedKeys {
    state: Mutex<State>,
    wanted: Notify,
    made: Notify,
}

#[derive(Default)]
struct State {
    ready: Vec<KeyPem>,
    /// Keys that are still to be made.
    wanted: usize,
    /// Whether something generates keys. A directory of a test has nothing that does.
    runs: bool,
}

impl PreparedKeys {
    /// One more identity will want a key.
    pub(crate) fn want(&self) {
        let mut state = self.state.lock();
        if state.ready.len() + state.wanted < MOST {
            state.wanted += 1;
            self.wanted.notify_one();
        }
    }

    /// A prepared key; waits for one if there is none.
    pub(super) async fn take(&self) -> Result<KeyPem, DirectoryError> {
        loop {
            let made = self.made.notified();
            tokio::pin!(made);
            // Registered before the look: a key that is made in between is not missed.
            made.as_mut().enable();
            {
                let mut state = self.state.lock();
                if let Some(key) = state.ready.pop() {
                    return Ok(key);
                }
                if !state.runs {
                    break;
                }
                state.wanted = state.wanted.max(1);
                self.wanted.notify_one();
            }
            made.await;
        }
        keys::generate().await
    }

    async fn generate(&self) -> Result<(), DirectoryError> {
        loop {
            let next = {
                let mut state = self.state.lock();
                let next = state.wanted > 0;
                state.wanted = state.wanted.saturating_sub(1);
                next
            };
            if !next {
                self.wanted.notified().await;
                continue;
            }
            let key = keys::generate().await?;
            self.state.lock().ready.push(key);
            self.made.notify_waiters();
        }
    }
}

impl Directory {
    /// Prepares keys of identities until it is dropped, or one cannot be generated.
    pub async fn prepare_keys(&self) -> Result<(), DirectoryError> {
        let prepared = &self.0.prepared;
        prepared.state.lock().runs = true;
        let workers = (0..AT_ONCE).map(|_| prepared.generate());
        futures::future::try_join_all(workers).await.map(drop)
    }
}
