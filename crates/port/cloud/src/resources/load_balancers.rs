//! Public addresses and load balancers.

use aro_arm::ResourceId;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Resource, Tags, reference};
use crate::api_version::NETWORK;
use crate::arm::{ArmClient, Update};
use crate::error::CloudError;

/// A public address.
pub type PublicIp = Resource<PublicIpProperties>;
/// A load balancer.
pub type LoadBalancer = Resource<LoadBalancerProperties>;

/// The members of a public address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PublicIpProperties {
    /// The address, once it is allocated.
    pub ip_address: Option<String>,
}

/// A public address as wanted: standard, static, IPv4.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublicIpSpec {
    /// Its region.
    pub location: String,
    /// Its availability zones.
    pub zones: Vec<String>,
    /// IP tags, by type.
    pub ip_tags: Vec<(String, String)>,
    /// Its tags.
    pub tags: Tags,
}

/// The members of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerProperties {
    /// Its backend pools.
    #[serde(default)]
    pub backend_address_pools: Vec<Part>,
    /// Its frontends.
    #[serde(default, rename = "frontendIPConfigurations")]
    pub frontends: Vec<Part>,
}

/// A part of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: Option<ResourceId>,
}

/// A load balancer as wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadBalancerSpec {
    /// Its region.
    pub location: String,
    /// Its frontends.
    pub frontends: Vec<Frontend>,
    /// The names of its backend pools.
    pub pools: Vec<String>,
    /// The way out for the machines of a pool.
    pub outbound: Option<OutboundRule>,
    /// Its tags.
    pub tags: Tags,
}

/// A frontend of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frontend {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: FrontendAddress,
}

/// The address of a frontend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrontendAddress {
    /// A public address.
    PublicIp(ResourceId),
    /// An address in a subnet.
    Subnet(ResourceId),
}

/// An outbound rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundRule {
    /// Its name.
    pub name: String,
    /// The pool whose machines use it.
    pub pool: String,
    /// The frontends that they appear as.
    pub frontends: Vec<String>,
    /// Ports of each machine; 0 lets the cloud decide.
    pub ports: u32,
    /// Idle connections are dropped after this many minutes.
    pub idle_minutes: u32,
}

impl LoadBalancerSpec {
    fn body(&self, id: &ResourceId) -> Value {
        let frontends = self.frontends.iter().map(|frontend| {
            let properties = match &frontend.address {
                FrontendAddress::PublicIp(ip) => json!({ "publicIPAddress": reference(ip) }),
                FrontendAddress::Subnet(subnet) => {
                    json!({ "subnet": reference(subnet), "privateIPAllocationMethod": "Dynamic" })
                }
            };
            json!({ "name": frontend.name, "properties": properties })
        });
        let frontends: Value = frontends.collect();
        let pools: Value = self.pools.iter().map(|name| json!({ "name": name })).collect();
        let outbound: Value = self.outbound.iter().map(|rule| rule.body(id)).collect();
        json!({
            "location": self.location,
            "sku": { "name": "Standard" },
            "tags": self.tags,
            "properties": {
                "frontendIPConfigurations": frontends,
                "backendAddressPools": pools,
                "outboundRules": outbound,
            },
        })
    }
}

impl OutboundRule {
    fn body(&self, balancer: &ResourceId) -> Value {
        let frontend = |name: &String| reference(&balancer.child("frontendIPConfigurations", name));
        let frontends: Value = self.frontends.iter().map(frontend).collect();
        json!({ "name": self.name, "properties": {
            "protocol": "All",
            "allocatedOutboundPorts": self.ports,
            "idleTimeoutInMinutes": self.idle_minutes,
            "backendAddressPool": reference(&balancer.child("backendAddressPools", &self.pool)),
            "frontendIPConfigurations": frontends,
        } })
    }
}

impl ArmClient {
    /// Makes a public address.
    pub async fn ensure_public_ip(
        &self,
        id: &ResourceId,
        spec: &PublicIpSpec,
    ) -> Result<PublicIp, CloudError> {
        let tags = spec.ip_tags.iter().map(|(kind, tag)| json!({ "ipTagType": kind, "tag": tag }));
        let tags: Value = tags.collect();
        let mut wanted = json!({
            "location": spec.location,
            "sku": { "name": "Standard" },
            "zones": spec.zones,
            "tags": spec.tags,
            "properties": { "publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4" },
        });
        if !spec.ip_tags.is_empty() {
            wanted["properties"]["ipTags"] = tags;
        }
        if spec.zones.is_empty() {
            wanted["zones"] = Value::Null;
        }
        self.ensure_typed(id, NETWORK, &wanted, Update::Overlay).await
    }

    /// Finds a public address.
    pub async fn find_public_ip(&self, id: &ResourceId) -> Result<Option<PublicIp>, CloudError> {
        self.find(id, NETWORK).await
    }

    /// Deletes a public address.
    pub async fn delete_public_ip(&self, id: &ResourceId) -> Result<(), CloudError> {
        self.delete(id, NETWORK).await
    }

    /// Makes a load balancer. Frontends, rules and probes of others stay: Kubernetes adds them for its Services.
    pub async fn ensure_load_balancer(
        &self,
        id: &ResourceId,
        spec: &LoadBalancerSpec,
    ) -> Result<LoadBalancer, CloudError> {
        self.ensure_typed(id, NETWORK, &spec.body(id), Update::Share).await
    }

    /// Finds a load balancer.
    pub async fn find_load_balancer(&self, id: &ResourceId) -> Result<Option<LoadBalancer>, CloudError> {
        self.find(id, NETWORK).await
    }

    /// Deletes a load balancer.
    pub async fn delete_load_balancer(&self, id: &ResourceId) -> Result<(), CloudError> {
        self.delete(id, NETWORK).await
    }
}
