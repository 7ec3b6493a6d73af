//! Addresses of the region's Services that roles use to reach one another. Names are those of the real service.

/// The MQTT broker.
pub const BROKER: &str = "maestro-broker.maestro.svc:8883";
/// Clusters Service.
pub const CLUSTERS_SERVICE: &str = "clusters-service.cluster-service.svc:8000";
