//! Cluster addresses and node ports of services.
//!
//! The addresses in use are those in the Services: [`AddressIndex`] is an index of them that catches up before each use.
//! An address that was just allocated is reserved for a while, so that two Services created at once do not get the same.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::{FieldError, Status};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cache_cursor::{CacheCursor, IndexChange};
use crate::rest::Call;
use crate::storage::WatchCache;

/// `10.0.0.0/16`, of which the first address is the API server's own.
const NETWORK: u32 = u32::from_be_bytes([10, 0, 0, 0]);
const SIZE: u32 = 1 << 16;
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// What the services of a cluster have.
#[derive(Debug, Default)]
pub struct AddressIndex {
    follow: CacheCursor,
    /// By the service's key.
    services: HashMap<Arc<str>, Entry>,
    addresses: HashMap<String, Owner>,
    ports: HashMap<i64, Owner>,
}

#[derive(Debug, Default)]
struct Entry {
    address: String,
    ports: Vec<i64>,
}

/// Who has an address or a port.
#[derive(Debug, Clone, PartialEq)]
enum Owner {
    Service(Arc<str>),
    /// It was given out at this time; its service may be under way.
    Promised(Instant),
}

/// How long something that was given out waits for its service.
const PROMISE: Duration = Duration::from_secs(30);

impl AddressIndex {
    /// Reads what has changed since the last time.
    fn update(&mut self, watch_cache: &WatchCache) {
        let Self { follow, services, addresses, ports } = self;
        follow.catch_up(watch_cache, |news| match news {
            IndexChange::Reset => {
                services.clear();
                addresses.clear();
                ports.clear();
            }
            IndexChange::Put(stored) => {
                let value = stored.value();
                let entry = Entry {
                    address: meta::get(&value, &["spec", "clusterIP"])
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned(),
                    ports: ports_of(&value).iter().filter_map(node_port).collect(),
                };
                release(services.remove(&*stored.key), &stored.key, addresses, ports);
                let owner = || Owner::Service(stored.key.clone());
                if !matches!(entry.address.as_str(), "" | "None") {
                    addresses.insert(entry.address.clone(), owner());
                }
                ports.extend(entry.ports.iter().map(|port| (*port, owner())));
                services.insert(stored.key.clone(), entry);
            }
            IndexChange::Gone(key) => release(services.remove(key), key, addresses, ports),
        });
    }

    fn is_free<K: std::hash::Hash + Eq>(taken: &HashMap<K, Owner>, wanted: &K, mine: &str) -> bool {
        match taken.get(wanted) {
            None => true,
            Some(Owner::Service(key)) => &**key == mine,
            Some(Owner::Promised(at)) => at.elapsed() > PROMISE,
        }
    }

    fn address(&mut self, mine: &str) -> Option<String> {
        let start = random() % SIZE;
        let hosts = (0..SIZE).map(|step| (start + step) % SIZE).filter(|host| *host > 10 && *host < SIZE - 1);
        let mut all = hosts.map(|host| Ipv4Addr::from(NETWORK + host).to_string());
        let chosen = all.find(|address| Self::is_free(&self.addresses, address, mine))?;
        self.addresses.insert(chosen.clone(), Owner::Promised(Instant::now()));
        Some(chosen)
    }

    fn port(&mut self, mine: &str) -> Option<i64> {
        let span = NODE_PORTS.end() - NODE_PORTS.start() + 1;
        let start = i64::from(random()) % span;
        let mut all = (0..span).map(|step| NODE_PORTS.start() + (start + step) % span);
        let chosen = all.find(|port| Self::is_free(&self.ports, port, mine))?;
        self.ports.insert(chosen, Owner::Promised(Instant::now()));
        Some(chosen)
    }
}

/// Releases the addresses of a service, unless another one has them now.
fn release(
    entry: Option<Entry>,
    key: &str,
    addresses: &mut HashMap<String, Owner>,
    ports: &mut HashMap<i64, Owner>,
) {
    let Some(entry) = entry else { return };
    let owned = |owner: &Owner| matches!(owner, Owner::Service(known) if &**known == key);
    if addresses.get(&entry.address).is_some_and(owned) {
        addresses.remove(&entry.address);
    }
    for port in entry.ports {
        if ports.get(&port).is_some_and(owned) {
            ports.remove(&port);
        }
    }
}

fn ports_of(service: &Value) -> Vec<Value> {
    meta::get(service, &["spec", "ports"]).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn node_port(port: &Value) -> Option<i64> {
    port.get("nodePort").and_then(Value::as_i64).filter(|port| *port != 0)
}

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
        // An update need not repeat what the server allocated.
        for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if meta::get(object, &["spec", name]).is_none_or(|value| value.as_str() == Some(""))
                && let Some(value) = meta::get(old, &["spec", name])
            {
                meta::set(object, &["spec", name], value.clone());
            }
        }
    }
    let mine = call.key();
    let mut book = call.cluster.service_book.lock();
    book.update(&call.watch_cache);
    let mut address = text(object, &["spec", "clusterIP"]);
    if address.is_empty() {
        address = book.address(&mine).ok_or_else(|| Status::internal("no cluster address is left"))?;
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
            if !AddressIndex::is_free(&book.addresses, &address, &mine) {
                return Err(refuse(
                    "failed to allocate IP ".to_owned() + &address + ": provided IP is already allocated",
                ));
            }
        }
    }
    if meta::get(object, &["spec", "clusterIPs"]).is_none() {
        meta::set(object, &["spec", "clusterIPs"], json!([address]));
    }
    // Without an address and a selector, another controller sets its endpoints and families.
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
        node_ports(object, old, &mut book, &mine);
    }
    Ok(())
}

fn in_network(address: Ipv4Addr) -> bool {
    u32::from(address) & !(SIZE - 1) == NETWORK
}

fn node_ports(object: &mut Value, old: Option<&Value>, book: &mut AddressIndex, mine: &str) {
    let before = old.map(ports_of).unwrap_or_default();
    let mut ports = ports_of(object);
    for port in &mut ports {
        if node_port(port).is_some() {
            continue;
        }
        let same = before.iter().find(|known| {
            known.get("port") == port.get("port") && known.get("protocol") == port.get("protocol")
        });
        if let Some(chosen) = same.and_then(node_port).or_else(|| book.port(mine)) {
            port["nodePort"] = json!(chosen);
        }
    }
    meta::set(object, &["spec", "ports"], json!(ports));
}
