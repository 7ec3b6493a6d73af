//! The objects of a region's clusters, from the descriptors of its roles.

use aro_role::{Certificate, RegionCluster, namespace, workload};
use serde_json::Value;

use crate::Registry;

/// What one cluster of the region consists of.
#[derive(Debug, Default)]
pub(super) struct ClusterManifests {
    /// Objects that exist before any role runs: namespaces, custom resource definitions.
    pub prerequisites: Vec<Value>,
    /// Certificates by namespace; issued before the roles that mount them run.
    pub certificates: Vec<(&'static str, Certificate)>,
    /// The roles.
    pub workloads: Vec<Value>,
}

/// The manifests of every cluster that roles are deployed to; `without` are the names of roles that are left out.
pub(super) fn of_region(
    registry: Registry,
    without: &[String],
    clusters: &[String],
) -> Vec<(String, ClusterManifests)> {
    let of =
        |name: &String| (name.clone(), of_cluster(registry, without, &RegionCluster { name, all: clusters }));
    clusters.iter().map(of).filter(|(_, manifests)| !manifests.workloads.is_empty()).collect()
}

fn of_cluster(registry: Registry, without: &[String], cluster: &RegionCluster<'_>) -> ClusterManifests {
    let mut manifests = ClusterManifests::default();
    for role in registry.iter().filter(|role| !without.iter().any(|name| name == role.name)) {
        let Some(deployment) = (role.deployment)(cluster) else { continue };
        let own = namespace(deployment.namespace);
        if !manifests.prerequisites.contains(&own) {
            manifests.prerequisites.push(own);
        }
        manifests.workloads.extend(workload(role, &deployment, env!("CARGO_PKG_VERSION")));
        let certificates = deployment.certificates.into_iter();
        manifests.certificates.extend(certificates.map(|one| (deployment.namespace, one)));
        manifests.prerequisites.extend(deployment.prerequisites);
    }
    manifests
}

#[cfg(test)]
mod tests {
    use aro_role::Issuer;

    use super::*;

    fn region() -> Vec<(String, ClusterManifests)> {
        of_region(Registry::ARO, &[], &["svc".to_owned(), "mgmt-1".to_owned(), "hive".to_owned()])
    }

    #[test]
    fn every_manifest_is_complete_and_leaves_replicas_to_the_operator() {
        let region = region();
        let clusters: Vec<&str> = region.iter().map(|(cluster, _)| cluster.as_str()).collect();
        assert_eq!(clusters, ["svc", "mgmt-1"], "no role runs on the cluster hive");
        for manifest in region.iter().flat_map(|(_, all)| all.prerequisites.iter().chain(&all.workloads)) {
            for path in ["/apiVersion", "/kind", "/metadata/name"] {
                assert!(manifest.pointer(path).is_some(), "{path} of {manifest}");
            }
            assert!(manifest.pointer("/spec/replicas").is_none());
        }
    }

    #[test]
    fn every_namespace_that_roles_run_in_is_created_once() {
        for (cluster, manifests) in region() {
            let created: Vec<&str> = manifests
                .prerequisites
                .iter()
                .filter(|object| object["kind"] == "Namespace")
                .filter_map(|object| object["metadata"]["name"].as_str())
                .collect();
            for workload in manifests.workloads {
                let Some(used) = workload.pointer("/metadata/namespace").and_then(Value::as_str) else {
                    continue;
                };
                assert_eq!(created.iter().filter(|name| **name == used).count(), 1, "{used} on {cluster}");
            }
        }
    }

    #[test]
    fn a_role_that_is_left_out_is_not_deployed() {
        let all = ["svc".to_owned(), "mgmt-1".to_owned()];
        let deployed = |without: &[String]| {
            let region = of_region(Registry::ARO, without, &all);
            let workloads = region.into_iter().flat_map(|(_, manifests)| manifests.workloads);
            workloads.filter(|object| object["kind"] == "Deployment").count()
        };
        assert_eq!(deployed(&["frontend".to_owned()]) + 1, deployed(&[]));
    }

    #[test]
    fn broker_clients_and_sources_have_certificates_of_different_authorities() {
        let by_sources: Vec<&str> = region()
            .into_iter()
            .flat_map(|(_, manifests)| manifests.certificates)
            .filter(|(_, certificate)| certificate.issuer == Issuer::Sources)
            .map(|(_, certificate)| certificate.secret)
            .collect();
        assert_eq!(by_sources, ["clusters-service-maestro-tls", "maestro-grpc-tls"]);
    }
}
