//! The members of a node pool's body.

use crate::hcp::cluster::schema::SUBNET;
use crate::hcp::members::{Body, Kind, Member};
use crate::hcp::resource::envelope;
use crate::hcp::version::ApiVersion::{V2025_12_23Preview, V2026_06_30Preview};
use crate::schema::Presence;

pub const DISK_ENCRYPTION_SET: &str = "Microsoft.Compute/diskEncryptionSets";

pub static BODY: Body = Body { members: MEMBERS, moves: &[] };

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
    Member::bool("autoRepair").create_only().default_bool(true).null_refused_from(V2025_12_23Preview),
    Member::optional("autoScaling", AUTO_SCALING),
    Member::list("labels", &LABEL),
    Member::int("nodeDrainTimeoutMinutes").range(0, 10080),
    Member::object("platform", PLATFORM).create_only().atomic().required(),
    envelope::PROVISIONING_STATE,
    Member::int("replicas").at_least(0).default_int(0),
    Member::object("status", envelope::STATUS).since(V2026_06_30Preview).read_only(),
    Member::list("taints", &TAINT),
    Member::object("version", VERSION),
];

static AUTO_SCALING: &[Member] =
    &[Member::int("max").at_least(0).default_int(0), Member::int("min").at_least(0).default_int(0)];

static LABEL: Kind =
    Kind::Object(&[Member::text("key").required(), Member::text("value")], Presence::Optional);

static TAINT: Kind = Kind::Object(
    &[
        Member::word("effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"]).required(),
        Member::text("key").length(1, 316).required(),
        Member::text("value").length(0, 63),
    ],
    Presence::Optional,
);

static PLATFORM: &[Member] = &[
    Member::text("availabilityZone").create_only(),
    Member::bool("enableEncryptionAtHost").create_only().default_bool(false),
    Member::object("osDisk", OS_DISK).create_only(),
    Member::arm_id("subnetId", SUBNET).create_only().keep(),
    Member::text("vmSize").create_only().required(),
];

/// The largest size depends on the type of the disk: see `validate`.
static OS_DISK: &[Member] = &[
    Member::word("diskStorageAccountType", &["Premium_LRS", "StandardSSD_LRS", "Standard_LRS"])
        .create_only()
        .default_text("Premium_LRS"),
    Member::word("diskType", &["Managed", "Ephemeral"])
        .since(V2025_12_23Preview)
        .create_only()
        .default_text("Managed"),
    Member::arm_id("encryptionSetId", DISK_ENCRYPTION_SET).create_only(),
    Member::int("sizeGiB").at_least(64).create_only().default_int(64),
];

static VERSION: &[Member] = &[
    Member::text("channelGroup").create_only().default_text("stable"),
    Member::text("id").required_from(V2025_12_23Preview).keep(),
];
