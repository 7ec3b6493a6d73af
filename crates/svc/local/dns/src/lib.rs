//! The region's DNS server: authoritative for the zones that exist as ARM resources in the local cloud.
//!
//! What it is: a server for `Microsoft.Network/dnsZones` and their record sets, over UDP and TCP. A record set written
//! through ARM is answered as soon as the store's change feed delivers it.
//!
//! What it is not: a resolver. It asks no other server; names in no zone are refused. It signs nothing and transfers no zone.
//!
//! The flow: `follow` lists the documents and then follows the change feed; `model` keeps what they hold and rebuilds each
//! zone that a page of changes concerns; the result is an immutable [`Zones`] that replaces the one before. `message` decodes
//! one query, asks [`Zones::answer`], which is pure, and encodes the response; `serve` moves the bytes.
//!
//! Invariants:
//! * A query sees one snapshot: never half of a change.
//! * The longest zone that contains a name answers for it, so a child zone wins over its parent's delegation.
//! * Following CNAMEs ends after a fixed number of steps and never leaves the zones served here.
//! * The documents in memory stay within a budget; what exceeds it is not served and is reported.
//! * Readiness is reported only after the first complete list.

mod config;
mod descriptor;
mod follow;
mod front_door;
mod message;
mod metrics;
mod model;
mod name;
mod ports;
mod record_set;
mod role;
mod serve;
mod shared;
mod zone;

pub use config::DnsConfig;
pub use descriptor::DESCRIPTOR;
pub use follow::follow;
pub use metrics::DnsMetrics;
pub use model::Model;
pub use ports::DnsPorts;
pub use role::Dns;
pub use shared::SharedZones;
pub use zone::{Answer, Zone, Zones};
