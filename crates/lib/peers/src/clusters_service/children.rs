//! Node pools and external auths.

use aro_ocm::{
    ClusterId, ExternalAuth, ExternalAuthId, Href, List, NodePool, NodePoolId, Root, UpgradePolicy,
};
use http::Method;
use serde_json::{Value, json};

use super::clusters::cluster;
use super::{ClustersService, with_query};
use crate::error::CallError;

impl ClustersService {
    /// Creates a node pool.
    pub async fn create_node_pool(&self, id: &ClusterId, body: &Value) -> Result<NodePool, CallError> {
        self.send(Method::POST, &format!("{}/node_pools", cluster(id)), body).await
    }

    /// Reads a node pool with its status.
    pub async fn find_node_pool(
        &self,
        id: &ClusterId,
        pool: &NodePoolId,
    ) -> Result<Option<NodePool>, CallError> {
        self.find(&node_pool(id, pool)).await
    }

    /// Changes a node pool.
    pub async fn update_node_pool(
        &self,
        id: &ClusterId,
        pool: &NodePoolId,
        body: &Value,
    ) -> Result<NodePool, CallError> {
        self.send(Method::PATCH, &node_pool(id, pool), body).await
    }

    /// Deletes a node pool; `false` if there is none.
    pub async fn delete_node_pool(&self, id: &ClusterId, pool: &NodePoolId) -> Result<bool, CallError> {
        self.delete(&node_pool(id, pool)).await
    }

    /// The upgrade of a node pool that was asked for last.
    pub async fn latest_node_pool_upgrade(
        &self,
        id: &ClusterId,
        pool: &NodePoolId,
    ) -> Result<Option<UpgradePolicy>, CallError> {
        let query = [("order", "creation_timestamp desc"), ("page", "1"), ("size", "1")];
        let path = format!("{}/upgrade_policies", node_pool(id, pool));
        let listed: List<_> = self.get(&with_query(&path, query)).await?;
        Ok(listed.items.into_iter().next())
    }

    /// Asks for an upgrade of a node pool to a release.
    pub async fn upgrade_node_pool(
        &self,
        id: &ClusterId,
        pool: &NodePoolId,
        version: &str,
    ) -> Result<UpgradePolicy, CallError> {
        let body = json!({"kind": "NodePoolUpgradePolicy", "version": version});
        self.send(Method::POST, &format!("{}/upgrade_policies", node_pool(id, pool)), &body).await
    }

    /// Creates an external auth.
    pub async fn create_external_auth(
        &self,
        id: &ClusterId,
        body: &Value,
    ) -> Result<ExternalAuth, CallError> {
        self.send(Method::POST, &format!("{}/external_auth_config/external_auths", cluster(id)), body).await
    }

    /// Reads an external auth with its status.
    pub async fn find_external_auth(
        &self,
        id: &ClusterId,
        auth: &ExternalAuthId,
    ) -> Result<Option<ExternalAuth>, CallError> {
        self.find(&external_auth(id, auth)).await
    }

    /// Changes an external auth.
    pub async fn update_external_auth(
        &self,
        id: &ClusterId,
        auth: &ExternalAuthId,
        body: &Value,
    ) -> Result<ExternalAuth, CallError> {
        self.send(Method::PATCH, &external_auth(id, auth), body).await
    }

    /// Deletes an external auth; `false` if there is none.
    pub async fn delete_external_auth(
        &self,
        id: &ClusterId,
        auth: &ExternalAuthId,
    ) -> Result<bool, CallError> {
        self.delete(&external_auth(id, auth)).await
    }
}

fn node_pool(id: &ClusterId, pool: &NodePoolId) -> String {
    Href::NodePool(id.clone(), pool.clone()).under(Root::AroHcp)
}

fn external_auth(id: &ClusterId, auth: &ExternalAuthId) -> String {
    Href::ExternalAuth(id.clone(), auth.clone()).under(Root::AroHcp)
}
