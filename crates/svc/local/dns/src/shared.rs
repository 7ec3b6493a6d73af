//! The current zones, shared between the follower that replaces them and all that ask.

use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::zone::Zones;

/// The current zones. Cloning shares them.
#[derive(Debug, Clone, Default)]
pub struct SharedZones(Arc<RwLock<Arc<Zones>>>);

impl SharedZones {
    /// The zones at this moment.
    pub fn current(&self) -> Arc<Zones> {
        self.0.read().clone()
    }

    /// Replaces all zones at once.
    pub fn replace(&self, zones: Zones) {
        *self.0.write() = Arc::new(zones);
    }

    /// The addresses of a host name; see [`Zones::lookup`].
    pub fn lookup(&self, host: &str) -> Option<Vec<IpAddr>> {
        self.current().lookup(host)
    }
}
