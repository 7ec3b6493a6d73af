//! A resource type as data.
//!
//! Everything the engine does with a type follows from its [`TypeSpec`]: its routes, its api-versions, what a body must look
//! like, what it refers to, which children live inside of its document, which members the cloud computes. A type without
//! behaviour of its own is a table row and no code.

use serde_json::{Map, Value};

use crate::compute::Draft;
use crate::refusal::Refusal;

/// A type's word in paths and the name of its instances in patterns.
pub type TypeName = (&'static str, &'static str);

/// One resource type.
#[derive(Debug, Clone, Copy)]
pub struct TypeSpec {
    /// The provider's namespace: `Microsoft.Network`.
    pub namespace: &'static str,
    /// The words of the type with the names of their instances, the parents' first.
    pub types: &'static [TypeName],
    /// The full type: `Microsoft.Network/dnsZones/A`.
    pub full: &'static str,
    /// The api-versions it is served in.
    pub versions: &'static [&'static str],
    /// Where instances live.
    pub home: Home,
    /// What `location` must be.
    pub placement: Placement,
    /// What names are allowed.
    pub naming: Naming,
    /// What the engine checks of a body; members that are not named are kept as they are.
    pub members: &'static [Member],
    /// What a body refers to.
    pub references: &'static [Reference],
    /// Children that live inside of the document.
    pub inline: &'static [Inline],
    /// Whether writes are long-running operations.
    pub long_running: bool,
    /// The status of a PUT that creates: 201, or what else the type's clients expect.
    pub created_status: u16,
    /// Fills the members that the cloud computes; the last word about a body.
    pub compute: fn(&mut Draft<'_>) -> Result<(), Refusal>,
    /// Why an instance that others refer to cannot be deleted.
    pub in_use: InUse,
    /// What happens outside of the document.
    pub effect: Effect,
    /// Whether PATCH replaces tags only, as Azure does for most network types.
    pub patch_tags_only: bool,
    /// How many instances a subscription may have in one location.
    pub quota: Option<Quota>,
    /// The secrets that an instance has from its creation on.
    pub secrets: &'static [(&'static str, SecretKind)],
    /// What clients can do with an instance beside reading and writing it.
    pub actions: &'static [ItemAction],
}

/// A type with the usual answers to every question; rows of the tables override what differs.
pub const PLAIN: TypeSpec = TypeSpec {
    namespace: "",
    types: &[],
    full: "",
    versions: &[],
    home: Home::Group,
    placement: Placement::Regional,
    naming: Naming { longest: 80, shape: NameShape::Word, unique_everywhere: None },
    members: &[],
    references: &[],
    inline: &[],
    long_running: false,
    created_status: 201,
    compute: |_| Ok(()),
    in_use: InUse { code: "InUseResourceCannotBeDeleted", noun: "Resource" },
    effect: Effect::None,
    patch_tags_only: false,
    quota: None,
    secrets: &[],
    actions: &[],
};

/// Where instances of a type live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// In a resource group.
    Group,
    /// Below any scope.
    AnyScope,
}

/// What `location` must be. A type with a location also has tags and is part of generic lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// An Azure region.
    Regional,
    /// `global`.
    Global,
    /// It has none: a child or an extension.
    None,
}

/// What names are allowed.
#[derive(Debug, Clone, Copy)]
pub struct Naming {
    /// In characters.
    pub longest: usize,
    /// Which characters.
    pub shape: NameShape,
    /// The code of the refusal when the name exists in another group or subscription; `None` if it may.
    pub unique_everywhere: Option<&'static str>,
}

/// Which characters a name may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameShape {
    /// Letters, digits, `_`, `-`, `.`; begins with a letter or digit, ends with a letter, digit or `_`.
    Word,
    /// The same, or with one `_` before it: names that Azure itself gives.
    SystemWord,
    /// Lower-case letters and digits, at least three.
    LowerAlphanumeric,
    /// Letters and digits, at least five.
    Alphanumeric,
    /// Letters, digits and `-`, at least three; begins with a letter, ends with a letter or digit.
    Hyphenated,
    /// A DNS name of at least two labels.
    DnsZone,
    /// A record set: labels, `@` or a leading `*`.
    DnsRecord,
    /// A GUID.
    Guid,
    /// One fixed word.
    Default,
}

/// A member of a body that the engine checks.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Where: `properties.subnets[].properties.addressPrefix`.
    pub path: &'static str,
    /// What it must be.
    pub kind: MemberKind,
    /// Whether it must be there.
    pub required: bool,
}

/// What a member must be. `null` counts as absent.
#[derive(Debug, Clone, Copy)]
pub enum MemberKind {
    /// A text.
    Text,
    /// A text out of a closed set, compared without case; it is stored in the case of the set.
    OneOf(&'static [&'static str]),
    /// A whole number in a range.
    Integer(i64, i64),
    /// `true` or `false`.
    Flag,
    /// A network in CIDR notation.
    Network,
    /// An IPv4 or IPv6 address.
    Address,
    /// A GUID.
    Guid,
    /// An object.
    Object,
    /// A list.
    List,
    /// A list with at least one item.
    NonEmptyList,
    /// A list of texts.
    Texts,
    /// A list of networks in CIDR notation.
    Networks,
}

/// A place in a body that holds the id of another resource.
#[derive(Debug, Clone, Copy)]
pub struct Reference {
    /// Where: `properties.networkSecurityGroup.id`.
    pub path: &'static str,
    /// The full type of what it names.
    pub target: &'static str,
    /// The action on the target that the caller needs, below the target's type; `None` if none.
    pub action: Option<&'static str>,
}

/// Children of one type that live inside of their parent's document: an array of `{name, properties}`.
#[derive(Debug, Clone, Copy)]
pub struct Inline {
    /// The member of `properties` that holds them, also the type's word.
    pub member: &'static str,
    /// The full type of the children.
    pub full: &'static str,
    /// Whether clients may write them one by one.
    pub writable: bool,
    /// Why one that others refer to cannot be removed.
    pub in_use: InUse,
}

/// Why something that others refer to cannot be deleted.
#[derive(Debug, Clone, Copy)]
pub struct InUse {
    pub code: &'static str,
    /// How the text names it.
    pub noun: &'static str,
}

/// What happens outside of the document of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    None,
    /// A user-assigned identity exists in the directory.
    Identity,
    /// A federated credential of an identity exists in the directory.
    FederatedCredential,
    /// A role assignment or definition changes who may do what.
    Authorization,
}

/// What a secret is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// 512 bits in base64, for signatures.
    Key,
    /// A password.
    Password,
}

/// An action on an instance: a POST to a word below it.
#[derive(Debug, Clone, Copy)]
pub struct ItemAction {
    pub word: &'static str,
    pub kind: ActionKind,
}

/// What an action does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// Shows the keys of a storage account.
    ListKeys,
    /// Replaces one of them.
    RegenerateKey,
    /// Shows the passwords of a registry's administrator.
    ListCredentials,
    /// Replaces one of them.
    RegenerateCredential,
    /// Makes passwords of a registry's token.
    GenerateCredentials,
}

/// How many instances of a type a subscription may have in one location.
#[derive(Debug, Clone, Copy)]
pub struct Quota {
    /// Its name among the usages: `PublicIPAddresses`.
    pub name: &'static str,
    /// How people read it.
    pub label: &'static str,
    pub limit: u32,
    pub code: &'static str,
}

impl TypeSpec {
    /// The type's own word.
    pub fn word(&self) -> &'static str {
        self.types.last().map_or("", |(word, _)| word)
    }

    /// Whether it is a child of another type and has a document of its own.
    pub fn is_child(&self) -> bool {
        self.types.len() > 1
    }

    /// Whether generic lists contain it.
    pub fn is_tracked(&self) -> bool {
        self.placement != Placement::None
    }
}

/// Members of every tracked resource beside `properties`.
pub(crate) const ENVELOPE: [&str; 10] = [
    "location",
    "tags",
    "kind",
    "sku",
    "identity",
    "zones",
    "plan",
    "managedBy",
    "extendedLocation",
    "properties",
];

/// The parts of a body that are stored: the envelope, without what the cloud derives.
pub(crate) fn envelope(body: Map<String, Value>) -> Map<String, Value> {
    body.into_iter().filter(|(name, _)| ENVELOPE.contains(&name.as_str())).collect()
}
