//! Zones and the answers to questions about them. Pure: a snapshot and a question lead to one answer.
//!
//! The rules are those of RFC 1034 §4.3.2 with the wildcards of RFC 4592: the zone with the longest name that contains the
//! question's name; a delegation on the way down; the name itself; the wildcard at the closest encloser.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::{Name, RData, Record, RecordType};

use crate::name::{below, label_count, parse_name};
use crate::record_set::{implicit_soa, name_server_records};

/// CNAMEs followed for one question.
const MOST_CNAMES: usize = 8;
/// Addresses added to one referral.
const MOST_GLUE: usize = 26;

/// What a question leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The response code.
    pub code: ResponseCode,
    /// Whether a zone served here answers, not a delegation out of it.
    pub authoritative: bool,
    /// Records that answer the question.
    pub answers: Vec<Record>,
    /// The SOA of a negative answer, or the name servers of a referral.
    pub authorities: Vec<Record>,
    /// Addresses of the name servers of a referral.
    pub additionals: Vec<Record>,
}

impl Answer {
    fn empty(code: ResponseCode, authoritative: bool) -> Self {
        let (answers, authorities, additionals) = (Vec::new(), Vec::new(), Vec::new());
        Self { code, authoritative, answers, authorities, additionals }
    }
}

/// All zones, at one moment.
#[derive(Debug, Clone, Default)]
pub struct Zones {
    by_origin: HashMap<Name, Arc<Zone>>,
}

impl Zones {
    /// These zones; of two with the same name the last one counts.
    pub fn new(zones: impl IntoIterator<Item = Arc<Zone>>) -> Self {
        Self { by_origin: zones.into_iter().map(|zone| (zone.origin.clone(), zone)).collect() }
    }

    /// The same and another one, which replaces a zone with its name.
    pub fn with(mut self, zone: impl IntoIterator<Item = Arc<Zone>>) -> Self {
        self.by_origin.extend(zone.into_iter().map(|zone| (zone.origin.clone(), zone)));
        self
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_origin.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_origin.is_empty()
    }

    /// The zone with the longest name that contains this one.
    fn zone_of(&self, name: &Name) -> Option<&Zone> {
        (0..=usize::from(label_count(name)))
            .rev()
            .find_map(|labels| self.by_origin.get(&name.trim_to(labels)))
            .map(AsRef::as_ref)
    }

    /// The zone to ask. A DS record belongs to the parent of the zone that it is about.
    fn zone_for(&self, name: &Name, record_type: RecordType) -> Option<&Zone> {
        let zone = self.zone_of(name)?;
        if record_type == RecordType::DS && zone.origin == *name {
            return self.zone_of(&name.base_name()).or(Some(zone));
        }
        Some(zone)
    }

    /// The answer to a question of class IN. The name must be fully qualified; its case does not matter.
    pub fn answer(&self, name: &Name, record_type: RecordType) -> Answer {
        let mut answer = Answer::empty(ResponseCode::Refused, false);
        let mut current = name.to_lowercase();
        for _ in 0..=MOST_CNAMES {
            let Some(zone) = self.zone_for(&current, record_type) else { break };
            let first = answer.answers.is_empty();
            answer.code = ResponseCode::NoError;
            answer.authoritative = true;
            match zone.find(&current, record_type) {
                Found::Records(records) => {
                    answer.answers.extend(records);
                    break;
                }
                Found::Alias(record, target) => {
                    answer.answers.push(*record);
                    current = target;
                }
                Found::Delegation(servers) => {
                    answer.authoritative = !first;
                    answer.additionals = self.glue(&servers);
                    answer.authorities = servers;
                    break;
                }
                Found::NoData => {
                    answer.authorities = vec![zone.negative_soa()];
                    break;
                }
                Found::NoName => {
                    answer.code = ResponseCode::NXDomain;
                    answer.authorities = vec![zone.negative_soa()];
                    break;
                }
            }
        }
        answer
    }

    /// The addresses of name servers whose names are in zones served here.
    fn glue(&self, servers: &[Record]) -> Vec<Record> {
        let names = servers.iter().filter_map(|record| match &record.data {
            RData::NS(server) => Some(&server.0),
            _ => None,
        });
        let sets = names.filter_map(|name| self.zone_of(name)?.nodes.get(name));
        let addresses = sets.flat_map(|node| [RecordType::A, RecordType::AAAA].map(|of| node.set(of)));
        addresses.flatten().take(MOST_GLUE).cloned().collect()
    }

    /// The addresses of a host name, over CNAMEs inside the zones. `None`: no zone served here has any.
    pub fn lookup(&self, host: &str) -> Option<Vec<IpAddr>> {
        let name = parse_name(host)?;
        let records = [RecordType::A, RecordType::AAAA].map(|of| self.answer(&name, of).answers);
        let addresses: Vec<IpAddr> = records
            .into_iter()
            .flatten()
            .filter_map(|record| match record.data {
                RData::A(address) => Some(IpAddr::V4(address.0)),
                RData::AAAA(address) => Some(IpAddr::V6(address.0)),
                _ => None,
            })
            .collect();
        (!addresses.is_empty()).then_some(addresses)
    }
}

/// One zone.
#[derive(Debug, Clone)]
pub struct Zone {
    origin: Name,
    soa: Record,
    /// Every name that exists, also those that exist only because a longer one does.
    nodes: HashMap<Name, Node>,
}

/// The record sets of one name.
#[derive(Debug, Clone, Default)]
struct Node {
    sets: BTreeMap<RecordType, Vec<Record>>,
}

impl Node {
    fn set(&self, record_type: RecordType) -> &[Record] {
        self.sets.get(&record_type).map_or(&[], Vec::as_slice)
    }
}

/// What a zone has for a question.
enum Found {
    Records(Vec<Record>),
    Alias(Box<Record>, Name),
    Delegation(Vec<Record>),
    NoData,
    NoName,
}

impl Zone {
    /// A zone out of its record sets, each with its records under one name. SOA and NS of the zone itself are implied by its
    /// name servers where no record set states them.
    pub fn new(origin: Name, servers: &[Name], sets: impl IntoIterator<Item = Vec<Record>>) -> Self {
        let mut nodes: HashMap<Name, Node> = HashMap::from([(origin.clone(), Node::default())]);
        for set in sets {
            let Some(first) = set.first() else { continue };
            if !origin.zone_of(&first.name) {
                continue;
            }
            for name in below(&origin, &first.name) {
                nodes.entry(name).or_default();
            }
            let (owner, record_type) = (first.name.clone(), first.record_type());
            nodes.entry(owner).or_default().sets.entry(record_type).or_default().extend(set);
        }
        let apex = nodes.entry(origin.clone()).or_default();
        if apex.set(RecordType::NS).is_empty() && !servers.is_empty() {
            apex.sets.insert(RecordType::NS, name_server_records(&origin, servers));
        }
        let stated = apex.set(RecordType::SOA).first().cloned();
        let soa = stated.unwrap_or_else(|| implicit_soa(&origin, servers.first()));
        apex.sets.insert(RecordType::SOA, vec![soa.clone()]);
        Self { origin, soa, nodes }
    }

    /// The zone's name.
    pub fn origin(&self) -> &Name {
        &self.origin
    }

    fn find(&self, name: &Name, record_type: RecordType) -> Found {
        for cut in below(&self.origin, name) {
            let Some(node) = self.nodes.get(&cut) else { break };
            let servers = node.set(RecordType::NS);
            // The parent itself answers for the DS record at the cut.
            let answered_here = record_type == RecordType::DS && cut == *name;
            if !servers.is_empty() && !cut.is_wildcard() && !answered_here {
                return Found::Delegation(servers.to_vec());
            }
        }
        if let Some(node) = self.nodes.get(name) {
            return pick(node, name, record_type);
        }
        match self.wildcard(name) {
            Some(node) => pick(node, name, record_type),
            None => Found::NoName,
        }
    }

    /// The wildcard at the closest encloser of a name that does not exist. A name that exists in between hides it.
    fn wildcard(&self, name: &Name) -> Option<&Node> {
        let encloser = below(&self.origin, name).take_while(|name| self.nodes.contains_key(name)).last();
        let encloser = encloser.unwrap_or_else(|| self.origin.clone());
        self.nodes.get(&encloser.prepend_label("*").ok()?)
    }

    /// The SOA of negative answers: its time to live is how long the negation may be cached (RFC 2308).
    fn negative_soa(&self) -> Record {
        let mut soa = self.soa.clone();
        if let RData::SOA(data) = &soa.data {
            soa.ttl = soa.ttl.min(data.minimum);
        }
        soa
    }
}

/// The records of a node for a question; owners are rewritten, because the node may be a wildcard.
fn pick(node: &Node, owner: &Name, record_type: RecordType) -> Found {
    let owned = |records: &[Record]| -> Vec<Record> {
        let owned = records.iter().cloned().map(|mut record| {
            record.name = owner.clone();
            record
        });
        owned.collect()
    };
    let wanted = match record_type {
        // One set answers ANY (RFC 8482): all of them would make the server useful for amplification.
        RecordType::ANY => node.sets.values().find(|set| !set.is_empty()).map_or(&[][..], Vec::as_slice),
        other => node.set(other),
    };
    if !wanted.is_empty() {
        return Found::Records(owned(wanted));
    }
    match owned(node.set(RecordType::CNAME)).into_iter().next() {
        Some(record) => match &record.data {
            RData::CNAME(target) => {
                let target = target.0.to_lowercase();
                Found::Alias(Box::new(record), target)
            }
            _ => Found::NoData,
        },
        None => Found::NoData,
    }
}

#[cfg(test)]
mod tests;
