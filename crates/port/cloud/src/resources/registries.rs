//! Container registries, scope maps and tokens.

use aro_arm::ResourceId;
use aro_base::Secret;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Resource, Tags};
use crate::api_version::REGISTRY;
use crate::arm::{ArmClient, Update};
use crate::error::{CloudError, Failure};

/// A container registry.
pub type Registry = Resource<RegistryProperties>;
/// A scope map: what a token may do.
pub type ScopeMap = Resource<ScopeMapProperties>;
/// A token of a registry.
pub type RegistryToken = Resource<RegistryTokenProperties>;

/// The members of a container registry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegistryProperties {
    /// Its host name.
    pub login_server: Option<String>,
}

/// The members of a scope map.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ScopeMapProperties {
    /// Its actions.
    #[serde(default)]
    pub actions: Vec<String>,
}

/// The members of a token.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegistryTokenProperties {
    /// Its scope map.
    pub scope_map_id: Option<ResourceId>,
    /// `enabled` or `disabled`.
    pub status: Option<String>,
}

/// A password of a token.
#[derive(Debug, Clone, Deserialize)]
pub struct TokenPassword {
    /// `password1` or `password2`.
    pub name: String,
    /// The password; shown once.
    pub value: Secret<String>,
}

impl ArmClient {
    /// Makes a premium registry without an administrator account.
    pub async fn ensure_registry(
        &self,
        id: &ResourceId,
        location: &str,
        tags: &Tags,
    ) -> Result<Registry, CloudError> {
        let wanted = json!({
            "location": location,
            "sku": { "name": "Premium" },
            "tags": tags,
            "properties": { "adminUserEnabled": false },
        });
        self.ensure_typed(id, REGISTRY, &wanted, Update::Overlay).await
    }

    /// Makes a scope map with exactly these actions, e.g. `repositories/*/content/read`.
    pub async fn ensure_scope_map(
        &self,
        registry: &ResourceId,
        name: &str,
        actions: &[String],
    ) -> Result<ScopeMap, CloudError> {
        let wanted = json!({ "properties": { "actions": actions } });
        self.ensure_typed(&registry.child("scopeMaps", name), REGISTRY, &wanted, Update::Replace).await
    }

    /// Makes an enabled token of a scope map. It has no password yet.
    pub async fn ensure_registry_token(
        &self,
        registry: &ResourceId,
        name: &str,
        scope_map: &ResourceId,
    ) -> Result<RegistryToken, CloudError> {
        let wanted = json!({ "properties": { "scopeMapId": scope_map, "status": "enabled" } });
        // The passwords of an existing token are in its properties and stay.
        self.ensure_typed(&registry.child("tokens", name), REGISTRY, &wanted, Update::Overlay).await
    }

    /// Deletes a token.
    pub async fn delete_registry_token(&self, registry: &ResourceId, name: &str) -> Result<(), CloudError> {
        self.delete(&registry.child("tokens", name), REGISTRY).await
    }

    /// Generates a password of a token, which replaces the one of that name. Not idempotent: after a lost reply it is an
    /// error, and the caller generates again.
    pub async fn generate_token_password(
        &self,
        registry: &ResourceId,
        token: &str,
        password: &str,
    ) -> Result<TokenPassword, CloudError> {
        let id = registry.child("tokens", token);
        let body = json!({ "tokenId": id, "name": password });
        let reply: Value = self.post(registry, "generateCredentials", REGISTRY, &body).await?;
        let passwords = reply.get("passwords").cloned().unwrap_or_default();
        let passwords: Vec<TokenPassword> = serde_json::from_value(passwords).unwrap_or_default();
        let found = passwords.into_iter().find(|found| found.name == password);
        found.ok_or_else(|| self.problem(&id, Failure::Protocol("the reply holds no password")))
    }
}
