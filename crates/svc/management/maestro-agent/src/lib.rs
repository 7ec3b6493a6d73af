//! The Maestro agent: applies the bundles of one consumer to its cluster and reports their status.
//!
//! The flow: at start the agent loads its records (`record_store`) and hands them to the engine of `aro-work-engine`, which
//! enforces them even while the service cluster is unreachable, and connects to the broker. After every connect it
//! publishes the versions it has; the server sends newer ones and deletions. A spec event is decoded and decided about
//! (`spec_event`), recorded (`agent_state`), handed to the engine and acknowledged. The engine's reports are recorded and
//! published (`encoder`, `publisher`): per work only the newest status waits, and it is published until the broker has
//! acknowledged it. Records are stored behind (`writer`).
//!
//! What it is not: it applies nothing itself and owns no connection; those are `aro-work-engine` and `aro-mqtt`.
//!
//! Invariants:
//! * Deletion is terminal: a work is reported deleted once nothing of it is left, and forgotten once the broker has
//!   acknowledged that report.
//! * A restart without changes publishes nothing but the list of versions.
//! * No input is fatal. A bundle that cannot be applied is answered with a status that carries the reason.
//! * What waits is bounded by the number of works.

mod agent;
mod agent_state;
mod config;
mod descriptor;
mod encoder;
mod metrics;
mod ports;
mod publisher;
mod record;
mod record_store;
mod role;
mod spec_event;
mod writer;

pub use config::MaestroAgentConfig;
pub use descriptor::DESCRIPTOR;
pub use ports::MaestroAgentPorts;
pub use role::MaestroAgent;
