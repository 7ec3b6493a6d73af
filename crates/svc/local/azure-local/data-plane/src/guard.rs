//! What the data planes need from the rest of the local Azure: who is calling, what is allowed, which resources exist.

use aro_base::Secret;
use async_trait::async_trait;
use uuid::Uuid;

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The tenant of its token.
    pub tenant_id: Uuid,
    /// Its service principal.
    pub object_id: Uuid,
    /// Its application.
    pub app_id: Uuid,
}

/// Why a caller is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The token is missing, wrong or expired.
    Unauthenticated,
    /// The caller is known and may not do this.
    Forbidden {
        /// For people.
        message: String,
    },
    /// The decision cannot be made now.
    Unavailable,
}

/// An action of role-based access control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    /// Its name, such as `Microsoft.KeyVault/vaults/secrets/getSecret/action`.
    pub name: &'static str,
    /// Whether it is one of a role's `dataActions`. Operations on blob containers are `actions`.
    pub is_data: bool,
}

/// Authenticates callers and decides what they may do.
#[async_trait]
pub trait Guard: Send + Sync + 'static {
    /// The caller of a token for this audience.
    async fn authenticate(&self, bearer: &str, audience: &str) -> Result<Principal, Refusal>;

    /// Whether the caller may perform an action on the resource with this ARM id (a vault, one of its objects, a container or
    /// a blob), by its role assignments.
    async fn authorize(&self, caller: &Principal, scope: &str, action: Action) -> Result<(), Refusal>;
}

/// Permissions of one principal in a vault without role-based access control.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessPolicy {
    /// The principal.
    pub object_id: Uuid,
    /// Permissions on keys.
    pub keys: Vec<String>,
    /// Permissions on secrets.
    pub secrets: Vec<String>,
    /// Permissions on certificates.
    pub certificates: Vec<String>,
}

/// A key vault resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vault {
    /// Its ARM id.
    pub resource_id: String,
    /// The tenant that its callers sign in to.
    pub tenant_id: Uuid,
    /// How long deleted objects can be recovered.
    pub soft_delete_days: u32,
    /// Deleted objects cannot be purged before that.
    pub purge_protection: bool,
    /// Permissions, if `rbac` is not set.
    pub access_policies: Vec<AccessPolicy>,
    /// Role assignments decide.
    pub rbac: bool,
}

/// A storage account resource.
#[derive(Debug, Clone)]
pub struct Storage {
    /// Its ARM id.
    pub resource_id: String,
    /// The tenant that its callers sign in to.
    pub tenant_id: Uuid,
    /// Its keys (base64).
    pub keys: Vec<Secret<String>>,
    /// What signs its user delegation keys (base64).
    pub delegation: Option<Secret<String>>,
    /// Its static website is on, whatever the service properties say.
    pub static_website: bool,
    /// Requests may be signed with a key of the account.
    pub allow_shared_key: bool,
}

/// Finds resources by the name in a host.
#[async_trait]
pub trait Accounts: Send + Sync + 'static {
    /// The vault of this name.
    async fn vault(&self, name: &str) -> Option<Vault>;

    /// The storage account of this name.
    async fn storage(&self, name: &str) -> Option<Storage>;
}
