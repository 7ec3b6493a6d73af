//! `HyperShift`: hosted clusters, their control planes and node pools, and certificates of hosted control planes.

pub mod certificates;
pub mod v1beta1;
