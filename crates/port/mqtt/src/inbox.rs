//! Where messages go.

use std::sync::Arc;

use async_trait::async_trait;

use crate::Message;
use crate::session::Session;

/// Takes what arrives, and is told when the link comes and goes.
#[async_trait]
pub trait Inbox: Send + Sync + 'static {
    /// After every connect, once the broker has confirmed all subscriptions. [`crate::Link::publish`] works from now on.
    /// Called by the task that reads, so it must not block.
    fn connected(&self) {}

    /// The connection is lost. Not called when the link is stopped.
    fn disconnected(&self) {}

    /// One message. The next one comes after this returns; when the connection is lost meanwhile, this is dropped at
    /// its next `.await`.
    async fn deliver(&self, delivery: Delivery);
}

/// A message that arrived.
#[derive(Debug)]
pub struct Delivery {
    pub topic: String,
    pub message: Message,
    pub ack: Ack,
}

/// The right to say that a message is dealt with.
///
/// Dropped without a word, the message stays unacknowledged: it takes a place in the window until the connection ends.
/// Brokers that keep sessions send it again; ours and Maestro's sessions are not kept, there the resync after the next
/// connect repairs it. After its connection is gone, an ack says nothing to anybody.
#[derive(Debug)]
pub struct Ack {
    pub(crate) session: Arc<Session>,
    /// 0 for a message that needs no acknowledgement.
    pub(crate) packet_id: u16,
}

impl Ack {
    /// It is dealt with; the broker may forget it.
    pub fn done(self) {
        if self.packet_id != 0 {
            self.session.acknowledge(self.packet_id);
        }
    }
}
