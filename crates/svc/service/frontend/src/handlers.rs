//! One file per subject; this one only says which.

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
use http::{Method, StatusCode};

use crate::answer::Answer;
use crate::error::Failure;
use crate::route::Route;
use crate::shared::{Request, Shared};

pub use delete::{cluster_by_cascade, mark_children};

/// Probes, which are not ARM traffic.
pub fn plain(shared: &Shared, parts: &http::request::Parts) -> Option<Answer> {
    match (&parts.method, parts.uri.path()) {
        (&Method::GET, "/healthz") => {
            shared.observer.health.set(1);
            Some(Answer::empty(StatusCode::OK))
        }
        (&Method::GET, "/location") => Some(Answer::text(StatusCode::OK, shared.location.clone())),
        _ => None,
    }
}

/// Hands a request to its subject.
pub async fn dispatch(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    match request.matched.route {
        Route::Healthz => Ok(Answer::empty(StatusCode::OK)),
        Route::Location => Ok(Answer::text(StatusCode::OK, shared.location.clone())),
        Route::ProviderOperations => Ok(provider_operations::list()),
        Route::Subscription => subscriptions::handle(shared, request).await,
        Route::DeploymentPreflight => preflight::handle(shared, request).await,
        Route::ClustersInSubscription | Route::ClustersInGroup => {
            resources::list_clusters(shared, request).await
        }
        Route::Cluster => resources::handle::<Cluster>(shared, request).await,
        Route::NodePools => resources::list_children::<NodePool>(shared, request).await,
        Route::NodePool => resources::handle::<NodePool>(shared, request).await,
        Route::ExternalAuths => resources::list_children::<ExternalAuth>(shared, request).await,
        Route::ExternalAuth => resources::handle::<ExternalAuth>(shared, request).await,
        Route::RequestAdminCredential => credentials::request(shared, request).await,
        Route::RevokeCredentials => credentials::revoke(shared, request).await,
        Route::Versions => versions::list(shared, request).await,
        Route::Version => versions::get(shared, request).await,
        Route::RoleSets => role_sets::list(shared, request).await,
        Route::RoleSet => role_sets::get(shared, request).await,
        Route::OperationStatus => operation_views::status(shared, request).await,
        Route::OperationResult => operation_views::result(shared, request).await,
    }
}
