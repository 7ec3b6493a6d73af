//! Wakes feed readers after a commit.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{ChangeSignal, Container};

/// How soon to look again when something is known to be on its way.
const SOON: Duration = Duration::from_millis(15);

struct Channel {
    sender: watch::Sender<()>,
    hurry: Arc<AtomicBool>,
}

/// One channel per container that has listeners.
pub struct Signals {
    channels: Mutex<HashMap<&'static str, Channel>>,
    poll: Duration,
}

impl Signals {
    /// Readers poll at least this often, also without a signal.
    pub fn new(poll: Duration) -> Self {
        Self { channels: Mutex::default(), poll }
    }

    /// A new listener.
    pub fn subscribe(&self, container: Container) -> Box<dyn ChangeSignal> {
        let mut channels = self.lock();
        let channel = channels
            .entry(container.name())
            .or_insert_with(|| Channel { sender: watch::Sender::new(()), hurry: Arc::default() });
        Box::new(Signal {
            changes: channel.sender.subscribe(),
            hurry: Arc::clone(&channel.hurry),
            poll: self.poll,
        })
    }

    /// Wakes the listeners of a container, by name; there may be none.
    pub fn wake(&self, container: &str) {
        if let Some(channel) = self.lock().get(container) {
            channel.sender.send_replace(());
        }
    }

    /// Wakes everybody, for when wake-ups may have been lost.
    pub fn wake_all(&self) {
        for channel in self.lock().values() {
            channel.sender.send_replace(());
        }
    }

    /// Says that a change is committed but cannot be shown yet: the next wait of a listener is short.
    pub fn soon(&self, container: Container) {
        if let Some(channel) = self.lock().get(container.name()) {
            channel.hurry.store(true, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, Channel>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Signal {
    changes: watch::Receiver<()>,
    hurry: Arc<AtomicBool>,
    poll: Duration,
}

#[async_trait]
impl ChangeSignal for Signal {
    async fn changed(&mut self) {
        let patience = if self.hurry.swap(false, Ordering::Relaxed) { SOON } else { self.poll };
        // The store is gone when this is an error: wait instead of spinning.
        if let Ok(Err(_)) = tokio::time::timeout(patience, self.changes.changed()).await {
            tokio::time::sleep(patience).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THINGS: Container = Container::new("things");

    #[tokio::test(start_paused = true)]
    async fn a_wake_up_before_the_wait_is_not_lost_and_silence_ends_with_the_poll() {
        let signals = Signals::new(Duration::from_secs(30));
        let mut signal = signals.subscribe(THINGS);
        let start = tokio::time::Instant::now();
        signals.wake("others");
        signals.wake("things");
        signal.changed().await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        signal.changed().await;
        assert_eq!(start.elapsed(), Duration::from_secs(30));
        signals.soon(THINGS);
        signal.changed().await;
        assert!(start.elapsed() < Duration::from_secs(31));
    }
}
