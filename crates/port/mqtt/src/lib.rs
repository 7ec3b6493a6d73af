//! A link to an MQTT v5 broker: what the Maestro server and its agents talk through.
//!
//! A [`Link`] keeps one connection up for as long as its scope lives. Every time it is up again it subscribes and says so
//! ([`Inbox::connected`]), so that its owner can ask the other side for what was missed: sessions are not kept, by
//! either end, because both ends resync.
//!
//! The flow out: [`Link::publish`] takes a place in the window, puts the packet into the connection's buffer and resolves
//! when the broker has acknowledged it. Many callers publish at once, one write takes all that has gathered. When the
//! connection is lost, everybody who waits is told; nothing is queued across connections.
//!
//! The flow in: messages reach [`Inbox::deliver`] one after another, each with an [`Ack`]. The broker keeps sending while
//! fewer than [`LinkOptions::receive_window`] messages are unacknowledged; the handler decides when one is done.
//!
//! What it is not: it reads no CloudEvents and knows no topics of Maestro's (that is `aro-bundle`, whose [`Message`] it
//! carries). Of `rumqttc` only the packet
//! codec is used (ADR 0060); [`wire`] puts it right where it is too trusting, and is shared with the broker.
//!
//! Invariants: the reader never waits for a handler or a publisher, so a link cannot lock itself up; what is in flight is
//! bounded in number and in bytes; a packet too large fails its own publish and nothing else.

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
pub use link::{Link, LinkPorts, PublishError, Reached};
pub use metrics::LinkMetrics;
pub use options::{Credentials, LinkOptions};
