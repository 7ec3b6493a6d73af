//! Azure's built-in roles, as far as the service and its users need them.

use super::{Permission, matches};

/// A built-in role.
#[derive(Debug, Clone, Copy)]
pub struct BuiltInRole {
    pub id: &'static str,
    pub name: &'static str,
    pub actions: &'static [&'static str],
    pub not_actions: &'static [&'static str],
    pub data_actions: &'static [&'static str],
}

impl BuiltInRole {
    pub(super) fn allows(&self, action: &str, data: bool) -> bool {
        let granted = if data { self.data_actions } else { self.actions };
        granted.iter().any(|pattern| matches(pattern, action))
            && (data || !self.not_actions.iter().any(|pattern| matches(pattern, action)))
    }

    /// What it allows.
    pub fn permission(&self) -> Permission {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Permission {
            actions: owned(self.actions),
            not_actions: owned(self.not_actions),
            data_actions: owned(self.data_actions),
            not_data_actions: Vec::new(),
        }
    }
}

/// A built-in role by its GUID.
pub fn find_built_in(id: &str) -> Option<&'static BuiltInRole> {
    BUILT_IN.iter().find(|role| role.id.eq_ignore_ascii_case(id))
}

const fn role(id: &'static str, name: &'static str, actions: &'static [&'static str]) -> BuiltInRole {
    BuiltInRole { id, name, actions, not_actions: &[], data_actions: &[] }
}

const fn data(mut role: BuiltInRole, data_actions: &'static [&'static str]) -> BuiltInRole {
    role.data_actions = data_actions;
    role
}

const fn without(mut role: BuiltInRole, not_actions: &'static [&'static str]) -> BuiltInRole {
    role.not_actions = not_actions;
    role
}

/// What most data roles of Key Vault may do in the control plane.
const VAULT_READS: &[&str] = &[
    "Microsoft.Authorization/*/read",
    "Microsoft.Resources/subscriptions/resourceGroups/read",
    "Microsoft.KeyVault/checkNameAvailability/read",
    "Microsoft.KeyVault/deletedVaults/read",
    "Microsoft.KeyVault/locations/*/read",
    "Microsoft.KeyVault/vaults/*/read",
    "Microsoft.KeyVault/operations/read",
];

/// Every built-in role of the local cloud.
pub const BUILT_IN: &[BuiltInRole] = &[
    role("8e3af657-a8ff-443c-a75c-2fe8c4bcb635", "Owner", &["*"]),
    without(
        role("b24988ac-6180-42a0-ab88-20f7382dd24c", "Contributor", &["*"]),
        &[
            "Microsoft.Authorization/*/Delete",
            "Microsoft.Authorization/*/Write",
            "Microsoft.Authorization/elevateAccess/Action",
        ],
    ),
    role("acdd72a7-3385-48ef-bd42-f606fba81ae7", "Reader", &["*/read"]),
    role(
        "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9",
        "User Access Administrator",
        &["*/read", "Microsoft.Authorization/*"],
    ),
    role(
        "f58310d9-a9f6-439a-9e8d-f62e7b41a168",
        "Role Based Access Control Administrator",
        &[
            "Microsoft.Authorization/roleAssignments/write",
            "Microsoft.Authorization/roleAssignments/delete",
            "*/read",
        ],
    ),
    role(
        "4d97b98b-1d4f-4787-a291-c67834d212e7",
        "Network Contributor",
        &[
            "Microsoft.Authorization/*/read",
            "Microsoft.Network/*",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
        ],
    ),
    role(
        "befefa01-2a29-4197-83a8-272ff33ce314",
        "DNS Zone Contributor",
        &[
            "Microsoft.Authorization/*/read",
            "Microsoft.Network/dnsZones/*",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
        ],
    ),
    role(
        "e40ec5ca-96e0-45a2-b4ff-59039f2c2b59",
        "Managed Identity Contributor",
        &[
            "Microsoft.ManagedIdentity/userAssignedIdentities/read",
            "Microsoft.ManagedIdentity/userAssignedIdentities/write",
            "Microsoft.ManagedIdentity/userAssignedIdentities/delete",
            "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/*",
            "Microsoft.Authorization/*/read",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
        ],
    ),
    role(
        "f1a07417-d97a-45cb-824c-7a7467783830",
        "Managed Identity Operator",
        &[
            "Microsoft.ManagedIdentity/userAssignedIdentities/*/read",
            "Microsoft.ManagedIdentity/userAssignedIdentities/read",
            "Microsoft.ManagedIdentity/userAssignedIdentities/*/assign/action",
            "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action",
            "Microsoft.Authorization/*/read",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
        ],
    ),
    data(
        role("00482a5a-887f-4fb3-b363-3b7fe8e74483", "Key Vault Administrator", VAULT_READS),
        &["Microsoft.KeyVault/vaults/*"],
    ),
    data(
        role("b86a8fe4-44ce-4948-aee5-eccb2c155cd7", "Key Vault Secrets Officer", VAULT_READS),
        &["Microsoft.KeyVault/vaults/secrets/*"],
    ),
    data(
        role("4633458b-17de-408a-b874-0445c86b69e6", "Key Vault Secrets User", &[]),
        &[
            "Microsoft.KeyVault/vaults/secrets/getSecret/action",
            "Microsoft.KeyVault/vaults/secrets/readMetadata/action",
        ],
    ),
    data(
        role("a4417e6f-fecd-4de8-b567-7b0420556985", "Key Vault Certificates Officer", VAULT_READS),
        &[
            "Microsoft.KeyVault/vaults/certificatecas/*",
            "Microsoft.KeyVault/vaults/certificates/*",
            "Microsoft.KeyVault/vaults/certificatecontacts/write",
        ],
    ),
    data(
        role("db79e9a7-68ee-4b58-9aeb-b90e7c24fcba", "Key Vault Certificate User", &[]),
        &[
            "Microsoft.KeyVault/vaults/certificates/read",
            "Microsoft.KeyVault/vaults/secrets/getSecret/action",
            "Microsoft.KeyVault/vaults/secrets/readMetadata/action",
            "Microsoft.KeyVault/vaults/keys/read",
        ],
    ),
    data(
        role("14b46e9e-c2b7-41b4-b07b-48a6ebf60603", "Key Vault Crypto Officer", VAULT_READS),
        &["Microsoft.KeyVault/vaults/keys/*", "Microsoft.KeyVault/vaults/keyrotationpolicies/*"],
    ),
    data(
        role("12338af0-0e69-4776-bea7-57ae8d297424", "Key Vault Crypto User", &[]),
        &[
            "Microsoft.KeyVault/vaults/keys/read",
            "Microsoft.KeyVault/vaults/keys/update/action",
            "Microsoft.KeyVault/vaults/keys/backup/action",
            "Microsoft.KeyVault/vaults/keys/encrypt/action",
            "Microsoft.KeyVault/vaults/keys/decrypt/action",
            "Microsoft.KeyVault/vaults/keys/wrap/action",
            "Microsoft.KeyVault/vaults/keys/unwrap/action",
            "Microsoft.KeyVault/vaults/keys/sign/action",
            "Microsoft.KeyVault/vaults/keys/verify/action",
        ],
    ),
    data(
        role(
            "ba92f5b4-2d11-453d-a403-e96b0029c9fe",
            "Storage Blob Data Contributor",
            &[
                "Microsoft.Storage/storageAccounts/blobServices/containers/delete",
                "Microsoft.Storage/storageAccounts/blobServices/containers/read",
                "Microsoft.Storage/storageAccounts/blobServices/containers/write",
                "Microsoft.Storage/storageAccounts/blobServices/generateUserDelegationKey/action",
            ],
        ),
        &["Microsoft.Storage/storageAccounts/blobServices/containers/blobs/*"],
    ),
    data(
        role(
            "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1",
            "Storage Blob Data Reader",
            &["Microsoft.Storage/storageAccounts/blobServices/containers/read"],
        ),
        &["Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read"],
    ),
    role(
        "7f951dda-4ed3-4680-a7ca-43fe172d538d",
        "AcrPull",
        &["Microsoft.ContainerRegistry/registries/pull/read"],
    ),
    role(
        "3bc748fc-213d-45c1-8d91-9da5725539b9",
        "Container Registry Contributor and Data Access Configuration Administrator",
        &["Microsoft.ContainerRegistry/*", "Microsoft.Resources/subscriptions/resourceGroups/read"],
    ),
    role(
        "88366f10-ed47-4cc0-9fab-c8a06148393e",
        "Azure Red Hat OpenShift Hosted Control Planes Cluster API Provider",
        &[
            "Microsoft.Compute/disks/read",
            "Microsoft.Compute/disks/write",
            "Microsoft.Compute/disks/delete",
            "Microsoft.Compute/availabilitySets/read",
            "Microsoft.Compute/availabilitySets/write",
            "Microsoft.Compute/availabilitySets/delete",
            "Microsoft.Compute/virtualMachines/read",
            "Microsoft.Compute/virtualMachines/write",
            "Microsoft.Compute/virtualMachines/delete",
            "Microsoft.Compute/diskEncryptionSets/read",
            "Microsoft.Network/networkInterfaces/read",
            "Microsoft.Network/networkInterfaces/write",
            "Microsoft.Network/networkInterfaces/delete",
            "Microsoft.Network/networkInterfaces/join/action",
            "Microsoft.Network/loadBalancers/backendAddressPools/join/action",
            "Microsoft.Network/virtualNetworks/subnets/join/action",
        ],
    ),
    role(
        "fc0c873f-45e9-4d0d-a7d1-585aab30c6ed",
        "Azure Red Hat OpenShift Hosted Control Planes Control Plane Operator",
        &[
            "Microsoft.Resources/subscriptions/resourceGroups/read",
            "Microsoft.Network/virtualNetworks/read",
            "Microsoft.Network/networkSecurityGroups/read",
        ],
    ),
    role(
        "a1f96423-95ce-4224-ab27-4e3dc72facd4",
        "Azure Red Hat OpenShift Cloud Controller Manager",
        &[
            "Microsoft.Compute/virtualMachines/read",
            "Microsoft.Network/loadBalancers/read",
            "Microsoft.Network/loadBalancers/write",
            "Microsoft.Network/loadBalancers/backendAddressPools/join/action",
            "Microsoft.Network/loadBalancers/inboundNatRules/join/action",
            "Microsoft.Network/networkInterfaces/read",
            "Microsoft.Network/networkInterfaces/write",
            "Microsoft.Network/networkSecurityGroups/read",
            "Microsoft.Network/networkSecurityGroups/write",
            "Microsoft.Network/networkSecurityGroups/join/action",
            "Microsoft.Network/publicIPAddresses/read",
            "Microsoft.Network/publicIPAddresses/write",
            "Microsoft.Network/publicIPAddresses/join/action",
            "Microsoft.Network/publicIPPrefixes/join/action",
            "Microsoft.Network/applicationSecurityGroups/joinNetworkSecurityRule/action",
            "Microsoft.Network/virtualNetworks/subnets/read",
            "Microsoft.Network/virtualNetworks/subnets/join/action",
        ],
    ),
    role(
        "0336e1d3-7a87-462b-b6db-342b63f7802c",
        "Azure Red Hat OpenShift Cluster Ingress Operator",
        &[
            "Microsoft.Network/dnsZones/A/write",
            "Microsoft.Network/dnsZones/A/delete",
            "Microsoft.Network/privateDnsZones/A/write",
            "Microsoft.Network/privateDnsZones/A/delete",
            "Microsoft.Network/virtualNetworks/subnets/read",
            "Microsoft.Network/virtualNetworks/subnets/join/action",
        ],
    ),
    role(
        "5b7237c5-45e1-49d6-bc18-a1f62f400748",
        "Azure Red Hat OpenShift Disk Storage Operator",
        &[
            "Microsoft.Compute/virtualMachines/read",
            "Microsoft.Compute/virtualMachines/write",
            "Microsoft.Compute/virtualMachineScaleSets/read",
            "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",
            "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/write",
            "Microsoft.Compute/disks/read",
            "Microsoft.Compute/disks/write",
            "Microsoft.Compute/disks/delete",
            "Microsoft.Compute/disks/beginGetAccess/action",
            "Microsoft.Compute/snapshots/read",
            "Microsoft.Compute/snapshots/write",
            "Microsoft.Compute/snapshots/delete",
            "Microsoft.Compute/diskEncryptionSets/read",
            "Microsoft.Compute/locations/operations/read",
            "Microsoft.Compute/locations/DiskOperations/read",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
        ],
    ),
    role(
        "0d7aedc0-15fd-4a67-a412-efad370c947e",
        "Azure Red Hat OpenShift File Storage Operator",
        &[
            "Microsoft.Storage/storageAccounts/read",
            "Microsoft.Storage/storageAccounts/write",
            "Microsoft.Storage/storageAccounts/delete",
            "Microsoft.Storage/storageAccounts/listKeys/action",
            "Microsoft.Storage/storageAccounts/fileServices/read",
            "Microsoft.Storage/storageAccounts/fileServices/shares/read",
            "Microsoft.Storage/storageAccounts/fileServices/shares/write",
            "Microsoft.Storage/storageAccounts/fileServices/shares/delete",
            "Microsoft.Network/networkSecurityGroups/join/action",
            "Microsoft.Network/routeTables/join/action",
            "Microsoft.Network/natGateways/join/action",
            "Microsoft.Network/virtualNetworks/subnets/read",
            "Microsoft.Network/virtualNetworks/subnets/write",
        ],
    ),
    data(
        role(
            "8b32b316-c2f5-4ddf-b05b-83dacd2d08b5",
            "Azure Red Hat OpenShift Image Registry Operator",
            &[
                "Microsoft.Storage/storageAccounts/read",
                "Microsoft.Storage/storageAccounts/write",
                "Microsoft.Storage/storageAccounts/delete",
                "Microsoft.Storage/storageAccounts/listKeys/action",
                "Microsoft.Storage/storageAccounts/PrivateEndpointConnectionsApproval/action",
                "Microsoft.Storage/storageAccounts/blobServices/read",
                "Microsoft.Storage/storageAccounts/blobServices/containers/read",
                "Microsoft.Storage/storageAccounts/blobServices/containers/write",
                "Microsoft.Storage/storageAccounts/blobServices/containers/delete",
                "Microsoft.Storage/storageAccounts/blobServices/generateUserDelegationKey/action",
                "Microsoft.Resources/tags/write",
                "Microsoft.Network/privateEndpoints/read",
                "Microsoft.Network/privateEndpoints/write",
                "Microsoft.Network/privateEndpoints/privateDnsZoneGroups/read",
                "Microsoft.Network/privateEndpoints/privateDnsZoneGroups/write",
                "Microsoft.Network/privateDnsZones/read",
                "Microsoft.Network/privateDnsZones/write",
                "Microsoft.Network/privateDnsZones/join/action",
                "Microsoft.Network/privateDnsZones/A/write",
                "Microsoft.Network/privateDnsZones/virtualNetworkLinks/read",
                "Microsoft.Network/privateDnsZones/virtualNetworkLinks/write",
                "Microsoft.Network/networkInterfaces/read",
                "Microsoft.Network/virtualNetworks/join/action",
                "Microsoft.Network/virtualNetworks/subnets/read",
                "Microsoft.Network/virtualNetworks/subnets/join/action",
            ],
        ),
        &[
            "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read",
            "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/write",
            "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/delete",
            "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/add/action",
            "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/move/action",
        ],
    ),
    role(
        "be7a6435-15ae-4171-8f30-4a343eff9e8f",
        "Azure Red Hat OpenShift Network Operator",
        &[
            "Microsoft.Network/networkInterfaces/read",
            "Microsoft.Network/networkInterfaces/write",
            "Microsoft.Network/virtualNetworks/read",
            "Microsoft.Network/virtualNetworks/subnets/join/action",
            "Microsoft.Network/loadBalancers/backendAddressPools/read",
            "Microsoft.Network/loadBalancers/backendAddressPools/join/action",
            "Microsoft.Compute/virtualMachines/read",
        ],
    ),
    role(
        "c0ff367d-66d8-445e-917c-583feb0ef0d4",
        "Azure Red Hat OpenShift Hosted Control Planes Service Managed Identity",
        &[
            "Microsoft.ManagedIdentity/userAssignedIdentities/read",
            "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/read",
            "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/write",
            "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/delete",
            "Microsoft.Network/loadBalancers/read",
            "Microsoft.Network/loadBalancers/write",
            "Microsoft.Network/loadBalancers/backendAddressPools/read",
            "Microsoft.Network/loadBalancers/backendAddressPools/write",
            "Microsoft.Network/natGateways/read",
            "Microsoft.Network/natGateways/join/action",
            "Microsoft.Network/networkSecurityGroups/read",
            "Microsoft.Network/networkSecurityGroups/write",
            "Microsoft.Network/networkSecurityGroups/join/action",
            "Microsoft.Network/privateDnsZones/virtualNetworkLinks/read",
            "Microsoft.Network/privateDnsZones/virtualNetworkLinks/write",
            "Microsoft.Network/routeTables/read",
            "Microsoft.Network/routeTables/join/action",
            "Microsoft.Network/virtualNetworks/read",
            "Microsoft.Network/virtualNetworks/join/action",
            "Microsoft.Network/virtualNetworks/joinLoadBalancer/action",
            "Microsoft.Network/virtualNetworks/subnets/read",
            "Microsoft.Network/virtualNetworks/subnets/write",
            "Microsoft.Network/virtualNetworks/subnets/join/action",
        ],
    ),
    role(
        "ef318e2a-8334-4a05-9e4a-295a196c6a6e",
        "Azure Red Hat OpenShift Federated Credential",
        &[
            "Microsoft.ManagedIdentity/userAssignedIdentities/read",
            "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/read",
            "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/write",
            "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/delete",
        ],
    ),
];
