//! User-assigned identities and their federated credentials.

use aro_arm::ResourceId;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{Resource, Tags};
use crate::api_version::IDENTITY;
use crate::arm::{ArmClient, Update};
use crate::error::CloudError;

/// The audience of tokens that are exchanged for those of an identity.
pub const TOKEN_EXCHANGE: &str = "api://AzureADTokenExchange";

/// A user-assigned identity.
pub type Identity = Resource<IdentityProperties>;
/// A federated credential of an identity.
pub type FederatedCredential = Resource<FederatedCredentialProperties>;

/// The members of a user-assigned identity.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdentityProperties {
    /// Its tenant.
    pub tenant_id: Uuid,
    /// The id that roles are assigned to.
    pub principal_id: Uuid,
    /// The id that it signs in with.
    pub client_id: Uuid,
}

/// The members of a federated credential.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FederatedCredentialProperties {
    /// The issuer whose tokens are taken.
    pub issuer: String,
    /// The subject of the tokens.
    pub subject: String,
    /// Their audiences.
    #[serde(default)]
    pub audiences: Vec<String>,
}

/// A federated credential as wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FederatedCredentialSpec {
    /// The issuer whose tokens are taken.
    pub issuer: String,
    /// The subject of the tokens.
    pub subject: String,
    /// Their audience, usually [`TOKEN_EXCHANGE`].
    pub audience: String,
}

impl FederatedCredentialSpec {
    /// A service account of a cluster.
    pub fn service_account(issuer: &str, namespace: &str, name: &str) -> Self {
        let subject = format!("system:serviceaccount:{namespace}:{name}");
        Self { issuer: issuer.to_owned(), subject, audience: TOKEN_EXCHANGE.to_owned() }
    }
}

impl ArmClient {
    /// Makes a user-assigned identity.
    pub async fn ensure_identity(
        &self,
        id: &ResourceId,
        location: &str,
        tags: &Tags,
    ) -> Result<Identity, CloudError> {
        let wanted = json!({ "location": location, "tags": tags });
        self.ensure_typed(id, IDENTITY, &wanted, Update::Replace).await
    }

    /// Finds a user-assigned identity.
    pub async fn find_identity(&self, id: &ResourceId) -> Result<Option<Identity>, CloudError> {
        self.find(id, IDENTITY).await
    }

    /// Deletes a user-assigned identity.
    pub async fn delete_identity(&self, id: &ResourceId) -> Result<(), CloudError> {
        self.delete(id, IDENTITY).await
    }

    /// Makes a federated credential. The cloud refuses two at once on one identity; such a conflict is retried.
    pub async fn ensure_federated_credential(
        &self,
        identity: &ResourceId,
        name: &str,
        spec: &FederatedCredentialSpec,
    ) -> Result<FederatedCredential, CloudError> {
        let properties =
            json!({ "issuer": spec.issuer, "subject": spec.subject, "audiences": [spec.audience] });
        let wanted = json!({ "properties": properties });
        self.ensure_typed(&credential_id(identity, name), IDENTITY, &wanted, Update::Replace).await
    }

    /// Lists the federated credentials of an identity.
    pub async fn list_federated_credentials(
        &self,
        identity: &ResourceId,
    ) -> Result<Vec<FederatedCredential>, CloudError> {
        self.list(&format!("{identity}/federatedIdentityCredentials"), IDENTITY, &[]).await
    }

    /// Deletes a federated credential.
    pub async fn delete_federated_credential(
        &self,
        identity: &ResourceId,
        name: &str,
    ) -> Result<(), CloudError> {
        self.delete(&credential_id(identity, name), IDENTITY).await
    }
}

fn credential_id(identity: &ResourceId, name: &str) -> ResourceId {
    identity.child("federatedIdentityCredentials", name)
}
