//! Wakes feed readers after a commit.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aro_store::{ChangeSignal, Container};
use async_trait::async_trait;
use tokio::sync::watch;

/// How often a reader looks without having been woken. Wake-ups are never lost in this adapter; this keeps
/// consumers honest about spurious ones, and lets them notice a closed store.
const NOW_AND_THEN: Duration = Duration::from_secs(30);

/// One channel per container somebody listens to.
#[derive(Debug, Default)]
pub(crate) struct Signals(Mutex<HashMap<Container, watch::Sender<()>>>);

impl Signals {
    pub(crate) fn subscribe(&self, container: Container) -> Box<dyn ChangeSignal> {
        let mut senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = senders.entry(container).or_insert_with(|| watch::Sender::new(()));
        Box::new(Signal(sender.subscribe()))
    }

    pub(crate) fn wake(&self, container: Container) {
        let senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = senders.get(&container) {
            sender.send_replace(());
        }
    }
}

struct Signal(watch::Receiver<()>);

#[async_trait]
impl ChangeSignal for Signal {
    async fn changed(&mut self) {
        // The store is gone when this is an error: wait out the interval instead of spinning.
        if let Ok(Err(_)) = tokio::time::timeout(NOW_AND_THEN, self.0.changed()).await {
            tokio::time::sleep(NOW_AND_THEN).await;
        }
    }
}
