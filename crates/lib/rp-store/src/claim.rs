//! Claims: rights of use that only one resource may hold, kept race-free by the store itself.
//!
//! A managed resource group, a subnet or a network security group may belong to one cluster only, and a cluster may have
//! one external auth. Reading all clusters before a create would be slow and would race; instead the create writes
//! a claim whose key is what is claimed, in the same batch. Two creates cannot both succeed.
//!
//! A claim counts only while its holder's document exists: the next create takes over the claim of a vanished holder. A claim
//! that outlives its holder therefore blocks nothing.

use aro_arm::ResourceId;
use aro_arm::hcp::NAMESPACE;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClaimKind {
    /// A managed resource group's name.
    ManagedResourceGroup,
    /// A subnet.
    Subnet,
    /// A network security group.
    NetworkSecurityGroup,
    /// The one external auth of a cluster.
    ExternalAuth,
}

impl ClaimKind {
    const fn word(self) -> &'static str {
        match self {
            Self::ManagedResourceGroup => "managedResourceGroup",
            Self::Subnet => "subnet",
            Self::NetworkSecurityGroup => "networkSecurityGroup",
            Self::ExternalAuth => "externalAuth",
        }
    }
}

/// A claim as stored. Holders are in the order they came; more than one only where sharing is allowed (node pools
/// of different clusters on one subnet).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// What kind of thing is claimed.
    pub kind: ClaimKind,
    /// The thing, in lower case.
    pub what: String,
    /// The resources that hold it.
    pub holders: Vec<ResourceId>,
}

impl Claim {
    /// A claim of one holder.
    pub fn new(kind: ClaimKind, what: &str, holder: ResourceId) -> Self {
        Self { kind, what: what.to_lowercase(), holders: vec![holder] }
    }

    /// The id it is stored under.
    pub fn id(&self, subscription: &str) -> ResourceId {
        // The claimed thing may hold slashes; a name may not.
        let name =
            format!("{}-{}", self.kind.word(), Uuid::new_v5(&Uuid::NAMESPACE_OID, self.what.as_bytes()));
        ResourceId::in_subscription(subscription, NAMESPACE, &[("claims", &name)])
    }
}
