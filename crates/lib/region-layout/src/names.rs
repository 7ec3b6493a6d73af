//! What a layout follows from, and the subscriptions' ids.

use uuid::Uuid;

/// The few facts that all names follow from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutParams {
    /// The service's tenant.
    pub tenant: Uuid,
    /// `dev`, `int`, `stg`, `prod`.
    pub environment: String,
    /// The Azure region.
    pub location: String,
    /// The region in names that must be short.
    pub short_name: String,
    /// The region's label in DNS names.
    pub subdomain: String,
    /// The parent zone of the service's own names.
    pub service_zone: String,
    /// The parent zone of the names of hosted clusters.
    pub cluster_zone: String,
    /// The management clusters by stamp: `1`, `2`.
    pub stamps: Vec<String>,
}

/// The id of a subscription of the service: the same for the same tenant and name.
pub(crate) fn subscription_id(tenant: Uuid, name: &str) -> Uuid {
    Uuid::new_v5(&tenant, name.as_bytes())
}
