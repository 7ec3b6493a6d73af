//! Admission of node pools.

use super::{ControlPlaneVersions, NodePoolVersions};
use crate::hcp::cluster::Cluster;
use crate::hcp::node_pool::NodePool;
use crate::hcp::openshift_version::{Line, MAX_SKEW, Release};
use crate::schema::problems::tidy;
use crate::{FieldError, FieldPath};

/// Fills in what a new node pool takes from its cluster, and checks that it fits.
///
/// Before the control plane runs, the version is compared with the one the cluster asked for.
pub fn admit_create(
    node_pool: &mut NodePool,
    parent: &Cluster,
    control_plane: &ControlPlaneVersions,
) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let subnet = &mut node_pool.properties.platform.subnet_id;
    let parents = parent.properties.platform.subnet_id.as_ref();
    match (subnet.as_ref(), parents) {
        (None, parents) => *subnet = parents.cloned(),
        (Some(subnet), Some(parents)) if subnet.parent() != parents.parent() => {
            let network = parents.parent().unwrap_or_else(|| parents.clone());
            let why = format!("must be in the same virtual network as the cluster: {:?}", network.as_str());
            let at = FieldPath::new("properties.platform.subnetId");
            problems.push(FieldError::invalid(&at, subnet.as_str(), why));
        }
        _ => {}
    }
    if let Some((id, release)) = requested(node_pool) {
        let requested = Line::parse(&parent.properties.version.id);
        let (lowest, highest) = lines(&control_plane.active).or(requested.map(|line| (line, line))).unzip();
        if let (Some(lowest), Some(highest)) = (lowest, highest) {
            admit_skew(id, release.line(), lowest, highest, &mut problems);
        }
    }
    tidy(problems)
}

/// Whether a stored node pool may become the new one, given what runs.
pub fn admit_update(
    old: &NodePool,
    new: &NodePool,
    parent: &Cluster,
    control_plane: &ControlPlaneVersions,
    running: &NodePoolVersions,
    experimental: bool,
) -> Vec<FieldError> {
    let mut problems = Vec::new();
    if old.service.deletion_timestamp.is_some() || parent.service.deletion_timestamp.is_some() {
        let at = FieldPath::new("properties");
        problems.push(FieldError::forbidden(&at, "the node pool or its cluster is being deleted"));
    }
    let Some((id, release)) = requested(new) else { return problems };
    let unchanged = requested(old).is_some_and(|(_, before)| before == release);
    if unchanged || running.active.contains(&release) {
        return problems;
    }
    let at = version_path();
    let line = release.line();
    match lines(&control_plane.active) {
        None => {
            problems.push(FieldError::invalid(&at, id, "the version of the control plane is not known yet"));
        }
        Some((lowest, highest)) => admit_skew(id, line, lowest, highest, &mut problems),
    }
    let from = lines(&running.active).map(|(lowest, _)| lowest);
    if let Some(from) = from.or_else(|| requested(old).map(|(_, release)| release.line())) {
        if from.major != line.major && !experimental {
            let why = format!("may not move from {from} to another major version");
            problems.push(FieldError::invalid(&at, id, why));
        } else if !from.may_move_to(line) {
            let why =
                format!("may not be more than {MAX_SKEW} minor versions above {from}, which is running");
            problems.push(FieldError::invalid(&at, id, why));
        }
    }
    tidy(problems)
}

/// Whether a node pool may be deleted when so many others remain.
pub fn admit_delete(remaining: usize) -> Vec<FieldError> {
    if remaining > 0 {
        return Vec::new();
    }
    let at = FieldPath::new("name");
    vec![FieldError::forbidden(&at, "The last node pool can not be deleted from a cluster.")]
}

fn admit_skew(id: &str, line: Line, lowest: Line, highest: Line, problems: &mut Vec<FieldError>) {
    let at = version_path();
    if line > lowest {
        let why = format!("may not be above the version of the control plane, {lowest}");
        problems.push(FieldError::invalid(&at, id, why));
    } else if !line.may_be_served_by(highest) {
        let why =
            format!("may not be more than {MAX_SKEW} minor versions below the control plane, {highest}");
        problems.push(FieldError::invalid(&at, id, why));
    }
}

fn version_path() -> FieldPath {
    FieldPath::new("properties.version.id")
}

/// The version it asks for; one that does not parse is reported with the object itself.
fn requested(node_pool: &NodePool) -> Option<(&str, Release)> {
    let id = node_pool.properties.version.id.as_deref()?;
    Some((id, Release::parse(id)?))
}

/// The lowest and highest lines that run.
fn lines(active: &[Release]) -> Option<(Line, Line)> {
    let lines = || active.iter().map(Release::line);
    Some((lines().min()?, lines().max()?))
}
