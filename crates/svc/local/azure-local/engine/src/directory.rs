//! What the engine needs from the directory and the data planes, by trait: the engine decides when identities, vaults and accounts
//! come and go, the directory and the data planes know them.

use async_trait::async_trait;

use crate::compute::IdentityFacts;

/// A federated credential of an identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FederatedCredential {
    pub name: String,
    pub issuer: String,
    pub subject: String,
    pub audiences: Vec<String>,
}

/// The directory does not answer.
#[derive(Debug, thiserror::Error)]
#[error("directory: {0}")]
pub struct DirectoryError(pub String);

/// The directory of the local cloud.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// Registers a managed identity; again with the same id it returns the same facts.
    async fn register_identity(
        &self,
        tenant: &str,
        resource_id: &str,
        name: &str,
    ) -> Result<IdentityFacts, DirectoryError>;
    /// Removes a managed identity; removing it twice is no error.
    async fn remove_identity(&self, tenant: &str, resource_id: &str) -> Result<(), DirectoryError>;
    /// Replaces the federated credentials of a managed identity.
    async fn set_federated_credentials(
        &self,
        tenant: &str,
        resource_id: &str,
        credentials: Vec<FederatedCredential>,
    ) -> Result<(), DirectoryError>;
    /// A vault or a storage account is gone: its content goes, too.
    async fn remove_content(&self, resource_id: &str, full: &str) -> Result<(), DirectoryError> {
        let _ = (resource_id, full);
        Ok(())
    }
    /// Asks the provider of a resource, a service of its own, to delete it; returns whether it is gone.
    async fn delete_forwarded(&self, resource_id: &str, api_version: &str) -> Result<bool, DirectoryError> {
        let _ = (resource_id, api_version);
        Ok(true)
    }
    /// Whether the provider of a resource, a service of its own, does not know it any more.
    async fn is_forwarded_gone(&self, resource_id: &str, api_version: &str) -> Result<bool, DirectoryError> {
        let _ = (resource_id, api_version);
        Ok(true)
    }
    /// Whether a tenant has a principal with this object id.
    async fn has_principal(&self, tenant: &str, object_id: &str) -> Result<bool, DirectoryError>;
}
