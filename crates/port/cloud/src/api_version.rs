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
/// `Microsoft.ContainerService/managedClusters`.
pub const AKS: &str = "2026-04-02-preview";
/// `Microsoft.DBforPostgreSQL/flexibleServers`.
pub const POSTGRESQL: &str = "2023-12-01-preview";
/// `Microsoft.DocumentDB/databaseAccounts`.
pub const COSMOS: &str = "2024-11-15";
/// `Microsoft.EventGrid/namespaces`.
pub const EVENT_GRID: &str = "2024-12-15-preview";
/// `Microsoft.Cdn/profiles` and what is below them.
pub const CDN: &str = "2023-05-01";
/// Secrets of a Key Vault.
pub const VAULT_SECRETS: &str = "7.5";
/// The data plane of managed identities.
pub const MSI_DATA_PLANE: &str = "2024-01-01";
/// Permission checks.
pub const CHECK_ACCESS: &str = "2023-05-01";
/// The `x-ms-version` of blobs.
pub const BLOB: &str = "2023-11-03";
