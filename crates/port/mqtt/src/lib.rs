//! A client connection to an MQTT v5 broker, used by the Maestro server and its agents.
//!
//! A [`Link`] keeps one connection for as long as its scope lives. After every connect it subscribes and calls
//! [`Inbox::connected`], so that its owner resyncs what was missed: neither end keeps a session, because both resync.
//!
//! Publishing: [`Link::publish`] reserves a slot in the window, appends the packet to the connection's buffer and resolves
//! when the broker has acknowledged it. Many callers publish at once, and one write takes all that is in the buffer. When
//! the connection is lost, every publish in flight fails; nothing is queued across connections.
//!
//! Receiving: messages reach [`Inbox::deliver`] one after another, each with an [`Ack`]. The broker sends while fewer than
//! [`LinkOptions::receive_window`] messages are unacknowledged; the handler decides when to acknowledge.
//!
//! What it is not: it decodes no CloudEvents and knows no topics of Maestro (that is `aro-bundle`, whose [`Message`] it
//! carries). Of `rumqttc` only the packet codec is used (ADR 0060); [`wire`] corrects it where it is too lenient, and is
//! shared with the broker.
//!
//! Invariants: reading never waits for a handler or a publisher, so a link cannot deadlock; what is in flight is bounded in
//! number and in bytes; a packet too large fails its own publish and nothing else.

mod connection;
mod files;
mod identity;
mod inbox;
mod link;
mod message;
mod metrics;
mod options;
mod session;
pub mod wire;

pub use aro_bundle::mqtt::Message;
pub use files::{ConfigFile, ConfigFileError, TopicNames};
pub use inbox::{Ack, Delivery, Inbox};
pub use link::{Link, LinkPorts, PublishError, Subscribers};
pub use metrics::LinkMetrics;
pub use options::{Credentials, LinkOptions};
