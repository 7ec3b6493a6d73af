//! Addresses of the region's Services that roles use to reach one another. Names are those of the real service.

/// The MQTT broker.
pub const BROKER: &str = "maestro-broker.maestro.svc:8883";
