//! The multicluster engine as the program knows it.

use aro_role::{Need, RegionCluster, RoleDeployment, RoleDescriptor, UpdateStrategy, namespace};
use aro_runtime::Role as _;

use crate::config::MceConfig;
use crate::{Mce, McePorts};

/// The role's descriptor.
pub static DESCRIPTOR: RoleDescriptor = RoleDescriptor {
    name: Mce::NAME,
    about: "Run the multicluster engine of a management cluster alone",
    command: "mce",
    group: None,
    section: |schema| schema.with::<MceConfig>(),
    listeners: &[],
    needs: &[Need::Cluster],
    deployment,
    beside: None,
    start: |context| {
        let cluster = context.cluster()?;
        let ports = McePorts {
            hub: cluster.client.clone(),
            hub_address: cluster.address,
            spoke: cluster.client,
            clock: context.clock.clone(),
            metrics: context.metrics.clone(),
            readiness: context.readiness.clone(),
        };
        context.launch::<Mce>(ports)
    },
};

/// The namespace of the ManifestWorks for the management cluster itself.
const LOCAL_CLUSTER: &str = "local-cluster";
/// The namespace of policies and of what they read.
const POLICIES: &str = "open-cluster-management-policies";

fn deployment(cluster: &RegionCluster<'_>) -> Option<RoleDeployment> {
    if !cluster.is_management() {
        return None;
    }
    let definitions = aro_crds::definitions();
    let definitions = definitions.iter().filter_map(|one| serde_json::to_value(one.object()).ok());
    Some(RoleDeployment {
        update: UpdateStrategy::Recreate,
        cluster_admin: true,
        prerequisites: [LOCAL_CLUSTER, POLICIES].map(namespace).into_iter().chain(definitions).collect(),
        ..RoleDeployment::new("multicluster-engine", "multicluster-engine")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_management_cluster_has_the_work_definitions_before_any_role_runs() {
        let all = ["svc".to_owned(), "mgmt-1".to_owned()];
        let on = |name| deployment(&RegionCluster { name, all: &all });
        assert!(on("svc").is_none());
        let prerequisites = on("mgmt-1").unwrap().prerequisites;
        let names: Vec<&str> =
            prerequisites.iter().filter_map(|object| object["metadata"]["name"].as_str()).collect();
        assert!(names.contains(&"manifestworks.work.open-cluster-management.io"), "{names:?}");
        assert!(names.contains(&LOCAL_CLUSTER));
    }
}
