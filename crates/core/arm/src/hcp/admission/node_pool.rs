//! Admission of node pools.

use super::{ControlPlaneVersions, NodePoolVersions};
use crate::FieldError;
use crate::hcp::cluster::Cluster;
use crate::hcp::node_pool::NodePool;

/// Fills in what a new node pool takes from its cluster, and checks that it fits.
pub fn admit_create(
    _node_pool: &mut NodePool,
    _parent: &Cluster,
    _control_plane: &ControlPlaneVersions,
) -> Vec<FieldError> {
    Vec::new()
}

/// Whether a stored node pool may become the new one, given what runs.
pub fn admit_update(
    _old: &NodePool,
    _new: &NodePool,
    _parent: &Cluster,
    _control_plane: &ControlPlaneVersions,
    _running: &NodePoolVersions,
    _experimental: bool,
) -> Vec<FieldError> {
    Vec::new()
}

/// Whether a node pool may be deleted when so many others would remain.
pub fn admit_delete(_remaining: usize) -> Vec<FieldError> {
    Vec::new()
}
