//! The routes of `Microsoft.RedHatOpenShift`, as data.

use std::sync::Arc;

use aro_arm::hcp::NAMESPACE;
use aro_arm::hcp::operation::{RESULTS, STATUSES};
use aro_arm::hcp::version::ApiVersion;
use aro_arm_server::{ResourceType, Route, TypeName, Versions};

/// Everything the frontend serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Healthz,
    Location,
    ProviderOperations,
    Subscription,
    DeploymentPreflight,
    ClustersInSubscription,
    ClustersInGroup,
    Cluster,
    RequestAdminCredential,
    RevokeCredentials,
    NodePools,
    NodePool,
    ExternalAuths,
    ExternalAuth,
    Versions,
    Version,
    RoleSets,
    RoleSet,
    OperationStatus,
    OperationResult,
}

const RESOURCE: &[&str] = &["GET", "PUT", "PATCH", "DELETE"];
const CLUSTERS: TypeName = ("hcpOpenShiftClusters", "cluster");
const LOCATIONS: TypeName = ("locations", "location");
const OPERATION: &str = "operation";

/// All routes. Every resource type is served in the same api-versions.
pub fn routes() -> Vec<Route<Endpoint, ApiVersion>> {
    let versions = ApiVersion::ALL.map(|version| (version.as_str(), version));
    let versions = Arc::new(Versions::new(NAMESPACE, CLUSTERS.0, versions));
    let in_location = |own| ResourceType::in_subscription(&versions, &[LOCATIONS], own);
    let types = [
        ResourceType::in_group(&versions, &[], CLUSTERS)
            .item(Endpoint::Cluster, RESOURCE)
            .list(Endpoint::ClustersInGroup)
            .list_in_subscription(Endpoint::ClustersInSubscription)
            .action("requestAdminCredential", Endpoint::RequestAdminCredential)
            .action("revokeCredentials", Endpoint::RevokeCredentials),
        ResourceType::in_group(&versions, &[CLUSTERS], ("nodePools", "nodepool"))
            .item(Endpoint::NodePool, RESOURCE)
            .list(Endpoint::NodePools),
        ResourceType::in_group(&versions, &[CLUSTERS], ("externalAuths", "externalauth"))
            .item(Endpoint::ExternalAuth, RESOURCE)
            .list(Endpoint::ExternalAuths),
        in_location(("hcpOpenShiftVersions", "version"))
            .item(Endpoint::Version, &["GET"])
            .list(Endpoint::Versions),
        in_location(("hcpOperatorIdentityRoleSets", "roleset"))
            .item(Endpoint::RoleSet, &["GET"])
            .list(Endpoint::RoleSets),
        in_location((STATUSES, OPERATION)).item(Endpoint::OperationStatus, &["GET"]),
        in_location((RESULTS, OPERATION)).item(Endpoint::OperationResult, &["GET"]),
    ];
    let group = "/subscriptions/{subscription}/resourceGroups/{group}";
    let preflight = format!("{group}/providers/{NAMESPACE}/deployments/{{deployment}}/preflight");
    let operations = format!("/providers/{NAMESPACE}/operations");
    let mut routes = vec![
        Route::unchecked("/healthz", Endpoint::Healthz, &["GET"]),
        Route::unchecked("/location", Endpoint::Location, &["GET"]),
        Route::unchecked(operations, Endpoint::ProviderOperations, &["GET"]),
        Route::unchecked("/subscriptions/{subscription}", Endpoint::Subscription, &["GET", "PUT"]),
        Route::unchecked(preflight, Endpoint::DeploymentPreflight, &["POST"]).in_live_subscription(),
    ];
    routes.extend(types.into_iter().flat_map(ResourceType::routes));
    routes
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use aro_arm_server::RouteTable;

    use super::*;

    const BASE: &str = "/subscriptions/S1/resourceGroups/My-RG/providers/Microsoft.RedHatOpenShift";

    #[test]
    fn every_pattern_finds_its_own_endpoint() {
        let table = RouteTable::new(routes()).unwrap();
        let mut endpoints = HashSet::new();
        for route in table.routes() {
            let path = route.pattern.replace(['{', '}'], "x");
            assert_eq!(table.find(&path).map(|(_, found)| found.endpoint), Ok(route.endpoint), "{path}");
            endpoints.insert(route.endpoint);
        }
        assert_eq!(endpoints.len(), 20, "every endpoint has one route");
    }

    #[test]
    fn words_match_in_any_case_and_names_keep_theirs() {
        let table = RouteTable::new(routes()).unwrap();
        let (_, found) =
            table.find(&format!("{BASE}/HCPOPENSHIFTCLUSTERS/My-Cluster/nodepools/NP1")).unwrap();
        assert_eq!(found.endpoint, Endpoint::NodePool);
        assert_eq!(
            found.resource_id().as_str(),
            "/subscriptions/S1/resourceGroups/My-RG/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/My-Cluster/nodePools/NP1"
        );
        assert_eq!(found.root_id().as_str(), format!("{BASE}/hcpOpenShiftClusters/My-Cluster"));
    }

    #[test]
    fn only_probes_notifications_and_the_list_of_operations_need_no_api_version() {
        let unversioned: Vec<Endpoint> =
            routes().iter().filter(|route| route.versions.is_none()).map(|route| route.endpoint).collect();
        assert_eq!(
            unversioned,
            [
                Endpoint::Healthz,
                Endpoint::Location,
                Endpoint::ProviderOperations,
                Endpoint::Subscription,
                Endpoint::DeploymentPreflight
            ]
        );
    }
}
