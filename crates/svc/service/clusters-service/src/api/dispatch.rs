//! From an action to its handler.

use aro_ocm::Code;
use http::StatusCode;

use super::call::Call;
use super::reply::{Failure, Reply};
use super::routes::Action;
use super::{
    Api, checks, clusters, credentials, external_auths, node_pools, openapi, policies, requirements, shards,
    versions,
};

pub(super) async fn run(api: &Api, action: Action, call: Call<'_>) -> Result<Reply, Failure> {
    match action {
        Action::Metadata => versions::metadata(&call),
        Action::OpenApi => openapi::document(call.root),
        Action::ListClusters => clusters::list(api, &call).await,
        Action::CreateCluster => clusters::create(api, &call).await,
        Action::GetCluster => clusters::get(api, &call).await,
        Action::UpdateCluster => clusters::update(api, &call).await,
        Action::DeleteCluster => clusters::delete(api, &call).await,
        Action::ClusterStatus => clusters::status(api, &call).await,
        Action::ClusterShard => shards::of_cluster(api, &call).await,
        Action::ClusterResources => clusters::resources(api, &call).await,
        Action::GetAutoscaler => clusters::autoscaler(api, &call).await,
        Action::UpdateAutoscaler => clusters::update_autoscaler(api, &call).await,
        Action::GetDeleteProtection => clusters::delete_protection(api, &call).await,
        Action::SetDeleteProtection => clusters::set_delete_protection(api, &call).await,
        Action::Hypershift => clusters::hypershift(api, &call).await,
        Action::Credentials => {
            let reason =
                "credentials of this kind are not offered for ARO clusters, use 'break_glass_credentials'";
            Err(Failure::new(StatusCode::NOT_FOUND, Code::NotSupported, reason))
        }
        Action::ListChecks => checks::list(api, &call).await,
        Action::GetCheck => checks::get(api, &call).await,
        Action::ListPolicies | Action::ListPoolPolicies => policies::list(api, &call).await,
        Action::CreatePolicy | Action::CreatePoolPolicy => policies::create(api, &call).await,
        Action::GetPolicy | Action::GetPoolPolicy => policies::get(api, &call).await,
        Action::UpdatePolicy | Action::UpdatePoolPolicy => policies::update(api, &call).await,
        Action::DeletePolicy | Action::DeletePoolPolicy => policies::delete(api, &call).await,
        Action::ListPools => node_pools::list(api, &call).await,
        Action::CreatePool => node_pools::create(api, &call).await,
        Action::GetPool => node_pools::get(api, &call).await,
        Action::UpdatePool => node_pools::update(api, &call).await,
        Action::DeletePool => node_pools::delete(api, &call).await,
        Action::PoolStatus => node_pools::status(api, &call).await,
        Action::ExternalAuthConfig => external_auths::config(api, &call).await,
        Action::ListAuths => external_auths::list(api, &call).await,
        Action::CreateAuth => external_auths::create(api, &call).await,
        Action::GetAuth => external_auths::get(api, &call).await,
        Action::UpdateAuth => external_auths::update(api, &call).await,
        Action::DeleteAuth => external_auths::delete(api, &call).await,
        Action::ListCredentials => credentials::list(api, &call).await,
        Action::CreateCredential => credentials::create(api, &call).await,
        Action::RevokeCredentials => credentials::revoke(api, &call).await,
        Action::GetCredential => credentials::get(api, &call).await,
        Action::ListVersions => versions::list(api, &call),
        Action::GetVersion => versions::get(api, &call),
        Action::IdentityRequirements => requirements::get(&call),
        Action::ListShards => shards::list(api, &call).await,
        Action::CreateShard => shards::create(api, &call).await,
        Action::GetShard => shards::get(api, &call).await,
        Action::UpdateShard => shards::update(api, &call).await,
        Action::DeleteShard => shards::delete(api, &call).await,
        Action::Refused => Err(Failure::new(
            StatusCode::BAD_REQUEST,
            Code::NotSupported,
            "ARO-HCP cluster operations must use the ARO-HCP endpoint '/api/aro_hcp/v1alpha1'",
        )),
    }
}
