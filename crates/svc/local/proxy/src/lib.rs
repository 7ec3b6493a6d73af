//! The region's CONNECT proxy: how unmodified clients reach the local cloud under Azure's own host names.
//!
//! What it is: an HTTP/1.1 server for `CONNECT <host>:<port>`. Azure host names ([`aro_cloud_store::AZURE_HOSTS`]) lead to the azure-local
//! listener; names in zones that the region's DNS server is authoritative for lead to the region's own listeners. Bytes are
//! relayed as they are: TLS is between the client and the destination.
//!
//! What it is not: a proxy to the internet. Every other host is refused with the reason; plain requests are refused.
//!
//! The flow: `listen` admits a connection; `connection` reads one request head, [`Destinations`] decides where it leads,
//! the destination is connected, and `tunnel` copies both ways until both ends are done, idle, or the role stops.
//!
//! Invariants:
//! * It connects only to addresses in its configuration, and to loopback addresses that a zone of the region names. The
//!   public addresses of the local cloud belong to other owners on the internet, so they are never dialled.
//! * It never asks the system's resolver.
//! * Every wait has a deadline: head, name, connection, idle tunnel, drain.

mod config;
mod connection;
mod descriptor;
mod destinations;
mod listen;
mod metrics;
mod names;
mod ports;
mod role;
mod tunnel;
mod tunnels;

pub use config::ProxyConfig;
pub use descriptor::DESCRIPTOR;
pub use destinations::{Destinations, Refusal, RegionDestinations};
pub use names::{DnsNames, Names};
pub use ports::ProxyPorts;
pub use role::Proxy;
pub use tunnels::{TunnelError, Tunnels};
