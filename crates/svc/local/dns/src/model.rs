//! The documents of zones, record sets and public addresses, and the zones they make.
//!
//! Documents arrive in any order: a record set may come before its zone. A change marks its zone; [`Model::zones`] rebuilds
//! the marked zones only.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use aro_base::Timestamp;
use aro_cloud_store::{Resource, kind_of};
use aro_store::{Change, Document};
use hickory_proto::rr::{Name, RecordType};
use serde_json::Value;

use crate::name::{parse_name, relative_name};
use crate::record_set::{RecordSet, TYPES, member};
use crate::zone::{Zone, Zones};

/// The type of zones; the types of record sets are below it.
pub(crate) const ZONES: &str = "Microsoft.Network/dnsZones";
/// The type of what an alias points to.
pub(crate) const PUBLIC_ADDRESSES: &str = "Microsoft.Network/publicIPAddresses";
/// Bytes of a document beside its body: keys, maps, parsed records.
const OVERHEAD: usize = 512;

/// What became of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It counts from the next [`Model::zones`] on.
    Yes,
    /// It is of another type, or older than what is known.
    Ignored,
    /// It cannot be decoded; an earlier version stays in use.
    Unreadable,
    /// It exceeds the memory budget and is not served.
    OverBudget,
}

/// Everything that was read, within a budget.
#[derive(Debug)]
pub struct Model {
    budget: usize,
    bytes: usize,
    /// By resource id in lower case.
    zones: HashMap<String, ZoneEntry>,
    addresses: HashMap<String, Entry<Option<IpAddr>>>,
    changed: HashSet<String>,
    /// Whether two zones have the same name, so that creation decides.
    built: HashMap<String, Built>,
}

#[derive(Debug)]
struct Built {
    created: Timestamp,
    zone: Arc<Zone>,
}

#[derive(Debug)]
struct Entry<T> {
    version: u64,
    bytes: usize,
    value: T,
}

#[derive(Debug, Default)]
struct ZoneEntry {
    zone: Option<Entry<ZoneProperties>>,
    /// By the rest of the id: type and relative name in lower case.
    sets: HashMap<String, Entry<RecordSet>>,
}

#[derive(Debug)]
struct ZoneProperties {
    private: bool,
    servers: Vec<Name>,
    created: Timestamp,
}

/// Where a resource id leads.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Zone(String),
    Set { zone: String, record_type: RecordType, rest: String },
    Address(String),
}

impl Model {
    /// An empty model that keeps at most this many bytes of documents.
    pub fn new(budget: usize) -> Self {
        Self {
            budget,
            bytes: 0,
            zones: HashMap::new(),
            addresses: HashMap::new(),
            changed: HashSet::new(),
            built: HashMap::new(),
        }
    }

    /// Bytes of documents that are kept, roughly.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Record sets that are kept.
    pub fn record_sets(&self) -> usize {
        self.zones.values().map(|zone| zone.sets.len()).sum()
    }

    /// Takes over one change of the feed.
    pub fn apply(&mut self, change: Change) -> Applied {
        match change {
            Change::Upsert(document) => self.upsert(document),
            Change::Delete { resource_id, version, .. } => self.delete(&resource_id, version),
        }
    }

    /// Takes over a document.
    pub fn upsert(&mut self, document: Document) -> Applied {
        let Some(place) = Place::of(&document.resource_id) else { return Applied::Ignored };
        let (version, bytes) = (document.version, document.body.get().len() + OVERHEAD);
        let known = self.known(&place);
        if known.is_some_and(|(known, _)| known >= version) {
            return Applied::Ignored;
        }
        let freed = known.map_or(0, |(_, bytes)| bytes);
        // The type of the kind plays no part in decoding.
        let Ok(typed) = kind_of(ZONES).decode(document) else { return Applied::Unreadable };
        let used = self.bytes - freed;
        if used + bytes > self.budget {
            self.remove(&place);
            return Applied::OverBudget;
        }
        self.bytes = used + bytes;
        self.insert(place, &typed.value, version, bytes);
        Applied::Yes
    }

    fn insert(&mut self, place: Place, resource: &Resource, version: u64, bytes: usize) {
        match place {
            Place::Zone(id) => {
                let value = ZoneProperties::of(resource);
                self.zones.entry(id.clone()).or_default().zone = Some(Entry { version, bytes, value });
                self.changed.insert(id);
            }
            Place::Set { zone, record_type, rest } => {
                let empty = serde_json::Map::new();
                let value = RecordSet::parse(record_type, resource.properties().unwrap_or(&empty));
                let sets = &mut self.zones.entry(zone.clone()).or_default().sets;
                sets.insert(rest, Entry { version, bytes, value });
                self.changed.insert(zone);
            }
            Place::Address(id) => {
                let address = resource.properties().and_then(|properties| member(properties, "ipAddress"));
                let value = address.and_then(Value::as_str).and_then(|address| address.parse().ok());
                self.mark_aliases_of(&id);
                self.addresses.insert(id, Entry { version, bytes, value });
            }
        }
    }

    fn delete(&mut self, resource_id: &str, version: u64) -> Applied {
        let Some(place) = Place::of(resource_id) else { return Applied::Ignored };
        if self.known(&place).is_none_or(|(known, _)| known > version) {
            return Applied::Ignored;
        }
        self.remove(&place);
        Applied::Yes
    }

    /// The version and the size of what is known about a resource.
    fn known(&self, place: &Place) -> Option<(u64, usize)> {
        match place {
            Place::Zone(id) => self.zones.get(id)?.zone.as_ref().map(|entry| (entry.version, entry.bytes)),
            Place::Set { zone, rest, .. } => {
                self.zones.get(zone)?.sets.get(rest).map(|entry| (entry.version, entry.bytes))
            }
            Place::Address(id) => self.addresses.get(id).map(|entry| (entry.version, entry.bytes)),
        }
    }

    fn remove(&mut self, place: &Place) {
        let Some((_, bytes)) = self.known(place) else { return };
        self.bytes -= bytes;
        match place {
            Place::Zone(id) => {
                if let Some(entry) = self.zones.get_mut(id) {
                    entry.zone = None;
                }
                self.forget_if_empty(id);
            }
            Place::Set { zone, rest, .. } => {
                if let Some(entry) = self.zones.get_mut(zone) {
                    entry.sets.remove(rest);
                }
                self.forget_if_empty(zone);
            }
            Place::Address(id) => {
                self.addresses.remove(id);
                self.mark_aliases_of(id);
            }
        }
    }

    fn forget_if_empty(&mut self, zone: &str) {
        self.changed.insert(zone.to_owned());
        if self.zones.get(zone).is_some_and(|entry| entry.zone.is_none() && entry.sets.is_empty()) {
            self.zones.remove(zone);
        }
    }

    /// Marks the zones with an alias to a resource.
    fn mark_aliases_of(&mut self, target: &str) {
        for (id, entry) in &self.zones {
            if entry.sets.values().any(|set| set.value.target.as_deref() == Some(target)) {
                self.changed.insert(id.clone());
            }
        }
    }

    /// The zones as they are now, with what changed since the last call rebuilt. `None`: nothing changed.
    pub fn zones(&mut self) -> Option<Zones> {
        if self.changed.is_empty() {
            return None;
        }
        for id in std::mem::take(&mut self.changed) {
            match self.build(&id) {
                Some(built) => self.built.insert(id, built),
                None => self.built.remove(&id),
            };
        }
        // Of two zones with one name the older one is served, as the first delegation to it would be.
        let mut all: Vec<(&String, &Built)> = self.built.iter().collect();
        all.sort_by(|one, other| (other.1.created, other.0).cmp(&(one.1.created, one.0)));
        Some(Zones::new(all.into_iter().map(|(_, built)| built.zone.clone())))
    }

    fn build(&self, id: &str) -> Option<Built> {
        let entry = self.zones.get(id)?;
        let properties = &entry.zone.as_ref()?.value;
        if properties.private {
            return None;
        }
        let origin = parse_name(id.rsplit('/').next()?)?;
        let address = |target: &str| self.addresses.get(target)?.value;
        let sets = entry.sets.iter().filter_map(|(rest, set)| {
            let owner = relative_name(rest.split_once('/')?.1, &origin)?;
            Some(set.value.records(&owner, address))
        });
        let zone = Arc::new(Zone::new(origin.clone(), &properties.servers, sets));
        Some(Built { created: properties.created, zone })
    }
}

impl ZoneProperties {
    fn of(resource: &Resource) -> Self {
        let get = |name: &str| resource.properties().and_then(|properties| member(properties, name));
        let private =
            get("zoneType").and_then(Value::as_str).is_some_and(|of| of.eq_ignore_ascii_case("private"));
        let servers = get("nameServers").and_then(Value::as_array).into_iter().flatten();
        let servers = servers.filter_map(Value::as_str).filter_map(parse_name).take(20).collect();
        Self { private, servers, created: resource.created }
    }
}

impl Place {
    /// The place of a resource id; `None` for resources that play no part here.
    fn of(resource_id: &str) -> Option<Self> {
        let id = resource_id.to_ascii_lowercase();
        let parts: Vec<&str> = id.trim_matches('/').split('/').collect();
        match parts.as_slice() {
            ["subscriptions", _, "resourcegroups", _, "providers", "microsoft.network", kind, rest @ ..] => {
                match (*kind, rest) {
                    ("publicipaddresses", [_]) => Some(Self::Address(format!("/{}", parts.join("/")))),
                    ("dnszones", [_]) => Some(Self::Zone(format!("/{}", parts.join("/")))),
                    ("dnszones", [_, of, name]) => {
                        let known = TYPES.iter().find(|(text, _)| text.eq_ignore_ascii_case(of));
                        let zone = format!("/{}", parts[..parts.len() - 2].join("/"));
                        known.map(|(_, record_type)| Self::Set {
                            zone,
                            record_type: *record_type,
                            rest: format!("{of}/{name}"),
                        })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
