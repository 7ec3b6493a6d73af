//! The DNS server's dependencies.

use aro_store::SharedStore;

use crate::shared::SharedZones;

/// The DNS server's dependencies, given when it is built.
pub struct DnsPorts {
    /// The TCP socket; datagrams are received on the same address.
    pub listener: aro_runtime::Listener,
    /// The store with the local cloud's documents.
    pub store: SharedStore,
    /// Where the zones are published, for other users in the same process.
    pub zones: SharedZones,
    pub metrics: aro_runtime::Metrics,
    pub readiness: aro_runtime::Readiness,
}
