//! Storage accounts as resources. Blobs belong to their data plane.

use serde_json::json;

use crate::spec::{
    ActionKind, InUse, ItemAction, Member, MemberKind as Kind, NameShape, Naming, PLAIN, Placement,
    SecretKind, TypeSpec,
};

const VERSIONS: &[&str] = &[
    "2021-09-01",
    "2022-05-01",
    "2022-09-01",
    "2023-01-01",
    "2023-05-01",
    "2024-01-01",
    "2025-01-01",
    "2025-06-01",
    "2025-08-01",
];

/// The types.
pub const TYPES: &[TypeSpec] = &[
    TypeSpec {
        namespace: "Microsoft.Storage",
        types: &[("storageAccounts", "account")],
        full: "Microsoft.Storage/storageAccounts",
        versions: VERSIONS,
        naming: Naming {
            longest: 24,
            shape: NameShape::LowerAlphanumeric,
            unique_everywhere: Some("StorageAccountAlreadyTaken"),
        },
        members: &[
            Member { path: "sku", kind: Kind::Object, required: true },
            Member { path: "sku.name", kind: Kind::Text, required: true },
            Member { path: "properties.allowSharedKeyAccess", kind: Kind::Flag, required: false },
            Member { path: "properties.allowBlobPublicAccess", kind: Kind::Flag, required: false },
            Member { path: "properties.supportsHttpsTrafficOnly", kind: Kind::Flag, required: false },
        ],
        compute: |draft| {
            let name = draft.id.name().to_owned();
            let endpoint = |kind: &str| format!("https://{name}.{kind}.core.windows.net/");
            draft.set(
                "primaryEndpoints",
                json!({"blob": endpoint("blob"), "web": endpoint("web"), "dfs": endpoint("dfs"), "file": endpoint("file"),
                       "queue": endpoint("queue"), "table": endpoint("table")}),
            );
            let location = json!(draft.location);
            draft.set("primaryLocation", location);
            draft.set("statusOfPrimary", json!("available"));
            draft.default("allowSharedKeyAccess", json!(true));
            draft.default("allowBlobPublicAccess", json!(false));
            draft.default("minimumTlsVersion", json!("TLS1_2"));
            draft.default("supportsHttpsTrafficOnly", json!(true));
            draft.default("accessTier", json!("Hot"));
            draft.body.entry("kind").or_insert_with(|| json!("StorageV2"));
            Ok(())
        },
        // A client of storage accounts knows 200 and 202 only.
        created_status: 200,
        in_use: InUse { code: "InUseStorageAccountCannotBeDeleted", noun: "Storage account" },
        // The last one signs user delegation keys and is never shown.
        secrets: &[("key1", SecretKind::Key), ("key2", SecretKind::Key), ("userDelegation", SecretKind::Key)],
        actions: &[
            ItemAction { word: "listKeys", kind: ActionKind::ListKeys },
            ItemAction { word: "regenerateKey", kind: ActionKind::RegenerateKey },
        ],
        ..PLAIN
    },
    TypeSpec {
        namespace: "Microsoft.Storage",
        types: &[("storageAccounts", "account"), ("blobServices", "service")],
        full: "Microsoft.Storage/storageAccounts/blobServices",
        versions: VERSIONS,
        placement: Placement::None,
        naming: Naming { longest: 7, shape: NameShape::Default, unique_everywhere: None },
        ..PLAIN
    },
];
