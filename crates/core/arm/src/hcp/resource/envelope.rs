//! The members around `properties` that resources share, and those of `status`.

use crate::hcp::members::{Kind, Member};
use crate::hcp::version::ApiVersion::V2026_10_01;

pub const ID: Member = Member::shown("id", "string");
/// The URL names a resource; a name in the body is read to be compared with it.
pub const NAME: Member = Member::text("name").create_only();
pub const TYPE: Member = Member::shown("type", "string");
pub const SYSTEM_DATA: Member = Member::shown("systemData", "object");
pub const PROVISIONING_STATE: Member = Member::shown("provisioningState", "string");

/// Any text is taken, and the server's own region used: there is one server per region.
pub const LOCATION: Member = Member::text("location").create_only();
pub const TAGS: Member = Member::map("tags", &TAG).keep();
static TAG: Kind = Kind::Text { min: 0, max: None, pattern: None };

pub const IDENTITY: Member = Member::optional("identity", IDENTITY_MEMBERS);
static IDENTITY_MEMBERS: &[Member] = &[
    Member::shown("principalId", "string"),
    Member::shown("tenantId", "string"),
    Member::word("type", &["None", "SystemAssigned", "SystemAssigned,UserAssigned", "UserAssigned"])
        .required(),
    Member::id_map("userAssignedIdentities", "Microsoft.ManagedIdentity/userAssignedIdentities"),
];

/// Of a cluster and a node pool.
pub static STATUS: &[Member] =
    &[Member::shown("activeVersions", "array").since(V2026_10_01), Member::shown("conditions", "array")];
/// Of an external auth.
pub static STATUS_WITHOUT_VERSIONS: &[Member] = &[Member::shown("conditions", "array")];
