//! Container registries, scope maps and tokens.

use serde_json::json;

use crate::spec::{
    ActionKind, InUse, ItemAction, Member, MemberKind as Kind, NameShape, Naming, PLAIN, Placement,
    Reference, SecretKind, TypeSpec,
};

const VERSIONS: &[&str] = &[
    "2022-12-01",
    "2023-01-01-preview",
    "2023-06-01-preview",
    "2023-07-01",
    "2023-11-01-preview",
    "2025-04-01",
    "2025-11-01",
    "2026-01-01-preview",
    "2026-09-01-preview",
];
const CHILD: TypeSpec = TypeSpec {
    namespace: "Microsoft.ContainerRegistry",
    versions: VERSIONS,
    placement: Placement::None,
    naming: Naming { longest: 50, shape: NameShape::Word, unique_everywhere: None },
    long_running: true,
    ..PLAIN
};

/// The types.
pub const TYPES: &[TypeSpec] = &[
    TypeSpec {
        namespace: "Microsoft.ContainerRegistry",
        types: &[("registries", "registry")],
        full: "Microsoft.ContainerRegistry/registries",
        versions: VERSIONS,
        naming: Naming {
            longest: 50,
            shape: NameShape::Alphanumeric,
            unique_everywhere: Some("AlreadyInUse"),
        },
        members: &[
            Member { path: "sku", kind: Kind::Object, required: true },
            Member { path: "sku.name", kind: Kind::OneOf(&["Basic", "Standard", "Premium"]), required: true },
            Member { path: "properties.adminUserEnabled", kind: Kind::Flag, required: false },
        ],
        long_running: true,
        compute: |draft| {
            let server = format!("{}.azurecr.io", draft.id.name().to_lowercase());
            draft.set("loginServer", json!(server));
            draft.default("adminUserEnabled", json!(false));
            Ok(())
        },
        in_use: InUse { code: "InUseRegistryCannotBeDeleted", noun: "Registry" },
        secrets: &[("password", SecretKind::Password), ("password2", SecretKind::Password)],
        actions: &[
            ItemAction { word: "listCredentials", kind: ActionKind::ListCredentials },
            ItemAction { word: "regenerateCredential", kind: ActionKind::RegenerateCredential },
            ItemAction { word: "generateCredentials", kind: ActionKind::GenerateCredentials },
        ],
        ..PLAIN
    },
    TypeSpec {
        types: &[("registries", "registry"), ("scopeMaps", "scopeMap")],
        full: "Microsoft.ContainerRegistry/registries/scopeMaps",
        // Azure brings `_repositories_pull` and its siblings with every registry; here their first user makes them.
        naming: Naming { longest: 50, shape: NameShape::SystemWord, unique_everywhere: None },
        members: &[Member { path: "properties.actions", kind: Kind::Texts, required: true }],
        in_use: InUse { code: "ScopeMapInUse", noun: "Scope map" },
        ..CHILD
    },
    TypeSpec {
        types: &[("registries", "registry"), ("tokens", "token")],
        full: "Microsoft.ContainerRegistry/registries/tokens",
        members: &[
            Member { path: "properties.scopeMapId", kind: Kind::Text, required: true },
            Member {
                path: "properties.status",
                kind: Kind::OneOf(&["enabled", "disabled"]),
                required: false,
            },
        ],
        references: &[Reference {
            path: "properties.scopeMapId",
            target: "Microsoft.ContainerRegistry/registries/scopeMaps",
            action: None,
        }],
        compute: |draft| {
            draft.default("status", json!("enabled"));
            // Passwords are made by an action; their times are shown by the action's rules.
            draft.keep("credentials", json!({"passwords": [], "certificates": []}));
            Ok(())
        },
        ..CHILD
    },
];
