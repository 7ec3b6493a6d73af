//! Managed clusters: `cluster.open-cluster-management.io`.

pub mod v1;
