//! Cluster addresses and node ports of services.
//!
//! What is in use is what the services say: there is no second book to go out of step. Two services created in the same
//! instant could be given the same address, so choosing and committing would have to be one act; the space of addresses is
//! walked from a random start, which makes that a matter of one in tens of thousands.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use aro_machinery::meta;
use aro_machinery::status::{FieldError, Status};
use serde_json::{Value, json};

use crate::rest::Call;

/// `10.0.0.0/16`, of which the first address is the API server's own.
const NETWORK: u32 = u32::from_be_bytes([10, 0, 0, 0]);
const SIZE: u32 = 1 << 16;
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

fn random() -> u32 {
    uuid::Uuid::new_v4().as_fields().0
}

/// Fills in addresses and ports, and keeps those that were given out.
pub fn service(call: &Call, object: &mut Value, old: Option<&Value>) -> Result<(), Status> {
    if !call.subresource.is_empty() {
        return Ok(());
    }
    let text = |value: &Value, path: &[&str]| {
        meta::get(value, path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let kind = text(object, &["spec", "type"]);
    if kind == "ExternalName" {
        return Ok(());
    }
    if let Some(old) = old
        && text(old, &["spec", "type"]) != "ExternalName"
    {
        // Nobody has to repeat what the server chose.
        for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if meta::get(object, &["spec", name]).is_none_or(|value| value.as_str() == Some(""))
                && let Some(value) = meta::get(old, &["spec", name])
            {
                meta::set(object, &["spec", name], value.clone());
            }
        }
    }
    let others: Vec<Value> = call.shelf.all().iter().map(|service| service.value()).collect();
    let mine = meta::uid(object).to_owned();
    let others = others.iter().filter(|other| meta::uid(other) != mine);
    let mut address = text(object, &["spec", "clusterIP"]);
    if address.is_empty() {
        let used: HashSet<String> = others.clone().map(|other| text(other, &["spec", "clusterIP"])).collect();
        address = free_address(&used).ok_or_else(|| Status::internal("no cluster address is left"))?;
        meta::set(object, &["spec", "clusterIP"], json!(address));
    } else if address != "None" && old.is_none() {
        let refuse = |detail: String| {
            let error = FieldError::invalid("spec.clusterIPs", json!([address]), detail);
            Status::invalid(&call.served.resource.group_kind(), meta::name(object), &[error])
        };
        let parsed: Option<Ipv4Addr> = address.parse().ok();
        if let Some(parsed) = parsed {
            if !in_network(parsed) {
                return Err(refuse(
                    "failed to allocate IP ".to_owned()
                        + &address
                        + ": the provided network does not match the current range",
                ));
            }
            if others.clone().any(|other| text(other, &["spec", "clusterIP"]) == address) {
                return Err(refuse(
                    "failed to allocate IP ".to_owned() + &address + ": provided IP is already allocated",
                ));
            }
        }
    }
    if meta::get(object, &["spec", "clusterIPs"]).is_none() {
        meta::set(object, &["spec", "clusterIPs"], json!([address]));
    }
    // Without an address and a selector, somebody else says what is behind it, and of which families.
    let selector = meta::get(object, &["spec", "selector"])
        .and_then(Value::as_object)
        .is_some_and(|all| !all.is_empty());
    let (families, policy) = if address == "None" && !selector {
        (json!(["IPv4", "IPv6"]), json!("RequireDualStack"))
    } else {
        (json!(["IPv4"]), json!("SingleStack"))
    };
    for (name, value) in [("ipFamilies", families), ("ipFamilyPolicy", policy)] {
        if meta::get(object, &["spec", name]).is_none() {
            meta::set(object, &["spec", name], value);
        }
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        node_ports(object, old, others.into_iter());
    }
    Ok(())
}

fn in_network(address: Ipv4Addr) -> bool {
    u32::from(address) & !(SIZE - 1) == NETWORK
}

fn free_address(used: &HashSet<String>) -> Option<String> {
    let start = random() % SIZE;
    (0..SIZE).map(|step| (start + step) % SIZE).filter(|host| *host > 10 && *host < SIZE - 1).find_map(
        |host| {
            let address = Ipv4Addr::from(NETWORK + host).to_string();
            (!used.contains(&address)).then_some(address)
        },
    )
}

fn node_ports<'a>(object: &mut Value, old: Option<&Value>, others: impl Iterator<Item = &'a Value>) {
    let ports_of = |service: &Value| -> Vec<Value> {
        meta::get(service, &["spec", "ports"]).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let number = |port: &Value| port.get("nodePort").and_then(Value::as_i64).filter(|port| *port != 0);
    let mut used: HashSet<i64> = others.flat_map(ports_of).filter_map(|port| number(&port)).collect();
    let before = old.map(ports_of).unwrap_or_default();
    let mut ports = ports_of(object);
    for port in &mut ports {
        if number(port).is_none() {
            let same = before.iter().find(|known| {
                known.get("port") == port.get("port") && known.get("protocol") == port.get("protocol")
            });
            let chosen = same.and_then(number).or_else(|| {
                let span = NODE_PORTS.end() - NODE_PORTS.start() + 1;
                let start = i64::from(random()) % span;
                (0..span)
                    .map(|step| NODE_PORTS.start() + (start + step) % span)
                    .find(|port| !used.contains(port))
            });
            if let Some(chosen) = chosen {
                port["nodePort"] = json!(chosen);
            }
        }
        used.extend(number(port));
    }
    meta::set(object, &["spec", "ports"], json!(ports));
}
