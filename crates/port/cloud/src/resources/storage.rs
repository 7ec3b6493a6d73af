//! Storage accounts.

use aro_arm::ResourceId;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::{Resource, Tags};
use crate::api_version::STORAGE;
use crate::arm::{ArmClient, Update};
use crate::error::{CloudError, Failure};

/// A storage account.
pub type StorageAccount = Resource<StorageAccountProperties>;

/// The members of a storage account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageAccountProperties {
    /// The URLs of its services.
    pub primary_endpoints: Option<StorageEndpoints>,
}

/// The URLs of a storage account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StorageEndpoints {
    /// Blobs.
    pub blob: Option<Url>,
    /// The static website.
    pub web: Option<Url>,
}

/// A storage account as wanted: version 2, TLS 1.2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageAccountSpec {
    /// Its region.
    pub location: String,
    /// How it is replicated, e.g. `Standard_LRS`.
    pub sku: String,
    /// Whether its keys may be used besides tokens.
    pub shared_keys: bool,
    /// Its tags.
    pub tags: Tags,
}

impl ArmClient {
    /// Makes a storage account.
    pub async fn ensure_storage_account(
        &self,
        id: &ResourceId,
        spec: &StorageAccountSpec,
    ) -> Result<StorageAccount, CloudError> {
        let wanted = json!({
            "location": spec.location,
            "kind": "StorageV2",
            "sku": { "name": spec.sku },
            "tags": spec.tags,
            "properties": {
                "minimumTlsVersion": "TLS1_2",
                "supportsHttpsTrafficOnly": true,
                "allowBlobPublicAccess": false,
                "allowSharedKeyAccess": spec.shared_keys,
            },
        });
        self.ensure_typed(id, STORAGE, &wanted, Update::Replace).await
    }

    /// Finds a storage account.
    pub async fn find_storage_account(&self, id: &ResourceId) -> Result<Option<StorageAccount>, CloudError> {
        self.find(id, STORAGE).await
    }

    /// The URL of an account's blobs.
    pub async fn blob_endpoint(&self, id: &ResourceId) -> Result<Url, CloudError> {
        let account: StorageAccount = self.get(id, STORAGE).await?;
        let endpoint = account.properties.primary_endpoints.and_then(|endpoints| endpoints.blob);
        endpoint.ok_or_else(|| self.problem(id, Failure::Protocol("the account has no blob endpoint")))
    }

    /// Makes a container for blobs.
    pub async fn ensure_blob_container(&self, account: &ResourceId, name: &str) -> Result<(), CloudError> {
        let id = account.child("blobServices", "default").child("containers", name);
        self.ensure(&id, STORAGE, &json!({ "properties": {} }), Update::Replace).await.map(drop)
    }

    /// Deletes a storage account.
    pub async fn delete_storage_account(&self, id: &ResourceId) -> Result<(), CloudError> {
        self.delete(id, STORAGE).await
    }
}
