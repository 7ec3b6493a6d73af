//! Virtual networks, subnets and network security groups.

use aro_arm::ResourceId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Resource, Tags, reference};
use crate::api_version::NETWORK;
use crate::arm::{ArmClient, Update};
use crate::error::CloudError;

/// A virtual network.
pub type Vnet = Resource<VnetProperties>;
/// A subnet.
pub type Subnet = Resource<SubnetProperties>;
/// A network security group.
pub type Nsg = Resource<NsgProperties>;

/// A reference from one resource to another.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Reference {
    /// The other.
    pub id: ResourceId,
}

/// The members of a virtual network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VnetProperties {
    /// Its subnets.
    #[serde(default)]
    pub subnets: Vec<Reference>,
}

/// A virtual network as wanted. Subnets are resources of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VnetSpec {
    /// Its region.
    pub location: String,
    /// Its address ranges.
    pub address_prefixes: Vec<String>,
    /// Its tags.
    pub tags: Tags,
}

/// The members of a subnet.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubnetProperties {
    /// Its address range.
    pub address_prefix: Option<String>,
    /// Its address ranges, if it has several.
    #[serde(default)]
    pub address_prefixes: Vec<String>,
    /// Its security group.
    pub network_security_group: Option<Reference>,
    /// Its route table.
    pub route_table: Option<Reference>,
    /// Its NAT gateway.
    pub nat_gateway: Option<Reference>,
}

/// A subnet as wanted; what is `None` or empty stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubnetSpec {
    /// Its address range.
    pub address_prefix: String,
    /// Its security group.
    pub nsg: Option<ResourceId>,
    /// The service that it is delegated to, e.g. `Microsoft.RedHatOpenShift/hcpOpenShiftClusters`.
    pub delegation: Option<String>,
    /// Whether network policies apply to private endpoints.
    pub private_endpoint_policies: Option<bool>,
    /// Whether network policies apply to private link services.
    pub private_link_service_policies: Option<bool>,
    /// Service endpoints, e.g. `Microsoft.Storage`.
    pub service_endpoints: Vec<String>,
}

impl SubnetSpec {
    fn body(&self) -> Value {
        let switch = |on: bool| if on { "Enabled" } else { "Disabled" };
        let mut properties = json!({ "addressPrefix": self.address_prefix });
        if let Some(nsg) = &self.nsg {
            properties["networkSecurityGroup"] = reference(nsg);
        }
        if let Some(service) = &self.delegation {
            properties["delegations"] =
                json!([{ "name": service.replace('/', "."), "properties": { "serviceName": service } }]);
        }
        if let Some(on) = self.private_endpoint_policies {
            properties["privateEndpointNetworkPolicies"] = switch(on).into();
        }
        if let Some(on) = self.private_link_service_policies {
            properties["privateLinkServiceNetworkPolicies"] = switch(on).into();
        }
        if !self.service_endpoints.is_empty() {
            let endpoints = self.service_endpoints.iter().map(|service| json!({ "service": service }));
            properties["serviceEndpoints"] = endpoints.collect();
        }
        json!({ "properties": properties })
    }
}

/// The members of a network security group.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NsgProperties {
    /// The subnets that it guards.
    #[serde(default)]
    pub subnets: Vec<Reference>,
}

/// A network security group as wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NsgSpec {
    /// Its region.
    pub location: String,
    /// Its rules.
    pub rules: Vec<SecurityRule>,
    /// Its tags.
    pub tags: Tags,
}

/// A rule of a network security group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityRule {
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// `Inbound` or `Outbound`.
    pub direction: String,
    /// `Allow` or `Deny`.
    pub access: String,
    /// `Tcp`, `Udp` or `*`.
    pub protocol: String,
    /// Lower numbers come first.
    pub priority: u16,
    /// Where traffic comes from.
    pub source_address_prefix: String,
    /// The ports that it comes from.
    pub source_port_range: String,
    /// Where traffic goes to.
    pub destination_address_prefix: String,
    /// The ports that it goes to.
    pub destination_port_range: String,
}

impl SecurityRule {
    /// Allows TCP from anywhere to a port.
    pub fn allow_tcp(name: &str, priority: u16, port: u16) -> Self {
        let any = || "*".to_owned();
        Self {
            name: name.to_owned(),
            direction: "Inbound".to_owned(),
            access: "Allow".to_owned(),
            protocol: "Tcp".to_owned(),
            priority,
            source_address_prefix: any(),
            source_port_range: any(),
            destination_address_prefix: any(),
            destination_port_range: port.to_string(),
        }
    }
}

impl ArmClient {
    /// Makes a virtual network; its subnets stay.
    pub async fn ensure_vnet(&self, id: &ResourceId, spec: &VnetSpec) -> Result<Vnet, CloudError> {
        let space = json!({ "addressPrefixes": spec.address_prefixes });
        let wanted =
            json!({ "location": spec.location, "tags": spec.tags, "properties": { "addressSpace": space } });
        self.ensure_typed(id, NETWORK, &wanted, Update::Overlay).await
    }

    /// Finds a virtual network.
    pub async fn find_vnet(&self, id: &ResourceId) -> Result<Option<Vnet>, CloudError> {
        self.find(id, NETWORK).await
    }

    /// Deletes a virtual network.
    pub async fn delete_vnet(&self, id: &ResourceId) -> Result<(), CloudError> {
        self.delete(id, NETWORK).await
    }

    /// Makes a subnet.
    pub async fn ensure_subnet(&self, id: &ResourceId, spec: &SubnetSpec) -> Result<Subnet, CloudError> {
        self.ensure_typed(id, NETWORK, &spec.body(), Update::Overlay).await
    }

    /// Finds a subnet.
    pub async fn find_subnet(&self, id: &ResourceId) -> Result<Option<Subnet>, CloudError> {
        self.find(id, NETWORK).await
    }

    /// Deletes a subnet.
    pub async fn delete_subnet(&self, id: &ResourceId) -> Result<(), CloudError> {
        self.delete(id, NETWORK).await
    }

    /// Makes a security group guard an existing subnet.
    pub async fn attach_nsg(&self, subnet: &ResourceId, nsg: &ResourceId) -> Result<Subnet, CloudError> {
        let current: Value = self.get(subnet, NETWORK).await?;
        let prefix = current.pointer("/properties/addressPrefix").cloned().unwrap_or_default();
        let wanted =
            json!({ "properties": { "addressPrefix": prefix, "networkSecurityGroup": reference(nsg) } });
        self.ensure_typed(subnet, NETWORK, &wanted, Update::Overlay).await
    }

    /// Removes a security group from a subnet, if it guards it; other groups and a subnet that is gone stay as they are.
    pub async fn detach_nsg(&self, subnet: &ResourceId, nsg: &ResourceId) -> Result<(), CloudError> {
        const MAX_ROUNDS: usize = 5;
        for round in 1..=MAX_ROUNDS {
            let Some(current) = self.find::<Value>(subnet, NETWORK).await? else { return Ok(()) };
            let attached = current.pointer("/properties/networkSecurityGroup/id").and_then(Value::as_str);
            if !attached.is_some_and(|id| id.eq_ignore_ascii_case(nsg.as_str())) {
                return Ok(());
            }
            let body =
                crate::compare::overlay(&current, &json!({ "properties": { "networkSecurityGroup": null } }));
            match self.put(subnet, NETWORK, &body, &crate::arm::unchanged(&current)).await {
                Err(error) if error.is_changed() && round < MAX_ROUNDS => {}
                written => return written.map(drop),
            }
        }
        Ok(())
    }

    /// Makes a network security group with these rules. Rules of others stay: Kubernetes adds them for its Services.
    pub async fn ensure_nsg(&self, id: &ResourceId, spec: &NsgSpec) -> Result<Nsg, CloudError> {
        let rules = spec.rules.iter().map(|rule| json!({ "name": rule.name, "properties": rule }));
        let rules: Value = rules.collect();
        let wanted =
            json!({ "location": spec.location, "tags": spec.tags, "properties": { "securityRules": rules } });
        self.ensure_typed(id, NETWORK, &wanted, Update::Share).await
    }

    /// Finds a network security group.
    pub async fn find_nsg(&self, id: &ResourceId) -> Result<Option<Nsg>, CloudError> {
        self.find(id, NETWORK).await
    }

    /// Deletes a network security group.
    pub async fn delete_nsg(&self, id: &ResourceId) -> Result<(), CloudError> {
        self.delete(id, NETWORK).await
    }
}
