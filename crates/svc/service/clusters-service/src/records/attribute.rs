//! Attributes of clusters that operators search by: small documents whose resource ids begin with the attribute's value.

use aro_ocm::{Cluster, ClusterId};
use aro_store::{Kind, Names};
use serde::{Deserialize, Serialize};

use super::{Record, attribute_names};

/// An attribute with a document of its own. Subscription, resource group and name together are in the cluster's own resource
/// id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribute {
    /// The cluster's name.
    Name,
    /// The managed resource group.
    ManagedResourceGroup,
    /// The customer's tenant.
    Tenant,
    /// The domain prefix.
    DomainPrefix,
    /// The subnet of nodes.
    Subnet,
    /// The network security group.
    NetworkSecurityGroup,
}

impl Attribute {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Name,
        Self::ManagedResourceGroup,
        Self::Tenant,
        Self::DomainPrefix,
        Self::Subnet,
        Self::NetworkSecurityGroup,
    ];

    /// The field of the search language.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::ManagedResourceGroup => "azure.managed_resource_group_name",
            Self::Tenant => "azure.tenant_id",
            Self::DomainPrefix => "domain_prefix",
            Self::Subnet => "azure.subnet_resource_id",
            Self::NetworkSecurityGroup => "azure.network_security_group_resource_id",
        }
    }

    /// Its value in a cluster.
    pub fn of(self, cluster: &Cluster) -> Option<&str> {
        let azure = cluster.azure.as_ref();
        let value = match self {
            Self::Name => cluster.name.as_deref(),
            Self::ManagedResourceGroup => azure?.managed_resource_group_name.as_deref(),
            Self::Tenant => azure?.tenant_id.as_deref(),
            Self::DomainPrefix => cluster.domain_prefix.as_deref(),
            Self::Subnet => azure?.subnet_resource_id.as_deref(),
            Self::NetworkSecurityGroup => azure?.network_security_group_resource_id.as_deref(),
        };
        value.filter(|value| !value.is_empty())
    }

    /// The prefix of the resource ids of documents with a value.
    pub fn prefix(self, value: &str) -> String {
        format!("/by/{}/{}/", self.field(), value.replace('/', "|"))
    }
}

/// An attribute of a cluster as stored. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeRecord {
    /// The cluster.
    pub cluster_id: ClusterId,
    /// Which attribute.
    pub attribute: Attribute,
    /// Its value.
    pub value: String,
}

impl AttributeRecord {
    /// The attributes of a cluster.
    pub fn of(id: &ClusterId, cluster: &Cluster) -> Vec<Self> {
        let record = |attribute: Attribute| {
            let value = attribute.of(cluster)?.to_owned();
            Some(Self { cluster_id: id.clone(), attribute, value })
        };
        Attribute::ALL.into_iter().filter_map(record).collect()
    }
}

impl Record for AttributeRecord {
    const KIND: Kind<Self> = Kind::new("ClustersService/attributes");

    fn names(&self) -> Names {
        attribute_names(self)
    }
}
