//! What must exist, as data: items with the items that they need first.

mod global;
mod management;
mod regional;
mod roles;
mod service;

use aro_arm::ResourceId;
use aro_cloud::resources::{FederatedCredentialSpec, NsgSpec, RecordSet, SubnetSpec, VnetSpec};
use serde_json::Value;
use uuid::Uuid;

pub use roles::Role;

use crate::layout::{RegionLayout, identity};

/// An item of a plan, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(usize);

impl Key {
    pub(crate) fn at(place: usize) -> Self {
        Self(place)
    }

    /// Its place among the items.
    pub fn index(self) -> usize {
        self.0
    }
}

/// One thing that must exist.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What.
    pub spec: Spec,
    /// What must exist before.
    pub after: Vec<Key>,
}

/// What an item makes.
#[derive(Debug, Clone, PartialEq)]
pub enum Spec {
    /// A resource group.
    Group(ResourceId),
    /// A public DNS zone.
    Zone(ResourceId),
    /// NS records of a zone in its parent.
    Delegation {
        /// The parent zone.
        parent: ResourceId,
        /// The zone.
        child: ResourceId,
    },
    /// A record set.
    Records {
        /// Its zone.
        zone: ResourceId,
        /// The set.
        set: RecordSet,
    },
    /// An A record of a public address, which is known when the address exists.
    AddressRecord {
        /// The zone.
        zone: ResourceId,
        /// The relative name.
        name: &'static str,
        /// The address.
        address: Key,
    },
    /// A container registry.
    Registry(ResourceId),
    /// A Key Vault with access by roles.
    Vault(ResourceId),
    /// A storage account without account keys.
    Storage {
        /// The account.
        id: ResourceId,
        /// How it is replicated.
        sku: &'static str,
    },
    /// A container of blobs.
    Container {
        /// The account.
        account: ResourceId,
        /// The container.
        name: &'static str,
    },
    /// The static website of a storage account, with its container.
    Website(ResourceId),
    /// A user-assigned identity.
    Identity(ResourceId),
    /// A service account that acts as an identity.
    FederatedCredential {
        /// The identity.
        identity: ResourceId,
        /// The credential's name.
        name: String,
        /// The service account.
        spec: FederatedCredentialSpec,
    },
    /// A role assignment.
    Assignment {
        /// Where.
        scope: ResourceId,
        /// The identity that gets it.
        identity: Key,
        /// The role.
        role: Role,
    },
    /// A virtual network.
    Vnet(ResourceId, VnetSpec),
    /// A subnet.
    Subnet(ResourceId, SubnetSpec),
    /// A network security group.
    Nsg(ResourceId, NsgSpec),
    /// A public address.
    Address(ResourceId),
    /// A resource whose members are passed as they are.
    Resource {
        /// Its id.
        id: ResourceId,
        /// The api-version.
        version: &'static str,
        /// Its members.
        body: Value,
    },
}

impl Spec {
    /// The resource that it makes, or makes a part of.
    pub fn target(&self) -> &ResourceId {
        match self {
            Self::Group(id)
            | Self::Zone(id)
            | Self::Delegation { child: id, .. }
            | Self::Records { zone: id, .. }
            | Self::AddressRecord { zone: id, .. }
            | Self::Registry(id)
            | Self::Vault(id)
            | Self::Storage { id, .. }
            | Self::Container { account: id, .. }
            | Self::Website(id)
            | Self::Identity(id)
            | Self::FederatedCredential { identity: id, .. }
            | Self::Assignment { scope: id, .. }
            | Self::Vnet(id, _)
            | Self::Subnet(id, _)
            | Self::Nsg(id, _)
            | Self::Address(id)
            | Self::Resource { id, .. } => id,
        }
    }
}

/// The items of a region. Each depends on items before it only.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The region that it makes.
    pub layout: RegionLayout,
    items: Vec<Item>,
}

impl Plan {
    /// The items, by place.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    fn add(&mut self, spec: Spec, after: &[Key]) -> Key {
        let key = Key(self.items.len());
        self.items.push(Item { spec, after: after.to_vec() });
        key
    }

    fn location(&self) -> String {
        self.layout.params.location.clone()
    }

    /// Gives an identity a role.
    fn assign(&mut self, identity: Key, role: Role, scope: (&ResourceId, Key)) {
        let (id, key) = scope;
        self.add(Spec::Assignment { scope: id.clone(), identity, role }, &[identity, key]);
    }

    /// An identity that a service account of a cluster acts as.
    fn workload_identity(&mut self, group: Key, cluster: &ResourceId, workload: &Workload) -> Key {
        let place = self.items.get(group.index()).map(|item| item.spec.target().clone());
        let id = identity(place.as_ref().unwrap_or(cluster), workload.identity);
        let key = self.add(Spec::Identity(id.clone()), &[group]);
        let issuer = cluster_issuer(&self.layout, cluster);
        let spec = FederatedCredentialSpec {
            audience: workload.audience.to_owned(),
            ..FederatedCredentialSpec::service_account(&issuer, workload.namespace, workload.service_account)
        };
        let name = format!("{}-{}-fedcred", workload.identity, self.layout.params.location);
        self.add(Spec::FederatedCredential { identity: id, name, spec }, &[key]);
        key
    }
}

/// A service account and the identity that it acts as.
struct Workload {
    identity: &'static str,
    namespace: &'static str,
    service_account: &'static str,
    audience: &'static str,
}

/// A workload whose tokens are exchanged with Entra ID.
const fn workload(
    identity: &'static str,
    namespace: &'static str,
    service_account: &'static str,
) -> Workload {
    let audience = aro_cloud::resources::TOKEN_EXCHANGE;
    Workload { identity, namespace, service_account, audience }
}

/// What pulls images.
const IMAGE_PULLER: Workload = Workload {
    audience: "api://AzureCRTokenExchange",
    ..workload("image-puller", "image-puller", "image-puller")
};

/// The issuer of a cluster's service account tokens, of the form that AKS gives it.
fn cluster_issuer(layout: &RegionLayout, cluster: &ResourceId) -> String {
    let (location, tenant) = (&layout.params.location, layout.params.tenant);
    let id = Uuid::new_v5(&tenant, cluster.to_lower().as_bytes());
    format!("https://{location}.oic.prod-aks.azure.com/{tenant}/{id}/")
}

/// Everything that must exist for a region.
pub fn plan(layout: &RegionLayout) -> Plan {
    let mut plan = Plan { layout: layout.clone(), items: Vec::new() };
    let global = global::add(&mut plan);
    let regional = regional::add(&mut plan, &global);
    let service = service::add(&mut plan, &global, &regional);
    for stamp in &layout.management {
        management::add(&mut plan, &global, &service, stamp);
    }
    plan
}

#[cfg(test)]
mod tests;
