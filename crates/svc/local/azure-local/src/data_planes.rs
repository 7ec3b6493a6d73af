//! What the data planes ask the rest of the cloud: who calls, what is allowed, which vaults and accounts exist.

use aro_azure_local_data_plane::{AccessPolicy, Accounts, Action, Guard, Principal, Refusal, Storage, Vault};
use aro_azure_local_directory::Verifier;
use aro_azure_local_engine::Cloud;
use aro_azure_local_engine::authorization::Decision;
use aro_base::{Secret, SharedClock};
use aro_cloud_store::Resource;
use async_trait::async_trait;
use serde_json::Value;
use uuid::Uuid;

/// The secret of a storage account that signs user delegation keys.
const DELEGATION: &str = "userDelegation";

/// Tokens by the directory, permissions by role assignments, resources by the engine.
pub(crate) struct DataPlanes {
    pub verifier: Verifier,
    pub cloud: Cloud,
    pub clock: SharedClock,
}

#[async_trait]
impl Guard for DataPlanes {
    async fn authenticate(&self, bearer: &str, audience: &str) -> Result<Principal, Refusal> {
        let principal = self.verifier.verify(bearer, &[audience]).map_err(|_| Refusal::Unauthenticated)?;
        Ok(Principal {
            tenant_id: principal.tenant,
            object_id: principal.object_id,
            app_id: principal.app_id,
        })
    }

    async fn authorize(&self, caller: &Principal, scope: &str, action: Action) -> Result<(), Refusal> {
        let object_id = caller.object_id.to_string();
        let now = self.clock.now();
        match self.cloud.grants().decide(&object_id, scope, action.name, action.is_data, now) {
            Decision::Allowed(_) => Ok(()),
            Decision::NotAllowed => Err(Refusal::Forbidden {
                message: format!(
                    "Caller is not authorized to perform action on resource. If role assignments, deny assignments or role definitions were changed recently, please observe propagation time. Caller: oid={object_id}. Action: '{}'. Resource: '{scope}'. Assignment: (not found).",
                    action.name
                ),
            }),
        }
    }
}

impl DataPlanes {
    async fn find(&self, full: &str, name: &str) -> Option<Resource> {
        match self.cloud.find_named(full, name).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(error = %aro_base::chain(&error), "resource of a data plane not read");
                None
            }
        }
    }

    fn tenant_of(&self, resource_id: &str) -> Uuid {
        let id = aro_arm::ResourceId::parse(resource_id).ok();
        let subscription = id.as_ref().and_then(|id| id.subscription());
        let facts = subscription.and_then(|subscription| self.cloud.subscription(subscription).ok());
        facts.and_then(|facts| Uuid::try_parse(&facts.tenant).ok()).unwrap_or_default()
    }
}

#[async_trait]
impl Accounts for DataPlanes {
    async fn vault(&self, name: &str) -> Option<Vault> {
        let resource = self.find("Microsoft.KeyVault/vaults", name).await?;
        let property =
            |name: &str| resource.properties().and_then(|properties| properties.get(name)).cloned();
        let flag = |name: &str| property(name).and_then(|value| value.as_bool()).unwrap_or_default();
        let policies = property("accessPolicies");
        let policies = policies.as_ref().and_then(Value::as_array).into_iter().flatten();
        Some(Vault {
            tenant_id: self.tenant_of(&resource.id),
            soft_delete_days: property("softDeleteRetentionInDays")
                .and_then(|value| value.as_u64())
                .and_then(|days| u32::try_from(days).ok())
                .unwrap_or(90),
            purge_protection: flag("enablePurgeProtection"),
            access_policies: policies.filter_map(access_policy).collect(),
            rbac: flag("enableRbacAuthorization"),
            resource_id: resource.id.clone(),
        })
    }

    async fn storage(&self, name: &str) -> Option<Storage> {
        let resource = self.find("Microsoft.Storage/storageAccounts", name).await?;
        let shared = resource.properties().and_then(|properties| properties.get("allowSharedKeyAccess"));
        let secrets = |delegates: bool| {
            let of_kind =
                resource.secrets.iter().filter(move |secret| (secret.name == DELEGATION) == delegates);
            of_kind.filter_map(|secret| secret.exposed()).map(|value| Secret::new(value.to_owned()))
        };
        Some(Storage {
            tenant_id: self.tenant_of(&resource.id),
            keys: secrets(false).collect(),
            delegation: secrets(true).next(),
            static_website: false,
            allow_shared_key: shared.and_then(Value::as_bool).unwrap_or(true),
            resource_id: resource.id.clone(),
        })
    }
}

fn access_policy(policy: &Value) -> Option<AccessPolicy> {
    let texts = |name: &str| {
        let list =
            policy.get("permissions").and_then(|permissions| permissions.get(name)).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    Some(AccessPolicy {
        object_id: Uuid::try_parse(policy.get("objectId")?.as_str()?).ok()?,
        keys: texts("keys"),
        secrets: texts("secrets"),
        certificates: texts("certificates"),
    })
}
