//! Key Vaults.

use aro_arm::ResourceId;
use serde::Deserialize;
use serde_json::json;
use url::Url;
use uuid::Uuid;

use super::{Resource, Tags};
use crate::api_version::KEY_VAULT;
use crate::arm::{ArmClient, Update};
use crate::error::CloudError;

/// A Key Vault.
pub type KeyVault = Resource<KeyVaultProperties>;

/// The members of a Key Vault.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyVaultProperties {
    /// The URL of its data.
    pub vault_uri: Url,
    /// Its tenant.
    pub tenant_id: Uuid,
}

/// A Key Vault as wanted: access by roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyVaultSpec {
    /// Its region.
    pub location: String,
    /// Its tenant.
    pub tenant: Uuid,
    /// Its tags.
    pub tags: Tags,
}

impl ArmClient {
    /// Makes a Key Vault.
    pub async fn ensure_key_vault(
        &self,
        id: &ResourceId,
        spec: &KeyVaultSpec,
    ) -> Result<KeyVault, CloudError> {
        let properties = json!({
            "tenantId": spec.tenant,
            "sku": { "family": "A", "name": "standard" },
            "enableRbacAuthorization": true,
            "enableSoftDelete": true,
        });
        let wanted = json!({ "location": spec.location, "tags": spec.tags, "properties": properties });
        self.ensure_typed(id, KEY_VAULT, &wanted, Update::Overlay).await
    }

    /// Finds a Key Vault.
    pub async fn find_key_vault(&self, id: &ResourceId) -> Result<Option<KeyVault>, CloudError> {
        self.find(id, KEY_VAULT).await
    }

    /// Deletes a Key Vault; it can be recovered for some days.
    pub async fn delete_key_vault(&self, id: &ResourceId) -> Result<(), CloudError> {
        self.delete(id, KEY_VAULT).await
    }
}
