//! From a path to what it names. Pure; knows nothing of HTTP beyond method names.
//!
//! Literal words match without regard to case, doubled slashes collapse (az sends them), names keep the case
//! they were written in. A known path with a wrong method is told apart from an unknown path, so that the
//! answer can be 405 with `Allow` instead of 404.

use aro_arm::ResourceId;
use aro_arm::hcp::NAMESPACE;
use percent_encoding::percent_decode_str;

/// Everything the frontend serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
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

/// What is checked between routing and the handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    pub api_version: bool,
    pub subscription_state: bool,
}

impl Route {
    pub const ALL: [Self; 20] = [
        Self::Healthz,
        Self::Location,
        Self::ProviderOperations,
        Self::Subscription,
        Self::DeploymentPreflight,
        Self::ClustersInSubscription,
        Self::ClustersInGroup,
        Self::Cluster,
        Self::RequestAdminCredential,
        Self::RevokeCredentials,
        Self::NodePools,
        Self::NodePool,
        Self::ExternalAuths,
        Self::ExternalAuth,
        Self::Versions,
        Self::Version,
        Self::RoleSets,
        Self::RoleSet,
        Self::OperationStatus,
        Self::OperationResult,
    ];

    /// The methods it answers; everything else is 405.
    pub const fn methods(self) -> &'static [&'static str] {
        match self {
            Self::Subscription => &["GET", "PUT"],
            Self::Cluster | Self::NodePool | Self::ExternalAuth => &["GET", "PUT", "PATCH", "DELETE"],
            Self::DeploymentPreflight | Self::RequestAdminCredential | Self::RevokeCredentials => &["POST"],
            _ => &["GET"],
        }
    }

    /// The pattern, for metrics and the route table in the documentation.
    pub const fn pattern(self) -> &'static str {
        match self {
            Self::Healthz => "/healthz",
            Self::Location => "/location",
            Self::ProviderOperations => "/providers/microsoft.redhatopenshift/operations",
            Self::Subscription => "/subscriptions/{subscription}",
            Self::DeploymentPreflight => {
                "/subscriptions/{subscription}/resourcegroups/{group}/providers/microsoft.redhatopenshift/deployments/{deployment}/preflight"
            }
            Self::ClustersInSubscription => {
                "/subscriptions/{subscription}/providers/microsoft.redhatopenshift/hcpopenshiftclusters"
            }
            Self::ClustersInGroup => {
                "/subscriptions/{subscription}/resourcegroups/{group}/providers/microsoft.redhatopenshift/hcpopenshiftclusters"
            }
            Self::Cluster => {
                "/subscriptions/{subscription}/resourcegroups/{group}/providers/microsoft.redhatopenshift/hcpopenshiftclusters/{cluster}"
            }
            Self::RequestAdminCredential => {
                "/subscriptions/{subscription}/resourcegroups/{group}/providers/microsoft.redhatopenshift/hcpopenshiftclusters/{cluster}/requestadmincredential"
            }
            Self::RevokeCredentials => {
                "/subscriptions/{subscription}/resourcegroups/{group}/providers/microsoft.redhatopenshift/hcpopenshiftclusters/{cluster}/revokecredentials"
            }
            Self::NodePools => {
                "/subscriptions/{subscription}/resourcegroups/{group}/providers/microsoft.redhatopenshift/hcpopenshiftclusters/{cluster}/nodepools"
            }
            Self::NodePool => {
                "/subscriptions/{subscription}/resourcegroups/{group}/providers/microsoft.redhatopenshift/hcpopenshiftclusters/{cluster}/nodepools/{nodepool}"
            }
            Self::ExternalAuths => {
                "/subscriptions/{subscription}/resourcegroups/{group}/providers/microsoft.redhatopenshift/hcpopenshiftclusters/{cluster}/externalauths"
            }
            Self::ExternalAuth => {
                "/subscriptions/{subscription}/resourcegroups/{group}/providers/microsoft.redhatopenshift/hcpopenshiftclusters/{cluster}/externalauths/{externalauth}"
            }
            Self::Versions => {
                "/subscriptions/{subscription}/providers/microsoft.redhatopenshift/locations/{location}/hcpopenshiftversions"
            }
            Self::Version => {
                "/subscriptions/{subscription}/providers/microsoft.redhatopenshift/locations/{location}/hcpopenshiftversions/{version}"
            }
            Self::RoleSets => {
                "/subscriptions/{subscription}/providers/microsoft.redhatopenshift/locations/{location}/hcpoperatoridentityrolesets"
            }
            Self::RoleSet => {
                "/subscriptions/{subscription}/providers/microsoft.redhatopenshift/locations/{location}/hcpoperatoridentityrolesets/{roleset}"
            }
            Self::OperationStatus => {
                "/subscriptions/{subscription}/providers/microsoft.redhatopenshift/locations/{location}/hcpoperationstatuses/{operation}"
            }
            Self::OperationResult => {
                "/subscriptions/{subscription}/providers/microsoft.redhatopenshift/locations/{location}/hcpoperationresults/{operation}"
            }
        }
    }

    /// What must hold before the handler runs.
    pub const fn checks(self) -> Checks {
        match self {
            Self::Healthz | Self::Location | Self::ProviderOperations | Self::Subscription => {
                Checks { api_version: false, subscription_state: false }
            }
            Self::DeploymentPreflight => Checks { api_version: false, subscription_state: true },
            _ => Checks { api_version: true, subscription_state: true },
        }
    }
}

/// A path taken apart. Members that the route has not are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matched {
    pub route: Route,
    pub subscription: String,
    pub resource_group: String,
    pub location: String,
    pub cluster: String,
    /// The last name: child resource, version, role set, operation or deployment.
    pub name: String,
}

/// Why a path names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoMatch {
    Unknown,
    /// It has percent-encoding that is no text, or that hides a slash or a control character.
    Malformed,
}

/// Takes a path apart.
pub fn find(path: &str) -> Result<Matched, NoMatch> {
    let mut names = Vec::with_capacity(12);
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let name = percent_decode_str(segment).decode_utf8().map_err(|_| NoMatch::Malformed)?;
        if name.chars().any(|c| c == '/' || c.is_control()) {
            return Err(NoMatch::Malformed);
        }
        names.push(name);
        if names.len() > 12 {
            return Err(NoMatch::Unknown);
        }
    }
    let lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let at = |index: usize| names.get(index).map(|name| name.to_string()).unwrap_or_default();

    let (route, group, location, cluster, name) = match lower.as_slice() {
        ["healthz"] => (Route::Healthz, None, None, None, None),
        ["location"] => (Route::Location, None, None, None, None),
        ["providers", "microsoft.redhatopenshift", "operations"] => {
            (Route::ProviderOperations, None, None, None, None)
        }
        ["subscriptions", _] => (Route::Subscription, None, None, None, None),
        ["subscriptions", _, "providers", "microsoft.redhatopenshift", rest @ ..] => match rest {
            ["hcpopenshiftclusters"] => (Route::ClustersInSubscription, None, None, None, None),
            ["locations", _, "hcpopenshiftversions"] => (Route::Versions, None, Some(5), None, None),
            ["locations", _, "hcpopenshiftversions", _] => (Route::Version, None, Some(5), None, Some(7)),
            ["locations", _, "hcpoperatoridentityrolesets"] => (Route::RoleSets, None, Some(5), None, None),
            ["locations", _, "hcpoperatoridentityrolesets", _] => {
                (Route::RoleSet, None, Some(5), None, Some(7))
            }
            ["locations", _, "hcpoperationstatuses", _] => {
                (Route::OperationStatus, None, Some(5), None, Some(7))
            }
            ["locations", _, "hcpoperationresults", _] => {
                (Route::OperationResult, None, Some(5), None, Some(7))
            }
            _ => return Err(NoMatch::Unknown),
        },
        ["subscriptions", _, "resourcegroups", _, "providers", "microsoft.redhatopenshift", rest @ ..] => {
            match rest {
                ["deployments", _, "preflight"] => (Route::DeploymentPreflight, Some(3), None, None, Some(7)),
                ["hcpopenshiftclusters"] => (Route::ClustersInGroup, Some(3), None, None, None),
                ["hcpopenshiftclusters", _] => (Route::Cluster, Some(3), None, Some(7), None),
                ["hcpopenshiftclusters", _, "requestadmincredential"] => {
                    (Route::RequestAdminCredential, Some(3), None, Some(7), None)
                }
                ["hcpopenshiftclusters", _, "revokecredentials"] => {
                    (Route::RevokeCredentials, Some(3), None, Some(7), None)
                }
                ["hcpopenshiftclusters", _, "nodepools"] => (Route::NodePools, Some(3), None, Some(7), None),
                ["hcpopenshiftclusters", _, "nodepools", _] => {
                    (Route::NodePool, Some(3), None, Some(7), Some(9))
                }
                ["hcpopenshiftclusters", _, "externalauths"] => {
                    (Route::ExternalAuths, Some(3), None, Some(7), None)
                }
                ["hcpopenshiftclusters", _, "externalauths", _] => {
                    (Route::ExternalAuth, Some(3), None, Some(7), Some(9))
                }
                _ => return Err(NoMatch::Unknown),
            }
        }
        _ => return Err(NoMatch::Unknown),
    };
    let part = |index: Option<usize>| index.map(at).unwrap_or_default();
    let in_subscription = lower.first() == Some(&"subscriptions");
    Ok(Matched {
        route,
        subscription: part(in_subscription.then_some(1)),
        resource_group: part(group),
        location: part(location),
        cluster: part(cluster),
        name: part(name),
    })
}

impl Matched {
    /// The id of the cluster in the path: canonical words, names in the caller's case.
    pub fn cluster_id(&self) -> ResourceId {
        ResourceId::in_group(
            &self.subscription,
            &self.resource_group,
            NAMESPACE,
            &[("hcpOpenShiftClusters", &self.cluster)],
        )
    }

    /// The id of the cluster, node pool or external auth that the path names.
    pub fn resource_id(&self) -> ResourceId {
        match self.route {
            Route::NodePool => self.cluster_id().child("nodePools", &self.name),
            Route::ExternalAuth => self.cluster_id().child("externalAuths", &self.name),
            _ => self.cluster_id(),
        }
    }
}

/// Whether a resource group's name is one: 1–90 letters, digits, `_-.()`, not ending with a full stop.
pub fn is_resource_group_name(name: &str) -> bool {
    let count = name.chars().count();
    (1..=90).contains(&count)
        && !name.ends_with('.')
        && name.chars().all(|c| c.is_alphanumeric() || "_-.()".contains(c))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_path_panics_and_no_name_hides_a_slash(path in "\\PC{0,120}") {
            if let Ok(matched) = find(&path) {
                for name in [&matched.subscription, &matched.resource_group, &matched.cluster, &matched.name] {
                    prop_assert!(!name.contains('/'));
                }
            }
        }

        #[test]
        fn names_come_back_as_they_were_written(cluster in "[a-zA-Z0-9._()-]{1,60}", pool in "[a-zA-Z0-9-]{1,20}") {
            let matched = find(&format!("{BASE}/hcpOpenShiftClusters/{cluster}/NODEPOOLS/{pool}")).unwrap();
            prop_assert_eq!((matched.route, matched.cluster, matched.name), (Route::NodePool, cluster, pool));
        }
    }

    const BASE: &str = "/subscriptions/S1/resourceGroups/My-RG/providers/Microsoft.RedHatOpenShift";

    #[test]
    fn every_pattern_finds_its_own_route() {
        for route in Route::ALL {
            let path = route.pattern().replace(['{', '}'], "x");
            assert_eq!(find(&path).map(|matched| matched.route), Ok(route), "{path}");
        }
    }

    #[test]
    fn words_match_in_any_case_and_names_keep_theirs() {
        let matched = find(&format!("{BASE}/HCPOPENSHIFTCLUSTERS/My-Cluster/nodepools/NP1")).unwrap();
        assert_eq!(matched.route, Route::NodePool);
        assert_eq!(
            matched.resource_id().as_str(),
            "/subscriptions/S1/resourceGroups/My-RG/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/My-Cluster/nodePools/NP1"
        );
    }

    #[test]
    fn doubled_and_trailing_slashes_collapse_as_az_needs() {
        assert_eq!(find(&format!("{BASE}//hcpOpenShiftClusters/x/")).unwrap().route, Route::Cluster);
    }

    #[test]
    fn encoded_slashes_and_broken_encoding_are_malformed_not_guessed() {
        assert_eq!(find("/subscriptions/a%2Fb"), Err(NoMatch::Malformed));
        assert_eq!(find("/subscriptions/%FF"), Err(NoMatch::Malformed));
        assert_eq!(find("/subscriptions/a%00b"), Err(NoMatch::Malformed));
        assert_eq!(find("/nothing/here"), Err(NoMatch::Unknown));
    }

    #[test]
    fn resource_group_names_follow_arms_rule() {
        assert!(is_resource_group_name("rg_(1)-é.x"));
        for bad in ["", "ends.", "a b", "a/b", &"x".repeat(91)] {
            assert!(!is_resource_group_name(bad), "{bad}");
        }
    }
}
