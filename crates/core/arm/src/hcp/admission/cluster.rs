//! Admission of clusters.

use super::{ControlPlaneVersions, NodePoolVersions};
use crate::hcp::cluster::{Cluster, Kms};
use crate::hcp::openshift_version::{LINE_4_22, Line};
use crate::schema::problems::tidy;
use crate::{FieldError, FieldPath};

/// Whether a stored cluster may become the new one, given what runs.
pub fn admit_update(
    old: &Cluster,
    new: &Cluster,
    control_plane: &ControlPlaneVersions,
    node_pools: &[NodePoolVersions],
) -> Vec<FieldError> {
    let mut problems = Vec::new();
    if old.service.deletion_timestamp.is_some() {
        let at = FieldPath::new("properties");
        problems.push(FieldError::forbidden(&at, "the cluster is being deleted"));
    }
    admit_version(old, new, control_plane, node_pools, &mut problems);
    admit_key(old, new, control_plane, &mut problems);
    admit_registry(old, new, control_plane, &mut problems);
    tidy(problems)
}

/// A new version must be one step from all that runs, be served to every node pool, and be on offer.
fn admit_version(
    old: &Cluster,
    new: &Cluster,
    control_plane: &ControlPlaneVersions,
    node_pools: &[NodePoolVersions],
    problems: &mut Vec<FieldError>,
) {
    let id = new.properties.version.id.as_str();
    let (Some(line), false) = (Line::parse(id), old.properties.version.id == id) else { return };
    let at = FieldPath::new("properties.version.id");
    let stored = Line::parse(&old.properties.version.id);
    let running = || control_plane.active.iter().map(|release| release.line());
    if let (Some(lowest), Some(highest)) = (running().min(), running().max()) {
        if line < highest {
            problems.push(FieldError::invalid(
                &at,
                id,
                format!("must be at least {highest}, which is running"),
            ));
        }
        // When the stored line is the lowest that runs, the step from it was judged with the object itself.
        if line >= lowest && stored != Some(lowest) && !lowest.may_upgrade_to(line) {
            let why =
                format!("may not be more than one minor version above {lowest}, which is still running");
            problems.push(FieldError::invalid(&at, id, why));
        }
    }
    for pool in node_pools {
        let (lowest, highest) = (pool.active.iter().min(), pool.active.iter().max());
        for release in [pool.requested.as_ref(), lowest, highest].into_iter().flatten() {
            if !release.line().may_be_served_by(line) {
                let why =
                    format!("node pool {:?} with version {release} cannot be served by {line}", pool.name);
                problems.push(FieldError::invalid(&at, id, why));
            }
        }
    }
    let channel = format!("{}-{line}", new.properties.version.channel_group);
    if !control_plane.channels.is_empty() && !control_plane.channels.contains(&channel) {
        problems.push(FieldError::invalid(&at, id, format!("is not offered in channel {channel:?}")));
    }
}

/// The key can be rotated once every running control plane knows how to.
fn admit_key(
    old: &Cluster,
    new: &Cluster,
    control_plane: &ControlPlaneVersions,
    problems: &mut Vec<FieldError>,
) {
    fn kms(cluster: &Cluster) -> Option<&Kms> {
        cluster.properties.etcd.data_encryption.customer_managed.as_ref()?.kms.as_ref()
    }
    let (Some(before), Some(after)) = (kms(old), kms(new)) else { return };
    if before.active_key.version == after.active_key.version || all_at_least(control_plane, LINE_4_22) {
        return;
    }
    let at = FieldPath::new("properties.etcd.dataEncryption.customerManaged.kms.activeKey.version");
    let why = format!("can only be changed when every control plane version is at least {LINE_4_22}");
    problems.push(FieldError::forbidden(&at, why));
}

/// Nodes can pull with an identity of their own once every running control plane can configure them.
fn admit_registry(
    old: &Cluster,
    new: &Cluster,
    control_plane: &ControlPlaneVersions,
    problems: &mut Vec<FieldError>,
) {
    let identity =
        |cluster: &Cluster| cluster.properties.platform.container_registry.managed_identity.clone();
    let after = identity(new);
    if after.is_none() || after == identity(old) || all_at_least(control_plane, LINE_4_22) {
        return;
    }
    let at = FieldPath::new("properties.platform.containerRegistry.managedIdentity");
    let why = format!("can only be set when every control plane version is at least {LINE_4_22}");
    problems.push(FieldError::forbidden(&at, why));
}

/// What is not known to run is not known to be new enough.
fn all_at_least(control_plane: &ControlPlaneVersions, line: Line) -> bool {
    !control_plane.active.is_empty() && control_plane.active.iter().all(|release| release.line() >= line)
}
