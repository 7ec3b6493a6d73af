//! Operators of a cluster: their roles, what they need on the customer's resources, and their service accounts.

use uuid::Uuid;

/// An operator with an identity in the control plane.
pub(super) struct Operator {
    /// Its name in the API.
    pub(super) name: &'static str,
    /// Its built-in role.
    pub(super) role: Uuid,
    /// What it does on the subnet.
    pub(super) subnet: &'static [&'static str],
    /// What it does on the network.
    pub(super) vnet: &'static [&'static str],
    /// What it does on the security group.
    pub(super) nsg: &'static [&'static str],
    /// Whether it works in the managed resource group.
    pub(super) in_managed_group: bool,
}

const SUBNET_READ: &str = "Microsoft.Network/virtualNetworks/subnets/read";
const SUBNET_WRITE: &str = "Microsoft.Network/virtualNetworks/subnets/write";
const SUBNET_JOIN: &str = "Microsoft.Network/virtualNetworks/subnets/join/action";
const VNET_READ: &str = "Microsoft.Network/virtualNetworks/read";
const NSG_READ: &str = "Microsoft.Network/networkSecurityGroups/read";
const NSG_WRITE: &str = "Microsoft.Network/networkSecurityGroups/write";
const NSG_JOIN: &str = "Microsoft.Network/networkSecurityGroups/join/action";

const fn operator(
    name: &'static str,
    role: u128,
    [subnet, vnet, nsg]: [&'static [&'static str]; 3],
) -> Operator {
    Operator { name, role: Uuid::from_u128(role), subnet, vnet, nsg, in_managed_group: true }
}

/// Operators of the control plane. What they need on the customer's resources is the part of their role that concerns subnets,
/// networks and security groups.
pub(super) static CONTROL_PLANE: [Operator; 8] = [
    operator("cluster-api-azure", 0x8836_6f10_ed47_4cc0_9fab_c8a0_6148_393e, [&[SUBNET_JOIN], &[], &[]]),
    operator("control-plane", 0xfc0c_873f_45e9_4d0d_a7d1_585a_ab30_c6ed, [&[], &[VNET_READ], &[NSG_READ]]),
    operator(
        "cloud-controller-manager",
        0xa1f9_6423_95ce_4224_ab27_4e3d_c72f_acd4,
        [&[SUBNET_READ, SUBNET_JOIN], &[], &[NSG_READ, NSG_WRITE, NSG_JOIN]],
    ),
    operator("ingress", 0x0336_e1d3_7a87_462b_b6db_342b_63f7_802c, [&[SUBNET_READ, SUBNET_JOIN], &[], &[]]),
    operator("disk-csi-driver", 0x5b72_37c5_45e1_49d6_bc18_a1f6_2f40_0748, [&[], &[], &[]]),
    operator(
        "file-csi-driver",
        0x0d7a_edc0_15fd_4a67_a412_efad_370c_947e,
        [&[SUBNET_READ, SUBNET_WRITE], &[], &[NSG_JOIN]],
    ),
    operator("image-registry", 0x8b32_b316_c2f5_4ddf_b05b_83da_cd2d_08b5, [&[], &[], &[]]),
    operator(
        "cloud-network-config",
        0xbe7a_6435_15ae_4171_8f30_4a34_3eff_9e8f,
        [&[SUBNET_JOIN], &[VNET_READ], &[]],
    ),
];

/// What the service managed identity does on the subnet and on the security group.
pub(super) const SERVICE_ON_SUBNET: &[&str] = &[SUBNET_READ, SUBNET_JOIN];
pub(super) const SERVICE_ON_NSG: &[&str] = &[NSG_READ];
/// What it does on the identities of operators on the nodes.
pub(super) const SERVICE_ON_IDENTITY: &[&str] = &[
    "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/read",
    "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/write",
];

/// The service accounts of operators on the nodes: operator, namespace, names.
pub(super) const SERVICE_ACCOUNTS: [(&str, &str, &[&str]); 3] = [
    (
        "disk-csi-driver",
        "openshift-cluster-csi-drivers",
        &["azure-disk-csi-driver-operator", "azure-disk-csi-driver-controller-sa"],
    ),
    (
        "file-csi-driver",
        "openshift-cluster-csi-drivers",
        &[
            "azure-file-csi-driver-operator",
            "azure-file-csi-driver-controller-sa",
            "azure-file-csi-driver-node-sa",
        ],
    ),
    ("image-registry", "openshift-image-registry", &["cluster-image-registry-operator", "registry"]),
];

pub(super) fn operator_named(name: &str) -> Option<&'static Operator> {
    CONTROL_PLANE.iter().find(|operator| operator.name == name)
}
