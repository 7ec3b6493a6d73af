//! What to apply on a managed cluster, and what was applied: `work.open-cluster-management.io`.

pub mod v1;
