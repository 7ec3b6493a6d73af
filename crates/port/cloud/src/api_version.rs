//! The api-version of every resource type that is used.

/// `Microsoft.Resources/resourceGroups` and lists of resources.
pub const RESOURCES: &str = "2024-11-01";
/// `Microsoft.Network`, but for DNS.
pub const NETWORK: &str = "2024-07-01";
/// `Microsoft.Network/dnsZones`.
pub const DNS: &str = "2018-05-01";
/// `Microsoft.ManagedIdentity/userAssignedIdentities` and their federated credentials.
pub const IDENTITY: &str = "2023-01-31";
/// `Microsoft.Authorization/roleAssignments` and `roleDefinitions`.
pub const AUTHORIZATION: &str = "2022-04-01";
/// `Microsoft.KeyVault/vaults`.
pub const KEY_VAULT: &str = "2024-04-01-preview";
/// `Microsoft.Storage/storageAccounts`.
pub const STORAGE: &str = "2023-01-01";
/// `Microsoft.ContainerRegistry/registries`, scope maps and tokens.
pub const REGISTRY: &str = "2023-11-01-preview";
/// Secrets of a Key Vault.
pub const VAULT_SECRETS: &str = "7.5";
/// The data plane of managed identities.
pub const MSI_DATA_PLANE: &str = "2024-01-01";
/// Permission checks.
pub const CHECK_ACCESS: &str = "2023-05-01";
/// The `x-ms-version` of blobs.
pub const BLOB: &str = "2023-11-03";
