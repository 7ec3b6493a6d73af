//! The embedded MQTT v5 broker: carries Maestro's messages where no other broker is deployed.
//!
//! It supports what Maestro needs and rejects the rest: QoS 0 and 1, shared subscriptions, user properties and content type
//! forwarded byte for byte. No sessions across connections, no retained messages, no wills, no QoS 2, no topic aliases: both
//! ends of Maestro resync whenever they connect, so nothing is kept on disk.
//!
//! The flow of a message: a connection's reader decodes packets, [`Acl`] authorizes the identity, the hub finds the
//! subscribers, the message is queued in their outboxes, and the publisher gets its PUBACK. Each connection's writer takes
//! what is in its outbox, as far as the client's window allows, with one write.
//!
//! The identity of a client is the common name of its certificate. Plain connections are for loopback only; there the user
//! name is the identity.
//!
//! Invariants: every queue is bounded, and a slow client is disconnected, never waited for; no input can do more than end
//! its own connection; nothing is global, so two brokers can run in one process.

mod acl;
mod config;
mod connection;
mod descriptor;
mod handshake;
mod hub;
mod listen;
mod metrics;
mod outbox;
mod ports;
mod properties;
mod role;
mod router;
mod session;
mod topics;

pub use acl::Acl;
pub use config::BrokerConfig;
pub use descriptor::DESCRIPTOR;
pub use ports::BrokerPorts;
pub use role::Broker;
