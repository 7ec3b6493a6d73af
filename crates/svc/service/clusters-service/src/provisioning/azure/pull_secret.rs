//! The pull secret: a token of the registry with the platform's images, kept in the vault.

use aro_arm::ResourceId;
use aro_base::Secret;
use aro_cloud::resources::{Registry, ScopeMap};
use aro_cloud::{ArmClient, SecretAttributes, SecretSpec, api_version};
use aro_control::saga::StepError;
use aro_ocm::names;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{Azure, gone, step};
use crate::provisioning::target::Target;

/// What a cluster's token may do; Azure's registries have this scope map from the start.
const SCOPE_MAP: &str = "_repositories_pull";
/// The same in a registry that has none: names of one's own cannot begin with an underscore.
const OWN_SCOPE_MAP: &str = "repositories-pull";
const SCOPE_ACTIONS: [&str; 2] = ["repositories/*/content/read", "repositories/*/metadata/read"];
const PASSWORD: &str = "password1";

impl Azure {
    /// The token, and its password in the vault: it is shown once only.
    pub(super) async fn make_pull_secret(&self, target: &Target) -> Result<String, StepError> {
        let (vault, name) = (self.vault(&target.certificates_vault), names::pull_token(&target.id));
        if vault.find(&name).await.map_err(|error| step(&error))?.is_some() {
            return Ok(name);
        }
        let (arm, registry) = (self.service(target), &self.access.layout.global.ocp_registry);
        let scope_map = self.pull_scope(&arm, registry).await?;
        let (token, server) = futures::join!(
            arm.ensure_registry_token(registry, &name, &scope_map),
            arm.get::<Registry>(registry, api_version::REGISTRY),
        );
        token.map_err(|error| step(&error))?;
        let server = server.map_err(|error| step(&error))?.properties.login_server;
        let server = server.unwrap_or_else(|| self.ocp_registry());
        let password =
            arm.generate_token_password(registry, &name, PASSWORD).await.map_err(|error| step(&error))?;
        let basic = STANDARD.encode(format!("{name}:{}", password.value.expose()));
        let config = json!({ "auths": { server: { "auth": basic } } });
        let spec = SecretSpec {
            value: Secret::new(config.to_string()),
            content_type: Some("application/json".to_owned()),
            attributes: SecretAttributes::default(),
            tags: target.tags(),
        };
        vault.put(&name, &spec).await.map_err(|error| step(&error))?;
        self.cache.lock().remove(&target.id);
        Ok(name)
    }

    async fn pull_scope(&self, arm: &ArmClient, registry: &ResourceId) -> Result<ResourceId, StepError> {
        let known = registry.child("scopeMaps", SCOPE_MAP);
        let found: Option<ScopeMap> =
            arm.find(&known, api_version::REGISTRY).await.map_err(|error| step(&error))?;
        if found.is_some() {
            return Ok(known);
        }
        let actions = SCOPE_ACTIONS.map(str::to_owned);
        let made = arm.ensure_scope_map(registry, OWN_SCOPE_MAP, &actions).await;
        Ok(made.map_err(|error| step(&error))?.id)
    }

    pub(super) async fn read_pull_secret(&self, target: &Target) -> Result<Secret<String>, StepError> {
        let name = names::pull_token(&target.id);
        let stored =
            self.vault(&target.certificates_vault).find(&name).await.map_err(|error| step(&error))?;
        let stored = stored.ok_or_else(|| StepError::retry(format!("vault secret {name} not found")))?;
        Ok(stored.value)
    }

    pub(super) async fn remove_pull_secret(&self, target: &Target) -> Result<(), StepError> {
        let name = names::pull_token(&target.id);
        let registry = &self.access.layout.global.ocp_registry;
        gone(self.service(target).delete_registry_token(registry, &name).await)?;
        gone(self.vault(&target.certificates_vault).delete(&name).await)
    }

    /// The host of the registry with the platform's images.
    pub(super) fn ocp_registry(&self) -> String {
        format!("{}.azurecr.io", self.access.layout.global.ocp_registry.name())
    }
}
