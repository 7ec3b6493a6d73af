//! One file per subject; this one selects it.

mod credentials;
mod delete;
mod kind;
mod operation_views;
mod preflight;
mod provider_operations;
mod resources;
mod role_sets;
mod subscriptions;
mod versions;

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm_server::{Answer, Failure};
use http::{Method, StatusCode};

use crate::routes::Endpoint;
use crate::shared::{Request, Shared};

pub use delete::{cluster_by_cascade, mark_children};

/// Answers probes.
pub fn probe(shared: &Shared, method: &Method, path: &str) -> Option<Answer> {
    match (method, path) {
        (&Method::GET, "/healthz") => {
            shared.metrics.health.set(1);
            Some(Answer::empty(StatusCode::OK))
        }
        (&Method::GET, "/location") => Some(Answer::text(StatusCode::OK, shared.location.clone())),
        _ => None,
    }
}

/// Calls the handler of a request.
pub async fn dispatch(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    match request.matched.endpoint {
        Endpoint::Healthz => Ok(Answer::empty(StatusCode::OK)),
        Endpoint::Location => Ok(Answer::text(StatusCode::OK, shared.location.clone())),
        Endpoint::ProviderOperations => Ok(provider_operations::list()),
        Endpoint::Subscription => subscriptions::handle(shared, request).await,
        Endpoint::DeploymentPreflight => preflight::handle(shared, request).await,
        Endpoint::ClustersInSubscription | Endpoint::ClustersInGroup => {
            resources::list_clusters(shared, request).await
        }
        Endpoint::Cluster => resources::handle::<Cluster>(shared, request).await,
        Endpoint::NodePools => resources::list_children::<NodePool>(shared, request).await,
        Endpoint::NodePool => resources::handle::<NodePool>(shared, request).await,
        Endpoint::ExternalAuths => resources::list_children::<ExternalAuth>(shared, request).await,
        Endpoint::ExternalAuth => resources::handle::<ExternalAuth>(shared, request).await,
        Endpoint::RequestAdminCredential => credentials::request(shared, request).await,
        Endpoint::RevokeCredentials => credentials::revoke(shared, request).await,
        Endpoint::Versions => versions::list(shared, request).await,
        Endpoint::Version => versions::get(shared, request).await,
        Endpoint::RoleSets => role_sets::list(shared, request).await,
        Endpoint::RoleSet => role_sets::get(shared, request).await,
        Endpoint::OperationStatus => operation_views::status(shared, request).await,
        Endpoint::OperationResult => operation_views::result(shared, request).await,
    }
}
