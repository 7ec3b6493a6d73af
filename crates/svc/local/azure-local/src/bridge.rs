//! The directory, the data planes and the other resource providers as the engine sees them.

use aro_azure_local_data_plane::{BlobStore, KeyVaultStore};
use aro_azure_local_directory::{Directory, DirectoryError};
use aro_azure_local_engine::{
    Directory as EngineDirectory, DirectoryError as EngineError, FederatedCredential, IdentityFacts,
};
use aro_base::chain;
use async_trait::async_trait;
use uuid::Uuid;

use crate::forward::Providers;

/// Hands the engine's calls on.
pub(crate) struct Bridge {
    pub directory: Directory,
    pub vaults: KeyVaultStore,
    pub blobs: BlobStore,
    pub providers: Providers,
}

fn failed(error: DirectoryError) -> EngineError {
    EngineError(chain(&error).to_string())
}

fn guid(text: &str) -> Result<Uuid, EngineError> {
    Uuid::try_parse(text).map_err(|error| EngineError(format!("`{text}` is not a GUID: {error}")))
}

#[async_trait]
impl EngineDirectory for Bridge {
    async fn register_identity(
        &self,
        tenant: &str,
        resource_id: &str,
        name: &str,
    ) -> Result<IdentityFacts, EngineError> {
        let identity =
            self.directory.register_identity(guid(tenant)?, resource_id, name).await.map_err(failed)?;
        Ok(IdentityFacts {
            principal_id: identity.principal_id.to_string(),
            client_id: identity.client_id.to_string(),
        })
    }

    async fn remove_identity(&self, tenant: &str, resource_id: &str) -> Result<(), EngineError> {
        self.directory.remove_identity(guid(tenant)?, resource_id).await.map_err(failed)
    }

    async fn set_federated_credentials(
        &self,
        tenant: &str,
        resource_id: &str,
        credentials: Vec<FederatedCredential>,
    ) -> Result<(), EngineError> {
        let Some(identity) = self.directory.find_identity(guid(tenant)?, resource_id) else { return Ok(()) };
        let credentials =
            credentials.into_iter().map(|credential| aro_azure_local_directory::FederatedCredential {
                name: credential.name,
                issuer: credential.issuer,
                subject: credential.subject,
                audiences: credential.audiences,
            });
        self.directory.set_federated_credentials(identity.app_id, credentials.collect()).await.map_err(failed)
    }

    async fn remove_content(&self, resource_id: &str, full: &str) -> Result<(), EngineError> {
        let removed = match full {
            "Microsoft.KeyVault/vaults" => self.vaults.remove_vault(resource_id).await,
            "Microsoft.Storage/storageAccounts" => self.blobs.remove_account(resource_id).await,
            _ => return Ok(()),
        };
        removed.map_err(|error| EngineError(chain(&error).to_string()))
    }

    async fn delete_forwarded(&self, resource_id: &str, api_version: &str) -> Result<bool, EngineError> {
        self.providers.delete(resource_id, api_version).await.map_err(EngineError)
    }

    async fn is_forwarded_gone(&self, resource_id: &str, api_version: &str) -> Result<bool, EngineError> {
        self.providers.is_gone(resource_id, api_version).await.map_err(EngineError)
    }

    async fn has_principal(&self, tenant: &str, object_id: &str) -> Result<bool, EngineError> {
        let Ok(object_id) = Uuid::try_parse(object_id) else { return Ok(false) };
        Ok(self.directory.find_principal(guid(tenant)?, object_id).is_some())
    }
}
