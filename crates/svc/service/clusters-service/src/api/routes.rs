//! The routes, as a table: dispatch, metrics and the OpenAPI document follow from it.

use aro_ocm::wire::{Described as _, Shape};
use aro_ocm::{
    ApiMetadata, BreakGlassCredential, Cluster, ClusterAutoscaler, ClusterResources, ClusterStatus,
    DeleteProtection, ExternalAuth, ExternalAuthConfig, HypershiftConfig, InflightCheck,
    ManagedIdentitiesRequirements, NodePool, NodePoolStatus, ProvisionShard, Root, UpgradePolicy, Version,
    event,
};
use http::Method;

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Metadata,
    OpenApi,
    ListClusters,
    CreateCluster,
    GetCluster,
    UpdateCluster,
    DeleteCluster,
    ClusterStatus,
    ClusterShard,
    ClusterResources,
    GetAutoscaler,
    UpdateAutoscaler,
    GetDeleteProtection,
    SetDeleteProtection,
    Hypershift,
    Credentials,
    ListChecks,
    GetCheck,
    ListPolicies,
    CreatePolicy,
    GetPolicy,
    UpdatePolicy,
    DeletePolicy,
    ListPools,
    CreatePool,
    GetPool,
    UpdatePool,
    DeletePool,
    PoolStatus,
    ListPoolPolicies,
    CreatePoolPolicy,
    GetPoolPolicy,
    UpdatePoolPolicy,
    DeletePoolPolicy,
    ExternalAuthConfig,
    ListAuths,
    CreateAuth,
    GetAuth,
    UpdateAuth,
    DeleteAuth,
    ListCredentials,
    CreateCredential,
    RevokeCredentials,
    GetCredential,
    ListVersions,
    GetVersion,
    IdentityRequirements,
    ListShards,
    CreateShard,
    GetShard,
    UpdateShard,
    DeleteShard,
    /// A mutation that is refused on this root.
    Refused,
}

/// The method of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Post,
    Patch,
    Delete,
}

impl Verb {
    /// The verb of a method; HEAD is a GET.
    fn of(method: &Method) -> Option<Self> {
        match *method {
            Method::GET | Method::HEAD => Some(Self::Get),
            Method::POST => Some(Self::Post),
            Method::PATCH => Some(Self::Patch),
            Method::DELETE => Some(Self::Delete),
            _ => None,
        }
    }

    /// As OpenAPI writes it.
    pub(super) const fn lower(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

/// What a route answers with.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    Nothing,
    One(&'static Shape),
    List(&'static Shape),
    Free,
}

/// A route below one or both roots.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) verb: Verb,
    pub(super) roots: &'static [Root],
    /// The path below the root, with `{…}` for variable segments.
    pub(super) path: &'static str,
    pub(super) action: Action,
    pub(super) body: Option<&'static Shape>,
    pub(super) status: u16,
    pub(super) answer: Answer,
}

const BOTH: &[Root] = &Root::ALL;
const ARO: &[Root] = &[Root::AroHcp];
const V1: &[Root] = &[Root::ClustersMgmt];

const fn get(roots: &'static [Root], path: &'static str, action: Action, answer: Answer) -> Route {
    Route { verb: Verb::Get, roots, path, action, body: None, status: 200, answer }
}

const fn post(path: &'static str, action: Action, shape: &'static Shape, status: u16) -> Route {
    Route {
        verb: Verb::Post,
        roots: ARO,
        path,
        action,
        body: Some(shape),
        status,
        answer: Answer::One(shape),
    }
}

const fn patch(path: &'static str, action: Action, shape: &'static Shape, status: u16) -> Route {
    Route {
        verb: Verb::Patch,
        roots: ARO,
        path,
        action,
        body: Some(shape),
        status,
        answer: Answer::One(shape),
    }
}

const fn delete(path: &'static str, action: Action, status: u16) -> Route {
    Route { verb: Verb::Delete, roots: ARO, path, action, body: None, status, answer: Answer::Nothing }
}

const fn under(roots: &'static [Root], route: Route) -> Route {
    Route { roots, ..route }
}

const fn refused(verb: Verb, path: &'static str) -> Route {
    Route { verb, roots: V1, path, action: Action::Refused, body: None, status: 400, answer: Answer::Nothing }
}

use Action as A;
use Answer::{Free, List, One};

const CLUSTER: &str = "/clusters/{cluster_id}";
const POOLS: &str = "/clusters/{cluster_id}/node_pools";
const POOL: &str = "/clusters/{cluster_id}/node_pools/{node_pool_id}";
const POLICIES: &str = "/clusters/{cluster_id}/control_plane_upgrade_policies";
const POLICY: &str = "/clusters/{cluster_id}/control_plane_upgrade_policies/{upgrade_policy_id}";
const POLICIES_V1: &str = "/clusters/{cluster_id}/control_plane/upgrade_policies";
const POLICY_V1: &str = "/clusters/{cluster_id}/control_plane/upgrade_policies/{upgrade_policy_id}";
const POOL_POLICIES: &str = "/clusters/{cluster_id}/node_pools/{node_pool_id}/upgrade_policies";
const POOL_POLICY: &str =
    "/clusters/{cluster_id}/node_pools/{node_pool_id}/upgrade_policies/{upgrade_policy_id}";
const AUTHS: &str = "/clusters/{cluster_id}/external_auth_config/external_auths";
const AUTH: &str = "/clusters/{cluster_id}/external_auth_config/external_auths/{external_auth_id}";
const CREDENTIALS: &str = "/clusters/{cluster_id}/break_glass_credentials";
const CREDENTIAL: &str = "/clusters/{cluster_id}/break_glass_credentials/{break_glass_credential_id}";
const PROTECTION: &str = "/clusters/{cluster_id}/delete_protection";
const SHARDS: &str = "/provision_shards";
const SHARD: &str = "/provision_shards/{provision_shard_id}";

/// All routes.
pub(super) static ROUTES: &[Route] = &[
    get(BOTH, "", A::Metadata, One(ApiMetadata::SHAPE)),
    get(BOTH, "/openapi", A::OpenApi, Free),
    get(BOTH, "/clusters", A::ListClusters, List(Cluster::SHAPE)),
    post("/clusters", A::CreateCluster, Cluster::SHAPE, 202),
    get(BOTH, CLUSTER, A::GetCluster, One(Cluster::SHAPE)),
    patch(CLUSTER, A::UpdateCluster, Cluster::SHAPE, 202),
    delete(CLUSTER, A::DeleteCluster, 202),
    refused(Verb::Post, "/clusters"),
    refused(Verb::Patch, CLUSTER),
    refused(Verb::Delete, CLUSTER),
    get(BOTH, "/clusters/{cluster_id}/status", A::ClusterStatus, One(ClusterStatus::SHAPE)),
    get(BOTH, "/clusters/{cluster_id}/provision_shard", A::ClusterShard, One(ProvisionShard::SHAPE)),
    get(BOTH, "/clusters/{cluster_id}/resources", A::ClusterResources, One(ClusterResources::SHAPE)),
    get(V1, "/clusters/{cluster_id}/resources/live", A::ClusterResources, One(ClusterResources::SHAPE)),
    get(BOTH, "/clusters/{cluster_id}/autoscaler", A::GetAutoscaler, One(ClusterAutoscaler::SHAPE)),
    patch("/clusters/{cluster_id}/autoscaler", A::UpdateAutoscaler, ClusterAutoscaler::SHAPE, 200),
    refused(Verb::Patch, "/clusters/{cluster_id}/autoscaler"),
    get(V1, PROTECTION, A::GetDeleteProtection, One(DeleteProtection::SHAPE)),
    under(V1, patch(PROTECTION, A::SetDeleteProtection, DeleteProtection::SHAPE, 200)),
    get(V1, "/clusters/{cluster_id}/hypershift", A::Hypershift, One(HypershiftConfig::SHAPE)),
    get(V1, "/clusters/{cluster_id}/credentials", A::Credentials, Free),
    get(BOTH, "/clusters/{cluster_id}/inflight_checks", A::ListChecks, List(InflightCheck::SHAPE)),
    get(
        BOTH,
        "/clusters/{cluster_id}/inflight_checks/{inflight_check_id}",
        A::GetCheck,
        One(InflightCheck::SHAPE),
    ),
    get(ARO, POLICIES, A::ListPolicies, List(UpgradePolicy::SHAPE)),
    post(POLICIES, A::CreatePolicy, UpgradePolicy::SHAPE, 201),
    get(ARO, POLICY, A::GetPolicy, One(UpgradePolicy::SHAPE)),
    patch(POLICY, A::UpdatePolicy, UpgradePolicy::SHAPE, 200),
    delete(POLICY, A::DeletePolicy, 204),
    get(V1, POLICIES_V1, A::ListPolicies, List(UpgradePolicy::SHAPE)),
    under(V1, post(POLICIES_V1, A::CreatePolicy, UpgradePolicy::SHAPE, 201)),
    get(V1, POLICY_V1, A::GetPolicy, One(UpgradePolicy::SHAPE)),
    under(V1, patch(POLICY_V1, A::UpdatePolicy, UpgradePolicy::SHAPE, 200)),
    under(V1, delete(POLICY_V1, A::DeletePolicy, 204)),
    get(BOTH, POOLS, A::ListPools, List(NodePool::SHAPE)),
    post(POOLS, A::CreatePool, NodePool::SHAPE, 202),
    get(BOTH, POOL, A::GetPool, One(NodePool::SHAPE)),
    patch(POOL, A::UpdatePool, NodePool::SHAPE, 202),
    delete(POOL, A::DeletePool, 202),
    refused(Verb::Post, POOLS),
    refused(Verb::Patch, POOL),
    refused(Verb::Delete, POOL),
    get(
        BOTH,
        "/clusters/{cluster_id}/node_pools/{node_pool_id}/status",
        A::PoolStatus,
        One(NodePoolStatus::SHAPE),
    ),
    get(BOTH, POOL_POLICIES, A::ListPoolPolicies, List(UpgradePolicy::SHAPE)),
    under(BOTH, post(POOL_POLICIES, A::CreatePoolPolicy, UpgradePolicy::SHAPE, 201)),
    get(BOTH, POOL_POLICY, A::GetPoolPolicy, One(UpgradePolicy::SHAPE)),
    under(BOTH, patch(POOL_POLICY, A::UpdatePoolPolicy, UpgradePolicy::SHAPE, 200)),
    under(BOTH, delete(POOL_POLICY, A::DeletePoolPolicy, 204)),
    get(
        BOTH,
        "/clusters/{cluster_id}/external_auth_config",
        A::ExternalAuthConfig,
        One(ExternalAuthConfig::SHAPE),
    ),
    get(BOTH, AUTHS, A::ListAuths, List(ExternalAuth::SHAPE)),
    post(AUTHS, A::CreateAuth, ExternalAuth::SHAPE, 202),
    get(BOTH, AUTH, A::GetAuth, One(ExternalAuth::SHAPE)),
    patch(AUTH, A::UpdateAuth, ExternalAuth::SHAPE, 202),
    delete(AUTH, A::DeleteAuth, 202),
    refused(Verb::Post, AUTHS),
    refused(Verb::Patch, AUTH),
    refused(Verb::Delete, AUTH),
    get(V1, CREDENTIALS, A::ListCredentials, List(BreakGlassCredential::SHAPE)),
    under(V1, post(CREDENTIALS, A::CreateCredential, BreakGlassCredential::SHAPE, 201)),
    under(V1, delete(CREDENTIALS, A::RevokeCredentials, 204)),
    get(V1, CREDENTIAL, A::GetCredential, One(BreakGlassCredential::SHAPE)),
    get(BOTH, "/versions", A::ListVersions, List(Version::SHAPE)),
    get(BOTH, "/versions/{version_id}", A::GetVersion, One(Version::SHAPE)),
    get(
        ARO,
        "/managed_identities_requirements",
        A::IdentityRequirements,
        One(ManagedIdentitiesRequirements::SHAPE),
    ),
    get(BOTH, SHARDS, A::ListShards, List(ProvisionShard::SHAPE)),
    under(BOTH, post(SHARDS, A::CreateShard, ProvisionShard::SHAPE, 201)),
    get(BOTH, SHARD, A::GetShard, One(ProvisionShard::SHAPE)),
    under(BOTH, patch(SHARD, A::UpdateShard, ProvisionShard::SHAPE, 200)),
    under(BOTH, delete(SHARD, A::DeleteShard, 204)),
];

/// Where a request leads.
#[derive(Debug)]
pub(super) enum Routed {
    Route { route: &'static Route, root: Root, params: Vec<String> },
    Events,
    Apis,
    NoMethod { path: &'static str },
    Unknown,
}

impl Routed {
    /// The path as metrics and logs show it.
    pub(super) fn template(&self) -> &'static str {
        match self {
            Self::Route { route, .. } => route.path,
            Self::Events => event::PATH,
            Self::Apis => "/api/clusters_mgmt",
            Self::NoMethod { path } => path,
            Self::Unknown => "other",
        }
    }

    /// The root that errors are reported for.
    pub(super) fn root(&self) -> Root {
        match self {
            Self::Route { root, .. } => *root,
            _ => Root::ClustersMgmt,
        }
    }

    /// The cluster that the path names.
    pub(super) fn cluster(&self) -> Option<&str> {
        match self {
            Self::Route { route, params, .. } if route.path.starts_with(CLUSTER) => {
                params.first().map(String::as_str)
            }
            _ => None,
        }
    }
}

/// Finds the route of a path; empty segments were left out before, since clients double slashes.
pub(super) fn find(method: &Method, segments: &[String]) -> Routed {
    let path: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (root, rest) = match path.as_slice() {
        ["api", "aro_hcp", "v1alpha1", rest @ ..] => (Root::AroHcp, rest),
        ["api", "clusters_mgmt", "v1", rest @ ..] => (Root::ClustersMgmt, rest),
        ["api", "clusters_mgmt"] => return Routed::Apis,
        ["api", "aro", "v1", "events"] => return Routed::Events,
        _ => return Routed::Unknown,
    };
    let mut known = None;
    for route in ROUTES.iter().filter(|route| route.roots.contains(&root)) {
        let Some(params) = matched(route.path, rest) else { continue };
        if Verb::of(method) == Some(route.verb) {
            return Routed::Route { route, root, params };
        }
        known = Some(route.path);
    }
    known.map_or(Routed::Unknown, |path| Routed::NoMethod { path })
}

fn matched(template: &str, segments: &[&str]) -> Option<Vec<String>> {
    let mut params = Vec::new();
    let mut segments = segments.iter();
    for part in template.split('/').filter(|part| !part.is_empty()) {
        let segment = segments.next()?;
        if part.starts_with('{') {
            params.push((*segment).to_owned());
        } else if part != *segment {
            return None;
        }
    }
    segments.next().is_none().then_some(params)
}
