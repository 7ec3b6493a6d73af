//! Admission of clusters.

use super::{ControlPlaneVersions, NodePoolVersions};
use crate::FieldError;
use crate::hcp::cluster::Cluster;

/// Whether a stored cluster may become the new one, given what runs.
pub fn admit_update(
    _old: &Cluster,
    _new: &Cluster,
    _control_plane: &ControlPlaneVersions,
    _node_pools: &[NodePoolVersions],
) -> Vec<FieldError> {
    Vec::new()
}
