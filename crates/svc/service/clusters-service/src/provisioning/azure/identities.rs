//! Managed identities of a cluster: who they are, their credentials, their roles, and the trust in the cluster's tokens.

use aro_arm::ResourceId;
use aro_base::Secret;
use aro_cloud::resources::{FederatedCredentialSpec, PrincipalType, Tags};
use aro_cloud::{
    ArmClient, CertificateAssertion, ExplicitIdentity, Proof, SecretAttributes, SecretSpec, SharedCredential,
};
use aro_control::saga::StepError;
use aro_ocm::{Time, names};
use futures::future::try_join_all;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::operators::{SERVICE_ACCOUNTS, operator_named};
use super::{Azure, gone, step};
use crate::provisioning::infrastructure::{DATA_PLANE, Identities, SERVICE};
use crate::provisioning::target::Target;
use crate::records::ResolvedIdentity;

/// When a stored credential is to be renewed, in a tag: reading it needs no look into the value.
const RENEW_AFTER: &str = "renew_after";
const CANNOT_RENEW_AFTER: &str = "cannot_renew_after";

impl Azure {
    /// Who the identities are, and their credentials in the vault.
    pub(super) async fn resolve_identities(&self, target: &Target) -> Result<Identities, StepError> {
        let (control_plane, data_plane) =
            futures::try_join!(self.control_plane(target), self.data_plane(target))?;
        Ok(control_plane.into_iter().chain(data_plane).collect())
    }

    async fn control_plane(&self, target: &Target) -> Result<Identities, StepError> {
        let ids: Vec<(&str, &ResourceId)> = target
            .control_plane
            .iter()
            .map(|(operator, id)| (operator.as_str(), id))
            .chain(target.service.iter().map(|id| (SERVICE, id)))
            .collect();
        let credentials = self.credentials(target, ids.iter().map(|(_, id)| (*id).clone()).collect()).await?;
        let found = |id: &ResourceId| {
            let found = credentials.iter().find(|found| found.resource_id.as_ref() == Some(id));
            found.ok_or_else(|| {
                StepError::retry(format!("the managed identity data plane has no credential of {id}"))
            })
        };
        let stored = ids.iter().map(|(operator, id)| async move {
            let identity = found(id)?;
            let mut resolved = ResolvedIdentity {
                client_id: identity.client_id.clone().unwrap_or_default(),
                principal_id: identity.object_id.clone().unwrap_or_default(),
                secret: None,
                renew_after: identity.renew_after.map(Time),
            };
            // The service's own credential is requested whenever it is needed.
            if *operator != SERVICE {
                let name = target.identity_secret(operator);
                self.keep_credential(target, &name, identity).await?;
                resolved.secret = Some(name);
            }
            Ok::<_, StepError>(((*operator).to_owned(), resolved))
        });
        Ok(try_join_all(stored).await?.into_iter().collect())
    }

    /// Identities of operators on the nodes: only who they are.
    async fn data_plane(&self, target: &Target) -> Result<Identities, StepError> {
        let arm = self.customer(target);
        let looks = target.data_plane.iter().map(|(operator, id)| {
            let arm = arm.clone();
            async move {
                let identity = arm.find_identity(id).await.map_err(|error| step(&error))?;
                let identity = identity
                    .ok_or_else(|| StepError::terminal(format!("identity of {operator} not found: {id}")))?;
                let resolved = ResolvedIdentity {
                    client_id: identity.properties.client_id.to_string(),
                    principal_id: identity.properties.principal_id.to_string(),
                    ..ResolvedIdentity::default()
                };
                Ok::<_, StepError>((format!("{DATA_PLANE}{operator}"), resolved))
            }
        });
        Ok(try_join_all(looks).await?.into_iter().collect())
    }

    /// Credentials of identities from the data plane.
    async fn credentials(
        &self,
        target: &Target,
        ids: Vec<ResourceId>,
    ) -> Result<Vec<ExplicitIdentity>, StepError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let url = target.identity_url.as_ref();
        let url =
            url.ok_or_else(|| StepError::terminal("the cluster names no managed identity data plane"))?;
        let credential = self.access.first_party.in_tenant(&target.tenant);
        let client = self.cloud.msi_data_plane(credential, &self.access.identity_audience);
        let found = client.user_credentials(url, &ids).await.map_err(|error| step(&error))?;
        Ok(found.explicit_identities)
    }

    /// Writes a credential to the vault unless a valid one is there: each answer of the data plane is another one.
    async fn keep_credential(
        &self,
        target: &Target,
        name: &str,
        identity: &ExplicitIdentity,
    ) -> Result<(), StepError> {
        let vault = self.vault(&target.identities_vault);
        if let Some(stored) = vault.find(name).await.map_err(|error| step(&error))? {
            let renew = stored.tags.as_ref().and_then(|tags| tags.get(RENEW_AFTER)?.parse().ok());
            if renew.is_some_and(|renew: aro_base::Timestamp| self.clock.now() < renew) {
                return Ok(());
            }
        }
        let spec = credential_secret(identity, &target.tags());
        vault.put(name, &spec).await.map(drop).map_err(|error| step(&error))
    }

    /// Every operator's role on the managed resource group.
    pub(super) async fn assign_roles(
        &self,
        target: &Target,
        identities: &Identities,
    ) -> Result<Vec<String>, StepError> {
        let (arm, scope) = (self.customer(target), target.managed_group_id());
        let wanted = identities.iter().filter_map(|(operator, identity)| {
            let name = operator.strip_prefix(DATA_PLANE).unwrap_or(operator);
            let operator = operator_named(name).filter(|operator| operator.in_managed_group)?;
            let principal: Uuid = identity.principal_id.parse().ok()?;
            Some((principal, operator.role))
        });
        let assignments = wanted.map(|(principal, role)| {
            let (arm, scope) = (arm.clone(), scope.clone());
            async move {
                let kind = PrincipalType::ServicePrincipal;
                let made = arm.ensure_role_assignment(&scope, &principal, kind, &role).await;
                made.map_err(|error| step(&error))?;
                let name = aro_cloud::resources::role_assignment_name(&scope, &principal, &role);
                Ok::<_, StepError>(format!(
                    "{scope}/providers/Microsoft.Authorization/roleAssignments/{name}"
                ))
            }
        });
        try_join_all(assignments).await
    }

    /// Resource Manager as the cluster's service managed identity; as the first-party application for a cluster without one.
    async fn as_service_identity(&self, target: &Target) -> Result<ArmClient, StepError> {
        let Some(id) = &target.service else { return Ok(self.customer(target)) };
        let credentials = self.credentials(target, vec![id.clone()]).await?;
        let usable = credentials
            .first()
            .and_then(|found| Some((found.client_id.clone()?, found.client_secret.clone()?)));
        let (client_id, secret) =
            usable.ok_or_else(|| StepError::retry(format!("no credential of the service identity {id}")))?;
        let assertion = CertificateAssertion::from_pkcs12(&secret)
            .map_err(|error| StepError::retry(format!("credential of {id}: {}", aro_base::chain(&error))))?;
        let proof = Proof::Certificate(std::sync::Arc::new(assertion));
        let credential: SharedCredential = self.cloud.application(&target.tenant, &client_id, proof);
        Ok(super::correlated(&self.cloud.arm(credential), target))
    }

    /// The identities on the nodes trust the cluster's service accounts.
    pub(super) async fn trust_issuer(&self, target: &Target) -> Result<(), StepError> {
        if target.data_plane.is_empty() {
            return Ok(());
        }
        let arm = self.as_service_identity(target).await?;
        let identities = SERVICE_ACCOUNTS.iter().filter_map(|(operator, namespace, accounts)| {
            Some((target.data_plane.get(*operator)?, *namespace, *accounts))
        });
        let writes = identities.map(|(id, namespace, accounts)| {
            let arm = arm.clone();
            async move {
                let known = arm.list_federated_credentials(id).await.map_err(|error| step(&error))?;
                // The cloud refuses two writes at once to one identity.
                for account in accounts {
                    let spec = FederatedCredentialSpec::service_account(&target.issuer, namespace, account);
                    let name = credential_name(target, account);
                    let is_there = known.iter().any(|found| {
                        let found_spec = &found.properties;
                        found.name.eq_ignore_ascii_case(&name)
                            && (&found_spec.issuer, &found_spec.subject) == (&spec.issuer, &spec.subject)
                            && found_spec.audiences == [spec.audience.as_str()]
                    });
                    if !is_there {
                        let made = arm.ensure_federated_credential(id, &name, &spec).await;
                        made.map_err(|error| step(&error))?;
                    }
                }
                Ok::<_, StepError>(())
            }
        });
        try_join_all(writes).await.map(drop)
    }

    /// Removes that trust; identities that are gone need none.
    pub(super) async fn withdraw_trust(&self, target: &Target) -> Result<(), StepError> {
        // The service managed identity may be gone already.
        let arm = self.customer(target);
        let identities = SERVICE_ACCOUNTS
            .iter()
            .filter_map(|(operator, _, accounts)| Some((target.data_plane.get(*operator)?, *accounts)));
        let deletions = identities.map(|(id, accounts)| {
            let arm = arm.clone();
            async move {
                for account in accounts {
                    gone(arm.delete_federated_credential(id, &credential_name(target, account)).await)?;
                }
                Ok::<_, StepError>(())
            }
        });
        try_join_all(deletions).await.map(drop)
    }
}

/// At most 120 characters.
fn credential_name(target: &Target, account: &str) -> String {
    names::clipped(&format!("{}-{account}", target.id), 120)
}

/// The vault secret with a credential, as operators read it.
fn credential_secret(identity: &ExplicitIdentity, tags: &Tags) -> SecretSpec {
    let mut value = Map::new();
    let mut set = |name: &str, text: Option<String>| {
        if let Some(text) = text {
            value.insert(name.to_owned(), Value::String(text));
        }
    };
    let time = |time: Option<aro_base::Timestamp>| time.map(|time| time.to_string());
    set("client_id", identity.client_id.clone());
    set("client_secret", identity.client_secret.as_ref().map(|secret| secret.expose().clone()));
    set("client_secret_url", identity.client_secret_url.as_ref().map(|secret| secret.expose().clone()));
    set("tenant_id", identity.tenant_id.clone());
    set("object_id", identity.object_id.clone());
    set("resource_id", identity.resource_id.as_ref().map(ToString::to_string));
    set("authentication_endpoint", identity.authentication_endpoint.clone());
    set("not_before", time(identity.not_before));
    set("not_after", time(identity.not_after));
    set("renew_after", time(identity.renew_after));
    set("cannot_renew_after", time(identity.cannot_renew_after));
    let mut tags = tags.clone();
    for (name, moment) in
        [(RENEW_AFTER, identity.renew_after), (CANNOT_RENEW_AFTER, identity.cannot_renew_after)]
    {
        if let Some(moment) = moment {
            tags.insert(name.to_owned(), moment.to_string());
        }
    }
    SecretSpec {
        value: Secret::new(json!(value).to_string()),
        content_type: Some("application/json".to_owned()),
        attributes: SecretAttributes {
            enabled: Some(true),
            nbf: identity.not_before.map(aro_base::Timestamp::as_second),
            exp: identity.not_after.map(aro_base::Timestamp::as_second),
        },
        tags,
    }
}
