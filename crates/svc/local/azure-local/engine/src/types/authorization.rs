//! Role definitions and assignments, below any scope.

use serde_json::json;

use crate::spec::{Effect, Home, Member, MemberKind as Kind, NameShape, Naming, PLAIN, Placement, TypeSpec};

const VERSIONS: &[&str] = &[
    "2015-07-01",
    "2018-01-01-preview",
    "2020-04-01-preview",
    "2020-10-01-preview",
    "2022-04-01",
    "2022-05-01-preview",
    "2023-07-01-preview",
];

const AT_SCOPE: TypeSpec = TypeSpec {
    namespace: "Microsoft.Authorization",
    versions: VERSIONS,
    home: Home::AnyScope,
    placement: Placement::None,
    naming: Naming { longest: 64, shape: NameShape::Guid, unique_everywhere: None },
    effect: Effect::Authorization,
    ..PLAIN
};

/// The types.
pub const TYPES: &[TypeSpec] = &[
    TypeSpec {
        types: &[("roleAssignments", "assignment")],
        full: "Microsoft.Authorization/roleAssignments",
        members: &[
            Member { path: "properties.roleDefinitionId", kind: Kind::Text, required: true },
            Member { path: "properties.principalId", kind: Kind::Guid, required: true },
            Member {
                path: "properties.principalType",
                kind: Kind::OneOf(&["User", "Group", "ServicePrincipal", "ForeignGroup", "Device"]),
                required: false,
            },
            Member { path: "properties.condition", kind: Kind::Text, required: false },
            Member { path: "properties.description", kind: Kind::Text, required: false },
        ],
        compute: |draft| {
            draft.default("principalType", json!("ServicePrincipal"));
            draft.immutable("principalId")?;
            draft.immutable("roleDefinitionId")
        },
        ..AT_SCOPE
    },
    TypeSpec {
        types: &[("roleDefinitions", "definition")],
        full: "Microsoft.Authorization/roleDefinitions",
        members: &[
            Member { path: "properties.roleName", kind: Kind::Text, required: true },
            Member { path: "properties.permissions", kind: Kind::NonEmptyList, required: true },
            Member { path: "properties.permissions[]", kind: Kind::Object, required: false },
            Member { path: "properties.permissions[].actions", kind: Kind::Texts, required: false },
            Member { path: "properties.permissions[].notActions", kind: Kind::Texts, required: false },
            Member { path: "properties.permissions[].dataActions", kind: Kind::Texts, required: false },
            Member { path: "properties.permissions[].notDataActions", kind: Kind::Texts, required: false },
            Member { path: "properties.assignableScopes", kind: Kind::Texts, required: true },
            Member { path: "properties.description", kind: Kind::Text, required: false },
        ],
        compute: |draft| {
            draft.set("type", json!("CustomRole"));
            Ok(())
        },
        ..AT_SCOPE
    },
];
