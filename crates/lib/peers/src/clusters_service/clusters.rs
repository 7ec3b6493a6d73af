//! Clusters, their checks and credentials, and the catalogue of versions.

use aro_ocm::{BreakGlassCredential, Cluster, ClusterId, CredentialId, Href, InflightCheck, Root, Version};
use http::Method;
use serde_json::{Value, json};

use super::{ClustersService, at, with_query};
use crate::error::CallError;

impl ClustersService {
    /// Creates a cluster.
    pub async fn create_cluster(&self, body: &Value) -> Result<Cluster, CallError> {
        self.send(Method::POST, &at("/clusters"), body).await
    }

    /// Asks whether a cluster would be created, and creates nothing.
    pub async fn check_cluster(&self, body: &Value) -> Result<(), CallError> {
        let path = at("/clusters?dryRun=true");
        self.exchange(Method::POST, &path, Some(body), self.deadline).await.map(drop)
    }

    /// Reads a cluster with its status.
    pub async fn find_cluster(&self, id: &ClusterId) -> Result<Option<Cluster>, CallError> {
        self.find(&cluster(id)).await
    }

    /// Clusters that a search finds; all of them without one. Oldest first.
    pub async fn clusters(&self, search: Option<&str>) -> Result<Vec<Cluster>, CallError> {
        let query: Vec<(&str, &str)> = search.map(|search| ("search", search)).into_iter().collect();
        self.list(&at("/clusters"), &query).await
    }

    /// Changes a cluster.
    pub async fn update_cluster(&self, id: &ClusterId, body: &Value) -> Result<Cluster, CallError> {
        self.send(Method::PATCH, &cluster(id), body).await
    }

    /// Deletes a cluster with everything in it; `false` if there is none.
    pub async fn delete_cluster(&self, id: &ClusterId) -> Result<bool, CallError> {
        self.delete(&cluster(id)).await
    }

    /// The checks that run before anything is made for a cluster.
    pub async fn inflight_checks(&self, id: &ClusterId) -> Result<Vec<InflightCheck>, CallError> {
        self.list(&format!("{}/inflight_checks", cluster(id)), &[]).await
    }

    /// Every release on offer, and those that are not offered any longer.
    pub async fn versions(&self) -> Result<Vec<Version>, CallError> {
        self.list(&at("/versions"), &[]).await
    }

    /// Asks for an administrator's credential.
    pub async fn create_credential(&self, id: &ClusterId) -> Result<BreakGlassCredential, CallError> {
        self.send(Method::POST, &credentials(id), &json!({"kind": "BreakGlassCredential"})).await
    }

    /// Reads an administrator's credential.
    pub async fn find_credential(
        &self,
        id: &ClusterId,
        credential: &CredentialId,
    ) -> Result<Option<BreakGlassCredential>, CallError> {
        self.find(&Href::Credential(id.clone(), credential.clone()).under(Root::ClustersMgmt)).await
    }

    /// Revokes all credentials of a cluster; `false` if there is no such cluster.
    pub async fn revoke_credentials(&self, id: &ClusterId) -> Result<bool, CallError> {
        self.delete(&credentials(id)).await
    }

    /// The upgrade of a control plane that was asked for last.
    pub async fn latest_upgrade(&self, id: &ClusterId) -> Result<Option<aro_ocm::UpgradePolicy>, CallError> {
        let query = [("order", "creation_timestamp desc"), ("page", "1"), ("size", "1")];
        let path = format!("{}/control_plane_upgrade_policies", cluster(id));
        let listed: aro_ocm::List<_> = self.get(&with_query(&path, query)).await?;
        Ok(listed.items.into_iter().next())
    }

    /// Asks for an upgrade of a control plane to a release.
    pub async fn upgrade(&self, id: &ClusterId, version: &str) -> Result<aro_ocm::UpgradePolicy, CallError> {
        let body = json!({"kind": "ControlPlaneUpgradePolicy", "version": version});
        self.send(Method::POST, &format!("{}/control_plane_upgrade_policies", cluster(id)), &body).await
    }
}

pub(super) fn cluster(id: &ClusterId) -> String {
    Href::Cluster(id.clone()).under(Root::AroHcp)
}

fn credentials(id: &ClusterId) -> String {
    format!("{}/break_glass_credentials", Href::Cluster(id.clone()).under(Root::ClustersMgmt))
}
