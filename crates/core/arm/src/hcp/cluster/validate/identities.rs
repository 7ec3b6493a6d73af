//! Which identities a cluster uses for what.
//!
//! (a) each assigned identity is used exactly once by a control-plane operator or the service; (b) an identity of
//! the data plane is not assigned to the cluster; (c) no identity is used twice, across all three.

use std::collections::BTreeMap;

use super::platform::check_neighbour;
use crate::hcp::cluster::Cluster;
use crate::schema::problems::Problems;
use crate::{FieldError, FieldPath, ResourceId};

const MANY: &str = "identity is used multiple times";

pub fn check(cluster: &Cluster, allow_data_plane: bool, problems: &mut Problems) {
    let operators = &cluster.properties.platform.operators_authentication.user_assigned_identities;
    let path = FieldPath::new("properties.platform.operatorsAuthentication.userAssignedIdentities");
    let control = path.child("controlPlaneOperators");
    let data = path.child("dataPlaneOperators");

    // Every use, in the order it is reported: control plane, service, data plane.
    let mut uses: Vec<(&ResourceId, FieldPath, bool)> = Vec::new();
    uses.extend(operators.control_plane_operators.iter().map(|(name, id)| (id, control.key(name), false)));
    uses.extend(
        operators.service_managed_identity.iter().map(|id| (id, path.child("serviceManagedIdentity"), false)),
    );
    uses.extend(operators.data_plane_operators.iter().map(|(name, id)| (id, data.key(name), true)));
    for (map, at) in
        [(&operators.control_plane_operators, &control), (&operators.data_plane_operators, &data)]
    {
        if map.contains_key("") {
            problems.push(FieldError::invalid(&at.key(""), "", "operator name must not be empty"));
        }
    }

    let nothing = BTreeMap::new();
    let assigned = cluster.identity.as_ref().map_or(&nothing, |identity| &identity.user_assigned_identities);
    let mut seen: BTreeMap<&ResourceId, usize> = BTreeMap::new();
    let mut uses_of_assigned: BTreeMap<&ResourceId, usize> = BTreeMap::new();
    for (id, at, is_data_plane) in &uses {
        check_neighbour(cluster, id, at, problems);
        let before = seen.entry(id).or_default();
        if *before > 0 {
            problems.push(FieldError::invalid(at, id.as_str(), MANY));
        }
        *before += 1;
        match (assigned.contains_key(*id), *is_data_plane) {
            (false, false) => {
                problems.push(FieldError::invalid(
                    at,
                    id.as_str(),
                    "identity is not assigned to this resource",
                ));
            }
            (true, true) if !allow_data_plane => {
                let why = "identity of a data plane operator must not be assigned to this resource";
                problems.push(FieldError::invalid(at, id.as_str(), why));
            }
            (true, _) => *uses_of_assigned.entry(id).or_default() += 1,
            (false, true) => {}
        }
    }
    let path = FieldPath::new("identity.userAssignedIdentities");
    for id in assigned.keys() {
        let why = match uses_of_assigned.get(id) {
            None if seen.contains_key(id) => continue, // reported where it is used
            None => "identity is assigned to this resource but not used",
            Some(1) => continue,
            Some(_) => MANY,
        };
        problems.push(FieldError::invalid(&path.key(id.as_str()), id.as_str(), why));
    }
}
