//! The handler of received messages.

use std::sync::Arc;

use async_trait::async_trait;

use crate::Message;
use crate::session::Session;

/// Handles messages and connection changes.
#[async_trait]
pub trait Inbox: Send + Sync + 'static {
    /// Called after every connect, once the broker has confirmed all subscriptions. [`crate::Link::publish`] works from now on.
    /// The reading task calls this, so it must not block.
    fn connected(&self) {}

    /// Called when the connection is lost, but not when the link is stopped.
    fn disconnected(&self) {}

    /// Handles one message. The next one is delivered after this returns. If the connection is lost meanwhile, this future is
    /// dropped at its next `.await`.
    async fn deliver(&self, delivery: Delivery);
}

/// A received message.
#[derive(Debug)]
pub struct Delivery {
    pub topic: String,
    pub message: Message,
    pub ack: Ack,
}

/// Acknowledges one message.
///
/// If it is dropped unused, the message stays unacknowledged and occupies the receive window until the connection ends.
/// A broker with sessions redelivers it; here no session is kept, and the resync after the next connect repairs it. After
/// its connection has ended, an ack does nothing.
#[derive(Debug)]
pub struct Ack {
    pub(crate) session: Arc<Session>,
    /// 0 for a message that needs no acknowledgement.
    pub(crate) packet_id: u16,
}

impl Ack {
    /// The message is handled.
    pub fn done(self) {
        if self.packet_id != 0 {
            self.session.acknowledge(self.packet_id);
        }
    }
}
