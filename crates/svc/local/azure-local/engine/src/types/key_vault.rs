//! Key vaults as resources. What is in a vault belongs to its data plane.

use serde_json::json;

use crate::spec::{InUse, Member, MemberKind as Kind, NameShape, Naming, PLAIN, TypeSpec};

/// The types.
pub const TYPES: &[TypeSpec] = &[TypeSpec {
    namespace: "Microsoft.KeyVault",
    types: &[("vaults", "vault")],
    full: "Microsoft.KeyVault/vaults",
    versions: &[
        "2019-09-01",
        "2021-10-01",
        "2022-07-01",
        "2023-02-01",
        "2023-07-01",
        "2024-04-01-preview",
        "2024-11-01",
        "2024-12-01-preview",
        "2025-05-01",
        "2026-02-01",
    ],
    naming: Naming {
        longest: 24,
        shape: NameShape::Hyphenated,
        unique_everywhere: Some("VaultAlreadyExists"),
    },
    members: &[
        Member { path: "properties.tenantId", kind: Kind::Guid, required: true },
        Member { path: "properties.sku", kind: Kind::Object, required: true },
        Member { path: "properties.sku.name", kind: Kind::OneOf(&["standard", "premium"]), required: true },
        Member { path: "properties.enableRbacAuthorization", kind: Kind::Flag, required: false },
        Member { path: "properties.enablePurgeProtection", kind: Kind::Flag, required: false },
        Member { path: "properties.softDeleteRetentionInDays", kind: Kind::Integer(7, 90), required: false },
        Member { path: "properties.accessPolicies", kind: Kind::List, required: false },
        Member { path: "properties.accessPolicies[]", kind: Kind::Object, required: false },
        Member { path: "properties.accessPolicies[].objectId", kind: Kind::Text, required: true },
    ],
    compute: |draft| {
        let uri = format!("https://{}.vault.azure.net/", draft.id.name().to_lowercase());
        draft.set("vaultUri", json!(uri));
        draft.properties().remove("createMode");
        draft.default("enableSoftDelete", json!(true));
        draft.default("softDeleteRetentionInDays", json!(90));
        draft.default("enableRbacAuthorization", json!(true));
        draft.default("accessPolicies", json!([]));
        draft.default("publicNetworkAccess", json!("Enabled"));
        Ok(())
    },
    in_use: InUse { code: "InUseVaultCannotBeDeleted", noun: "Vault" },
    ..PLAIN
}];
