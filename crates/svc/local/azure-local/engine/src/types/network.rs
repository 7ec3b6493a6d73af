//! Microsoft.Network without DNS.

use std::collections::BTreeSet;

use ipnet::IpNet;
use serde_json::{Map, Value, json};

use crate::check;
use crate::compute::Draft;
use crate::refusal::Refusal;
use crate::spec::{InUse, Inline, Member, MemberKind as Kind, PLAIN, Quota, Reference, TypeSpec};

const NAMESPACE: &str = "Microsoft.Network";

/// What clients of the last years ask for.
const VERSIONS: &[&str] = &[
    "2020-11-01",
    "2021-02-01",
    "2021-05-01",
    "2021-08-01",
    "2022-01-01",
    "2022-05-01",
    "2022-07-01",
    "2022-09-01",
    "2022-11-01",
    "2023-02-01",
    "2023-04-01",
    "2023-05-01",
    "2023-06-01",
    "2023-09-01",
    "2023-11-01",
    "2024-01-01",
    "2024-03-01",
    "2024-05-01",
    "2024-07-01",
    "2024-10-01",
    "2025-01-01",
    "2025-03-01",
    "2025-05-01",
    "2025-07-01",
    "2025-09-01",
    "2025-11-01",
    "2026-01-01",
    "2026-03-01",
];

const NETWORK: TypeSpec =
    TypeSpec { namespace: NAMESPACE, versions: VERSIONS, long_running: true, patch_tags_only: true, ..PLAIN };

const fn member(path: &'static str, kind: Kind, required: bool) -> Member {
    Member { path, kind, required }
}

const fn join(path: &'static str, target: &'static str) -> Reference {
    Reference { path, target, action: Some("join/action") }
}

const fn quota(name: &'static str, label: &'static str, limit: u32, code: &'static str) -> Quota {
    Quota { name, label, limit, code }
}

const NSG: &str = "Microsoft.Network/networkSecurityGroups";
const SUBNET: &str = "Microsoft.Network/virtualNetworks/subnets";
const PUBLIC_IP: &str = "Microsoft.Network/publicIPAddresses";
const ROUTE_TABLE: &str = "Microsoft.Network/routeTables";
const NAT_GATEWAY: &str = "Microsoft.Network/natGateways";
const BACKEND_POOL: &str = "Microsoft.Network/loadBalancers/backendAddressPools";

/// Children of a load balancer that only exist as parts of it.
const fn part(member: &'static str, full: &'static str, writable: bool) -> Inline {
    Inline {
        member,
        full,
        writable,
        in_use: InUse { code: "InUseResourceCannotBeDeleted", noun: "Resource" },
    }
}

/// The types.
pub const TYPES: &[TypeSpec] = &[
    TypeSpec {
        types: &[("virtualNetworks", "virtualNetwork")],
        full: "Microsoft.Network/virtualNetworks",
        members: &[
            member("properties.addressSpace", Kind::Object, true),
            member("properties.addressSpace.addressPrefixes", Kind::Networks, true),
            member("properties.subnets", Kind::List, false),
            member("properties.subnets[]", Kind::Object, false),
            member("properties.subnets[].properties", Kind::Object, false),
            member("properties.subnets[].properties.addressPrefix", Kind::Network, false),
            member("properties.subnets[].properties.addressPrefixes", Kind::Networks, false),
            member("properties.subnets[].properties.delegations", Kind::List, false),
            member("properties.subnets[].properties.delegations[].properties.serviceName", Kind::Text, false),
            member("properties.subnets[].properties.networkSecurityGroup", Kind::Object, false),
            member("properties.dhcpOptions", Kind::Object, false),
            member("properties.dhcpOptions.dnsServers", Kind::Texts, false),
            member("properties.enableDdosProtection", Kind::Flag, false),
        ],
        references: &[
            join("properties.subnets[].properties.networkSecurityGroup.id", NSG),
            join("properties.subnets[].properties.routeTable.id", ROUTE_TABLE),
            join("properties.subnets[].properties.natGateway.id", NAT_GATEWAY),
        ],
        inline: &[Inline {
            member: "subnets",
            full: SUBNET,
            writable: true,
            in_use: InUse { code: "InUseSubnetCannotBeDeleted", noun: "Subnet" },
        }],
        compute: virtual_network,
        in_use: InUse { code: "InUseVirtualNetworkCannotBeDeleted", noun: "Virtual network" },
        quota: Some(quota("VirtualNetworks", "Virtual Networks", 1000, "VirtualNetworkCountLimitReached")),
        ..NETWORK
    },
    TypeSpec {
        types: &[("networkSecurityGroups", "networkSecurityGroup")],
        full: NSG,
        members: &[
            member("properties.securityRules", Kind::List, false),
            member("properties.securityRules[]", Kind::Object, false),
            member("properties.securityRules[].properties", Kind::Object, true),
            member("properties.securityRules[].properties.priority", Kind::Integer(100, 4096), true),
            member(
                "properties.securityRules[].properties.direction",
                Kind::OneOf(&["Inbound", "Outbound"]),
                true,
            ),
            member("properties.securityRules[].properties.access", Kind::OneOf(&["Allow", "Deny"]), true),
            member(
                "properties.securityRules[].properties.protocol",
                Kind::OneOf(&["*", "Tcp", "Udp", "Icmp", "Esp", "Ah"]),
                true,
            ),
        ],
        inline: &[part("securityRules", "Microsoft.Network/networkSecurityGroups/securityRules", true)],
        compute: security_group,
        in_use: InUse { code: "InUseNetworkSecurityGroupCannotBeDeleted", noun: "Network security group" },
        quota: Some(quota(
            "NetworkSecurityGroups",
            "Network Security Groups",
            5000,
            "NetworkSecurityGroupCountLimitReached",
        )),
        ..NETWORK
    },
    TypeSpec {
        types: &[("publicIPAddresses", "publicIPAddress")],
        full: PUBLIC_IP,
        members: &[
            member("sku.name", Kind::OneOf(&["Basic", "Standard", "StandardV2"]), false),
            member("sku.tier", Kind::OneOf(&["Regional", "Global"]), false),
            member("properties.publicIPAllocationMethod", Kind::OneOf(&["Static", "Dynamic"]), false),
            member("properties.publicIPAddressVersion", Kind::OneOf(&["IPv4", "IPv6"]), false),
            member("properties.idleTimeoutInMinutes", Kind::Integer(4, 30), false),
            member("properties.dnsSettings", Kind::Object, false),
            member("properties.dnsSettings.domainNameLabel", Kind::Text, false),
        ],
        compute: public_address,
        in_use: InUse { code: "PublicIPAddressCannotBeDeleted", noun: "Public IP address" },
        quota: Some(quota("PublicIPAddresses", "Public IP Addresses", 1000, "PublicIPCountLimitReached")),
        ..NETWORK
    },
    TypeSpec {
        types: &[("loadBalancers", "loadBalancer")],
        full: "Microsoft.Network/loadBalancers",
        members: &[
            member("sku.name", Kind::OneOf(&["Basic", "Standard", "Gateway"]), false),
            member("properties.frontendIPConfigurations", Kind::List, false),
            member("properties.frontendIPConfigurations[]", Kind::Object, false),
            member("properties.backendAddressPools", Kind::List, false),
            member("properties.backendAddressPools[]", Kind::Object, false),
            member("properties.loadBalancingRules", Kind::List, false),
            member("properties.loadBalancingRules[]", Kind::Object, false),
            member(
                "properties.loadBalancingRules[].properties.frontendPort",
                Kind::Integer(0, 65_535),
                false,
            ),
            member("properties.loadBalancingRules[].properties.backendPort", Kind::Integer(0, 65_535), false),
            member("properties.probes", Kind::List, false),
            member("properties.probes[]", Kind::Object, false),
            member("properties.outboundRules", Kind::List, false),
            member("properties.outboundRules[]", Kind::Object, false),
            member("properties.inboundNatRules", Kind::List, false),
            member("properties.inboundNatRules[]", Kind::Object, false),
        ],
        references: &[
            join("properties.frontendIPConfigurations[].properties.publicIPAddress.id", PUBLIC_IP),
            join("properties.frontendIPConfigurations[].properties.subnet.id", SUBNET),
        ],
        inline: &[
            part(
                "frontendIPConfigurations",
                "Microsoft.Network/loadBalancers/frontendIPConfigurations",
                false,
            ),
            part("backendAddressPools", BACKEND_POOL, true),
            part("loadBalancingRules", "Microsoft.Network/loadBalancers/loadBalancingRules", false),
            part("probes", "Microsoft.Network/loadBalancers/probes", false),
            part("outboundRules", "Microsoft.Network/loadBalancers/outboundRules", false),
            part("inboundNatRules", "Microsoft.Network/loadBalancers/inboundNatRules", true),
        ],
        compute: |draft| {
            draft.default_sku(json!({"name": "Standard", "tier": "Regional"}));
            draft.keep("resourceGuid", json!(draft.stable.to_string()));
            Ok(())
        },
        in_use: InUse { code: "InUseLoadBalancerCannotBeDeleted", noun: "Load balancer" },
        quota: Some(quota("LoadBalancers", "Load Balancers", 1000, "LoadBalancerCountLimitReached")),
        ..NETWORK
    },
    TypeSpec {
        types: &[("networkInterfaces", "networkInterface")],
        full: "Microsoft.Network/networkInterfaces",
        members: &[
            member("properties.ipConfigurations", Kind::NonEmptyList, true),
            member("properties.ipConfigurations[]", Kind::Object, false),
            member("properties.ipConfigurations[].properties", Kind::Object, true),
            member("properties.enableIPForwarding", Kind::Flag, false),
        ],
        references: &[
            join("properties.ipConfigurations[].properties.subnet.id", SUBNET),
            join("properties.ipConfigurations[].properties.publicIPAddress.id", PUBLIC_IP),
            join(
                "properties.ipConfigurations[].properties.loadBalancerBackendAddressPools[].id",
                BACKEND_POOL,
            ),
            join("properties.networkSecurityGroup.id", NSG),
        ],
        inline: &[part("ipConfigurations", "Microsoft.Network/networkInterfaces/ipConfigurations", false)],
        compute: |draft| {
            draft.keep("resourceGuid", json!(draft.stable.to_string()));
            Ok(())
        },
        ..NETWORK
    },
    TypeSpec {
        types: &[("routeTables", "routeTable")],
        full: ROUTE_TABLE,
        members: &[
            member("properties.routes", Kind::List, false),
            member("properties.routes[]", Kind::Object, false),
        ],
        inline: &[part("routes", "Microsoft.Network/routeTables/routes", true)],
        compute: |draft| {
            draft.default("routes", json!([]));
            draft.keep("resourceGuid", json!(draft.stable.to_string()));
            Ok(())
        },
        in_use: InUse { code: "InUseRouteTableCannotBeDeleted", noun: "Route table" },
        ..NETWORK
    },
    TypeSpec {
        types: &[("natGateways", "natGateway")],
        full: NAT_GATEWAY,
        references: &[join("properties.publicIpAddresses[].id", PUBLIC_IP)],
        compute: |draft| {
            draft.default_sku(json!({"name": "Standard"}));
            draft.default("idleTimeoutInMinutes", json!(4));
            draft.keep("resourceGuid", json!(draft.stable.to_string()));
            Ok(())
        },
        in_use: InUse { code: "InUseNatGatewayCannotBeDeleted", noun: "NAT gateway" },
        ..NETWORK
    },
];

/// A virtual network: its subnets lie in its address space and do not overlap.
fn virtual_network(draft: &mut Draft<'_>) -> Result<(), Refusal> {
    let name = draft.id.name().to_owned();
    draft.default("subnets", json!([]));
    draft.default("enableDdosProtection", json!(false));
    draft.default("virtualNetworkPeerings", json!([]));
    draft.keep("resourceGuid", json!(draft.stable.to_string()));
    let properties = draft.properties();
    let space: Vec<IpNet> =
        networks(properties.get("addressSpace").and_then(|space| space.get("addressPrefixes")));
    if space.is_empty() {
        return Err(Refusal::missing_member("properties.addressSpace.addressPrefixes"));
    }
    let Some(subnets) = properties.get_mut("subnets").and_then(Value::as_array_mut) else { return Ok(()) };
    let mut seen: Vec<(String, IpNet)> = Vec::new();
    for subnet in subnets {
        let subnet_name = subnet.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(own) = subnet.get_mut("properties").and_then(Value::as_object_mut) else {
            return Err(netcfg(
                "NetcfgInvalidSubnet",
                format!("Subnet '{subnet_name}' is not valid in virtual network '{name}'."),
            ));
        };
        let prefixes = subnet_networks(own);
        if prefixes.is_empty() {
            let message =
                format!("Subnet '{subnet_name}' of virtual network '{name}' has no address prefix.");
            return Err(netcfg("NetcfgInvalidSubnet", message));
        }
        for prefix in prefixes {
            if !space.iter().any(|space| space.contains(&prefix)) {
                let message = format!("Subnet '{subnet_name}' is not valid in virtual network '{name}'.");
                return Err(netcfg("NetcfgInvalidSubnet", message));
            }
            if let Some((other, _)) =
                seen.iter().find(|(_, net)| net.contains(&prefix) || prefix.contains(net))
            {
                let message = format!(
                    "Subnet '{subnet_name}' is not valid because its IP address range overlaps with that of an existing subnet '{other}' in virtual network '{name}'."
                );
                return Err(netcfg("NetcfgSubnetRangesOverlap", message));
            }
            seen.push((subnet_name.clone(), prefix));
        }
        fill(own, "delegations", json!([]));
        fill(own, "privateEndpointNetworkPolicies", json!("Disabled"));
        fill(own, "privateLinkServiceNetworkPolicies", json!("Enabled"));
    }
    Ok(())
}

fn netcfg(code: &'static str, message: String) -> Refusal {
    Refusal::new(http::StatusCode::BAD_REQUEST, code, message)
}

fn networks(list: Option<&Value>) -> Vec<IpNet> {
    let texts = list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    texts.filter_map(|text| check::network(text).ok()).collect()
}

fn subnet_networks(properties: &Map<String, Value>) -> Vec<IpNet> {
    let one =
        properties.get("addressPrefix").and_then(Value::as_str).and_then(|text| check::network(text).ok());
    let many = networks(properties.get("addressPrefixes"));
    one.into_iter().chain(many).collect::<BTreeSet<_>>().into_iter().collect()
}

fn fill(properties: &mut Map<String, Value>, name: &str, value: Value) {
    if properties.get(name).is_none_or(Value::is_null) {
        properties.insert(name.to_owned(), value);
    }
}

/// A network security group: priorities are unique per direction; the default rules are always there.
fn security_group(draft: &mut Draft<'_>) -> Result<(), Refusal> {
    draft.default("securityRules", json!([]));
    draft.keep("resourceGuid", json!(draft.stable.to_string()));
    let rules =
        draft.properties().get("securityRules").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut seen = BTreeSet::new();
    for rule in &rules {
        let of = |name: &str| rule.get("properties").and_then(|properties| properties.get(name)).cloned();
        let key = (of("direction").map(|v| v.to_string()), of("priority").map(|v| v.to_string()));
        if !seen.insert(key) {
            let name = rule.get("name").and_then(Value::as_str).unwrap_or_default();
            let message = format!(
                "Security rule {name} has conflicting Priority and Direction with another rule. Rules cannot have the same Priority and Direction."
            );
            return Err(netcfg("SecurityRuleConflict", message));
        }
    }
    let rule = |name: &str, priority: u32, direction: &str, access: &str, from: &str, to: &str| {
        json!({
            "name": name,
            "id": format!("{}/defaultSecurityRules/{name}", draft.id),
            "type": "Microsoft.Network/networkSecurityGroups/defaultSecurityRules",
            "properties": {
                "provisioningState": "Succeeded", "protocol": "*", "sourcePortRange": "*", "destinationPortRange": "*",
                "sourceAddressPrefix": from, "destinationAddressPrefix": to,
                "access": access, "priority": priority, "direction": direction,
            },
        })
    };
    let defaults = json!([
        rule("AllowVnetInBound", 65000, "Inbound", "Allow", "VirtualNetwork", "VirtualNetwork"),
        rule("AllowAzureLoadBalancerInBound", 65001, "Inbound", "Allow", "AzureLoadBalancer", "*"),
        rule("DenyAllInBound", 65500, "Inbound", "Deny", "*", "*"),
        rule("AllowVnetOutBound", 65000, "Outbound", "Allow", "VirtualNetwork", "VirtualNetwork"),
        rule("AllowInternetOutBound", 65001, "Outbound", "Allow", "*", "Internet"),
        rule("DenyAllOutBound", 65500, "Outbound", "Deny", "*", "*"),
    ]);
    draft.set("defaultSecurityRules", defaults);
    Ok(())
}

/// A public address: a static one gets its address at once, and keeps it.
fn public_address(draft: &mut Draft<'_>) -> Result<(), Refusal> {
    draft.default_sku(json!({"name": "Standard", "tier": "Regional"}));
    draft.default("publicIPAddressVersion", json!("IPv4"));
    draft.default("idleTimeoutInMinutes", json!(4));
    let standard =
        draft.body.get("sku").and_then(|sku| sku.get("name")).and_then(Value::as_str) != Some("Basic");
    draft.default("publicIPAllocationMethod", json!(if standard { "Static" } else { "Dynamic" }));
    if standard && draft.text("publicIPAllocationMethod").as_deref() == Some("Dynamic") {
        let message = format!("Standard sku publicIp {} must have AllocationMethod set to Static.", draft.id);
        return Err(netcfg("StandardSkuPublicIPAddressesCannotBeDynamic", message));
    }
    draft.immutable("publicIPAddressVersion")?;
    draft.keep("resourceGuid", json!(draft.stable.to_string()));
    if standard {
        let address = draft.address.map_or(Value::Null, |address| json!(address.to_string()));
        draft.keep("ipAddress", address);
    }
    let location = draft.location.to_owned();
    if let Some(settings) = draft.properties().get_mut("dnsSettings").and_then(Value::as_object_mut)
        && let Some(label) = settings.get("domainNameLabel").and_then(Value::as_str)
    {
        let fqdn = format!("{label}.{location}.cloudapp.azure.com");
        settings.insert("fqdn".to_owned(), json!(fqdn));
    }
    Ok(())
}
