//! The members of an external auth's body. All of them can be changed.

use crate::hcp::members::{Body, Kind, Member};
use crate::hcp::resource::envelope;
use crate::hcp::version::ApiVersion::{V2025_12_23Preview, V2026_06_30Preview};
use crate::schema::Presence;

pub static BODY: Body = Body { members: MEMBERS, moves: &[] };

static MEMBERS: &[Member] = &[
    envelope::ID,
    envelope::NAME,
    Member::object("properties", PROPERTIES),
    envelope::SYSTEM_DATA,
    envelope::TYPE,
];

static PROPERTIES: &[Member] = &[
    Member::object("claim", CLAIM).required(),
    Member::list("clients", &CLIENT).items(0, 20),
    // One condition, where newer versions have a list in `status`.
    Member::shown("condition", "object").until(V2025_12_23Preview),
    Member::object("issuer", ISSUER).required(),
    envelope::PROVISIONING_STATE,
    Member::object("status", envelope::STATUS_WITHOUT_VERSIONS).since(V2026_06_30Preview).read_only(),
];

static CLAIM: &[Member] =
    &[Member::object("mappings", MAPPINGS).required(), Member::list("validationRules", &VALIDATION_RULE)];

static MAPPINGS: &[Member] =
    &[Member::optional("groups", GROUPS), Member::object("username", USERNAME).required()];

static GROUPS: &[Member] = &[Member::text("claim").length(1, 256).required(), Member::text("prefix")];

static USERNAME: &[Member] = &[
    Member::text("claim").length(1, 256).required(),
    Member::text("prefix"),
    Member::word("prefixPolicy", &["None", "Prefix", "NoPrefix"]).default_text("None"),
];

static VALIDATION_RULE: Kind = Kind::Object(
    &[
        Member::object("requiredClaim", REQUIRED_CLAIM),
        Member::word("type", &["RequiredClaim"]).default_text("RequiredClaim"),
    ],
    Presence::Optional,
);

static REQUIRED_CLAIM: &[Member] = &[
    Member::text("claim").at_least_bytes(1).required(),
    Member::text("requiredValue").at_least_bytes(1).required(),
];

static CLIENT: Kind = Kind::Object(
    &[
        Member::text("clientId").at_least_bytes(1).required(),
        Member::object("component", COMPONENT).required(),
        Member::list("extraScopes", &ANY_TEXT),
        Member::word("type", &["Confidential", "Public"]).required(),
    ],
    Presence::Optional,
);

static COMPONENT: &[Member] = &[
    Member::text("authClientNamespace").length(1, 63).required(),
    Member::text("name").length(1, 256).required(),
];

static ANY_TEXT: Kind = Kind::Text { min: 0, max: None, pattern: None };
/// An audience is not empty.
static AUDIENCE: Kind = Kind::Text { min: 1, max: None, pattern: None };

static ISSUER: &[Member] = &[
    Member::list("audiences", &AUDIENCE).items(1, 10).required(),
    Member::text("ca"),
    Member::text("url").required(),
];
