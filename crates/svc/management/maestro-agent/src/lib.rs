//! Maestro's agent: brings the bundles of one consumer onto its cluster and reports how they are.
//!
//! The flow: at its start the agent reads what it knew (`ledger`), gives it to the engine of `aro-work-engine`, which goes on
//! enforcing it even when the service cluster is away, and connects to the broker. After every connect it tells the server
//! which versions it has; the server sends what is newer or has to go. A spec event is read (`intake`), noted (`book`),
//! handed to the engine and acknowledged. What the engine reports is noted and sent (`sender`): of each work only the newest
//! status waits, and it is sent again until the broker has acknowledged it.
//!
//! What it is not: it applies nothing itself, and it keeps no connection; those are `aro-work-engine` and `aro-mqtt`.
//!
//! Invariants:
//! * Deleting is terminal: a bundle that goes is reported gone once nothing of it is left, and forgotten only when the broker
//!   has acknowledged that report.
//! * After a restart with nothing changed nothing is sent but the list of known versions.
//! * No input is fatal. A bundle that cannot be applied is answered with a status that says why.
//! * What waits is bounded by the number of works.

mod agent;
mod book;
mod config;
mod descriptor;
mod intake;
mod ledger;
mod metrics;
mod ports;
mod record;
mod role;
mod sender;
mod speech;

pub use config::MaestroAgentConfig;
pub use descriptor::DESCRIPTOR;
pub use ports::MaestroAgentPorts;
pub use role::MaestroAgent;
