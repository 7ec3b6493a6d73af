//! The members of a cluster's body.

use crate::hcp::members::{Body, Kind, Member, Move};
use crate::hcp::resource::envelope;
use crate::hcp::version::ApiVersion::{
    V2024_06_10Preview, V2025_12_23Preview, V2026_06_30Preview, V2026_10_01,
};
use crate::schema::{Presence, pattern};

pub const SUBNET: &str = "Microsoft.Network/virtualNetworks/subnets";
pub const SECURITY_GROUP: &str = "Microsoft.Network/networkSecurityGroups";
pub const USER_ASSIGNED_IDENTITY: &str = "Microsoft.ManagedIdentity/userAssignedIdentities";

pattern!(
    /// The first label of a cluster's domain.
    DNS_LABEL,
    "^[a-z]([-a-z0-9]*[a-z0-9])?$",
    "(must be a valid DNS RFC 1035 label)"
);

pub static BODY: Body = Body { members: MEMBERS, moves: &[VAULT_NAME] };

/// The oldest version keeps the vault's name in the key.
const VAULT_NAME: Move = Move {
    until: V2024_06_10Preview,
    parent: &["properties", "etcd", "dataEncryption", "customerManaged", "kms"],
    old: &["activeKey", "vaultName"],
    new: &["vaultName"],
};

static MEMBERS: &[Member] = &[
    envelope::ID,
    envelope::IDENTITY,
    envelope::LOCATION,
    envelope::NAME,
    Member::object("properties", PROPERTIES),
    envelope::SYSTEM_DATA,
    envelope::TAGS,
    envelope::TYPE,
];

static PROPERTIES: &[Member] = &[
    // Only the list of networks inside can be changed; older versions of the contract do not state it.
    Member::object("api", API),
    Member::object("autoscaling", AUTOSCALING),
    Member::object("clusterImageRegistry", IMAGE_REGISTRY),
    Member::object("console", CONSOLE).read_only(),
    Member::word("cryptoRestrictions", &["None", "FIPS"])
        .since(V2026_06_30Preview)
        .create_only()
        .default_text("None"),
    Member::object("dns", DNS),
    Member::object("etcd", ETCD),
    Member::list("imageDigestMirrors", &IMAGE_DIGEST_MIRROR).since(V2025_12_23Preview).items(0, 240),
    Member::object("ingress", INGRESS).since(V2026_06_30Preview),
    Member::object("network", NETWORK),
    Member::int("nodeDrainTimeoutMinutes").range(0, 10080).default_int(0),
    Member::object("platform", PLATFORM).required(),
    envelope::PROVISIONING_STATE,
    Member::object("status", envelope::STATUS).since(V2026_06_30Preview).read_only(),
    Member::object("version", VERSION).required_from(V2025_12_23Preview),
];

static API: &[Member] = &[
    Member::list("authorizedCidrs", &ANY_TEXT).items(1, 500),
    Member::shown("url", "string"),
    Member::word("visibility", &["Public", "Private"]).create_only().default_text("Public"),
];

static ANY_TEXT: Kind = Kind::Text { min: 0, max: None, pattern: None };

static AUTOSCALING: &[Member] = &[
    Member::int("maxNodeProvisionTimeSeconds")
        .at_least(1)
        .default_int(900)
        .null_refused_from(V2025_12_23Preview),
    Member::int("maxNodesTotal").range(0, 500).default_int(0).null_refused_from(V2025_12_23Preview),
    Member::int("maxPodGracePeriodSeconds")
        .at_least(1)
        .default_int(600)
        .null_refused_from(V2025_12_23Preview),
    Member::int("podPriorityThreshold").default_int(-10).null_refused_from(V2025_12_23Preview),
];

static IMAGE_REGISTRY: &[Member] =
    &[Member::word("state", &["Enabled", "Disabled"]).create_only().default_text("Enabled")];

static CONSOLE: &[Member] = &[Member::shown("url", "string")];

static DNS: &[Member] = &[
    Member::shown("baseDomain", "string"),
    Member::text("baseDomainPrefix").length(0, 15).matching(&DNS_LABEL).create_only().keep(),
];

static ETCD: &[Member] = &[Member::object("dataEncryption", DATA_ENCRYPTION)];

static DATA_ENCRYPTION: &[Member] = &[
    Member::optional("customerManaged", CUSTOMER_MANAGED),
    Member::word("keyManagementMode", &["CustomerManaged"]).create_only().required().hint_until(
        V2025_12_23Preview,
        "\"CustomerManaged\" must be sent; \"PlatformManaged\", the default of this api-version, is not supported",
    ),
];

static CUSTOMER_MANAGED: &[Member] = &[
    Member::word("encryptionType", &["KMS"]).create_only().default_text("KMS"),
    Member::optional("kms", KMS),
];

static KMS: &[Member] = &[
    Member::object("activeKey", KMS_KEY).required(),
    Member::word("keyVaultType", &["KeyVault", "ManagedHSM"]).since(V2026_10_01).create_only().keep(),
    Member::text("vaultName").length(1, 255).create_only().required(),
    Member::word("visibility", &["Public", "Private"])
        .since(V2025_12_23Preview)
        .create_only()
        .required()
        .initially("Public")
        .null_refused_from(V2025_12_23Preview),
];

static KMS_KEY: &[Member] = &[
    Member::text("name").length(1, 255).create_only().required(),
    Member::text("version").length(1, 255).updatable_from(V2026_06_30Preview).required(),
];

static REPOSITORY: Kind = Kind::Text { min: 0, max: Some(255), pattern: None };

static IMAGE_DIGEST_MIRROR: Kind = Kind::Object(
    &[
        Member::list("mirrors", &REPOSITORY).items(1, 255).required(),
        Member::text("source").length(0, 255).required(),
    ],
    Presence::Optional,
);

static INGRESS: &[Member] = &[Member::word("type", &["Public", "Private"])
    .since(V2026_06_30Preview)
    .create_only()
    .default_text("Public")];

static NETWORK: &[Member] = &[
    Member::int("hostPrefix")
        .range(23, 26)
        .create_only()
        .default_int(23)
        .null_refused_from(V2025_12_23Preview),
    Member::text("machineCidr").create_only().default_text("10.0.0.0/16"),
    Member::word("networkType", &["OVNKubernetes", "Other"]).create_only().default_text("OVNKubernetes"),
    Member::text("podCidr").create_only().default_text("10.128.0.0/14"),
    Member::text("serviceCidr").create_only().default_text("172.30.0.0/16"),
];

static PLATFORM: &[Member] = &[
    Member::object("containerRegistry", CONTAINER_REGISTRY).since(V2026_10_01),
    Member::shown("issuerUrl", "string"),
    Member::text("managedResourceGroup").create_only().keep(),
    Member::arm_id("networkSecurityGroupId", SECURITY_GROUP).create_only().required(),
    Member::object("operatorsAuthentication", OPERATORS_AUTHENTICATION).required(),
    Member::word("outboundType", &["LoadBalancer"]).create_only().default_text("LoadBalancer"),
    Member::arm_id("subnetId", SUBNET).create_only().required(),
    Member::arm_id("vnetIntegrationSubnetId", SUBNET)
        .since(V2025_12_23Preview)
        .create_only()
        .required()
        .null_refused_from(V2025_12_23Preview),
];

static CONTAINER_REGISTRY: &[Member] =
    &[Member::arm_id("managedIdentity", USER_ASSIGNED_IDENTITY).since(V2026_10_01)];

static OPERATORS_AUTHENTICATION: &[Member] =
    &[Member::object("userAssignedIdentities", OPERATOR_IDENTITIES).required()];

static OPERATOR_IDENTITIES: &[Member] = &[
    Member::map("controlPlaneOperators", &IDENTITY_ID).create_only().required(),
    Member::map("dataPlaneOperators", &IDENTITY_ID).create_only().required(),
    Member::arm_id("serviceManagedIdentity", USER_ASSIGNED_IDENTITY).create_only(),
];

static IDENTITY_ID: Kind = Kind::Id(USER_ASSIGNED_IDENTITY);

static VERSION: &[Member] = &[
    Member::text("channelGroup").create_only().default_text("stable"),
    Member::text("id").updatable_from(V2025_12_23Preview).required(),
];
