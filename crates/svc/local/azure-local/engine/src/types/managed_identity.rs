//! User-assigned identities and their federated credentials.

use serde_json::json;

use crate::spec::{Effect, InUse, Member, MemberKind as Kind, NameShape, Naming, PLAIN, Placement, TypeSpec};

const VERSIONS: &[&str] = &[
    "2018-11-30",
    "2022-01-31-preview",
    "2023-01-31",
    "2023-07-31-preview",
    "2024-11-30",
    "2025-01-31-preview",
    "2025-05-31-preview",
];

/// The types.
pub const TYPES: &[TypeSpec] = &[
    TypeSpec {
        namespace: "Microsoft.ManagedIdentity",
        types: &[("userAssignedIdentities", "identity")],
        full: "Microsoft.ManagedIdentity/userAssignedIdentities",
        versions: VERSIONS,
        naming: Naming { longest: 128, shape: NameShape::Word, unique_everywhere: None },
        compute: |draft| {
            if let Some(identity) = draft.identity.cloned() {
                draft.keep("principalId", json!(identity.principal_id));
                draft.keep("clientId", json!(identity.client_id));
            }
            let tenant = json!(draft.tenant);
            draft.set("tenantId", tenant);
            Ok(())
        },
        in_use: InUse { code: "InUseIdentityCannotBeDeleted", noun: "Identity" },
        effect: Effect::Identity,
        ..PLAIN
    },
    TypeSpec {
        namespace: "Microsoft.ManagedIdentity",
        types: &[("userAssignedIdentities", "identity"), ("federatedIdentityCredentials", "credential")],
        full: "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials",
        versions: VERSIONS,
        placement: Placement::None,
        naming: Naming { longest: 120, shape: NameShape::Word, unique_everywhere: None },
        members: &[
            Member { path: "properties.issuer", kind: Kind::Text, required: true },
            Member { path: "properties.subject", kind: Kind::Text, required: true },
            Member { path: "properties.audiences", kind: Kind::Texts, required: true },
        ],
        effect: Effect::FederatedCredential,
        ..PLAIN
    },
];
