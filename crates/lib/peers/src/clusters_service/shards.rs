//! Provision shards: the management clusters that Clusters Service places clusters on.

use aro_ocm::ProvisionShard;
use http::Method;
use serde_json::{Value, json};

use super::{ClustersService, at};
use crate::error::CallError;

impl ClustersService {
    /// Every shard.
    pub async fn shards(&self) -> Result<Vec<ProvisionShard>, CallError> {
        self.list(&at("/provision_shards"), &[]).await
    }

    /// Registers a shard. It takes no clusters before it is active.
    pub async fn create_shard(&self, body: &Value) -> Result<ProvisionShard, CallError> {
        self.send(Method::POST, &at("/provision_shards"), body).await
    }

    /// Changes whether a shard takes clusters: `active`, `maintenance` or `offline`.
    pub async fn set_shard_status(&self, id: &str, status: &str) -> Result<ProvisionShard, CallError> {
        let body = json!({"kind": "ProvisionShard", "status": status});
        self.send(Method::PATCH, &at(&format!("/provision_shards/{id}")), &body).await
    }
}
