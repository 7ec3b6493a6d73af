//! The built-in roles that the service's identities have.

use uuid::Uuid;

/// A built-in role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// Its name.
    pub name: &'static str,
    /// The name of its definition.
    pub id: Uuid,
}

const fn role(name: &'static str, id: u128) -> Role {
    Role { name, id: Uuid::from_u128(id) }
}

pub(super) const READER: Role = role("Reader", 0xacdd_72a7_3385_48ef_bd42_f606_fba8_1ae7);
pub(super) const ACR_PULL: Role = role("AcrPull", 0x7f95_1dda_4ed3_4680_a7ca_43fe_172d_538d);
/// Makes tokens of a registry.
pub(super) const REGISTRY_TOKENS: Role = role(
    "Container Registry Contributor and Data Access Configuration Administrator",
    0x3bc7_48fc_213d_45c1_8d91_9da5_7255_39b9,
);
pub(super) const BLOB_DATA_CONTRIBUTOR: Role =
    role("Storage Blob Data Contributor", 0xba92_f5b4_2d11_453d_a403_e96b_0029_c9fe);
pub(super) const DNS_ZONE_CONTRIBUTOR: Role =
    role("DNS Zone Contributor", 0xbefe_fa01_2a29_4197_83a8_272f_f33c_e314);
pub(super) const SECRETS_OFFICER: Role =
    role("Key Vault Secrets Officer", 0xb86a_8fe4_44ce_4948_aee5_eccb_2c15_5cd7);
pub(super) const SECRETS_USER: Role =
    role("Key Vault Secrets User", 0x4633_458b_17de_408a_b874_0445_c86b_69e6);
pub(super) const CERTIFICATES_OFFICER: Role =
    role("Key Vault Certificates Officer", 0xa441_7e6f_fecd_4de8_b567_7b04_2055_6985);
pub(super) const CERTIFICATE_USER: Role =
    role("Key Vault Certificate User", 0xdb79_e9a7_68ee_4b58_9aeb_b90e_7c24_fcba);
