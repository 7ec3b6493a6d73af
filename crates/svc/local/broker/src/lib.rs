//! The embedded MQTT v5 broker: what carries Maestro's messages when nobody runs another one.
//!
//! It does what Maestro needs and says no to the rest: quality 0 and 1, shared subscriptions, user properties and content
//! type passed on byte for byte. No sessions over connections, no retained messages, no wills, no quality 2, no topic
//! aliases: both ends of Maestro resync whenever they connect, so nothing is kept on disk.
//!
//! The flow of a message: a connection's reader takes packets off the stream, [`Acl`] says whether this identity may,
//! the hub finds who subscribes, the message is put into their outboxes, and the publisher gets its PUBACK. Each
//! connection's writer takes what has gathered in its outbox, as far as the client's window allows, with one write.
//!
//! Who somebody is, is said by the common name of the client's certificate. Plain connections are for loopback only;
//! there the user name is believed.
//!
//! Invariants: every queue is bounded, and who does not keep up is disconnected, never waited for; no input can do more
//! than end its own connection; nothing is global, so two brokers can live in one process.

mod acl;
mod config;
mod connection;
mod descriptor;
mod greeting;
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
