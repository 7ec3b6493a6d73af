//! DNS zones, record sets and delegations.

use std::net::Ipv4Addr;

use aro_arm::ResourceId;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Resource, Tags};
use crate::api_version::DNS;
use crate::arm::{ArmClient, Precondition, Update};
use crate::error::{CloudError, Failure};

/// How long resolvers keep a delegation.
const DELEGATION_TTL: u32 = 3600;

/// A DNS zone.
pub type Zone = Resource<ZoneProperties>;

/// The members of a DNS zone.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ZoneProperties {
    /// Its name servers.
    #[serde(default)]
    pub name_servers: Vec<String>,
}

/// The records of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordData {
    /// Addresses.
    A(Vec<Ipv4Addr>),
    /// Another name.
    Cname(String),
    /// Name servers of a child zone.
    Ns(Vec<String>),
    /// Texts.
    Txt(Vec<String>),
    /// Which authorities may issue certificates.
    Caa(Vec<CaaRecord>),
}

/// Which authority may issue certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaaRecord {
    /// Whether an authority that does not know the tag must refuse.
    pub critical: bool,
    /// `issue`, `issuewild` or `iodef`.
    pub tag: String,
    /// The authority.
    pub value: String,
}

impl CaaRecord {
    /// Lets an authority issue.
    pub fn issue(authority: &str) -> Self {
        Self { critical: false, tag: "issue".to_owned(), value: authority.to_owned() }
    }

    fn body(&self) -> Value {
        json!({ "flags": if self.critical { 128 } else { 0 }, "tag": self.tag, "value": self.value })
    }
}

impl RecordData {
    /// The type of the set.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::A(_) => "A",
            Self::Cname(_) => "CNAME",
            Self::Ns(_) => "NS",
            Self::Txt(_) => "TXT",
            Self::Caa(_) => "CAA",
        }
    }

    fn member(&self) -> (&'static str, Value) {
        match self {
            Self::A(ips) => ("ARecords", ips.iter().map(|ip| json!({ "ipv4Address": ip })).collect()),
            Self::Cname(name) => ("CNAMERecord", json!({ "cname": name })),
            Self::Ns(names) => ("NSRecords", names.iter().map(|name| json!({ "nsdname": name })).collect()),
            Self::Txt(texts) => ("TXTRecords", texts.iter().map(|text| json!({ "value": [text] })).collect()),
            Self::Caa(records) => ("caaRecords", records.iter().map(CaaRecord::body).collect()),
        }
    }
}

/// A record set as wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSet {
    /// Its name relative to the zone; `@` for the zone itself.
    pub name: String,
    /// How long resolvers keep it, in seconds.
    pub ttl: u32,
    /// Its records.
    pub data: RecordData,
    /// Its metadata, e.g. the resource that owns it.
    pub metadata: Tags,
}

impl RecordSet {
    fn id(&self, zone: &ResourceId) -> ResourceId {
        zone.child(self.data.kind(), &self.name)
    }

    fn body(&self) -> Value {
        let (member, records) = self.data.member();
        let mut properties = Map::new();
        properties.insert("TTL".to_owned(), self.ttl.into());
        properties.insert(member.to_owned(), records);
        if !self.metadata.is_empty() {
            properties.insert("metadata".to_owned(), json!(self.metadata));
        }
        json!({ "properties": properties })
    }
}

impl ArmClient {
    /// Makes a public zone.
    pub async fn ensure_zone(&self, id: &ResourceId, tags: &Tags) -> Result<Zone, CloudError> {
        let wanted = json!({ "location": "global", "tags": tags, "properties": { "zoneType": "Public" } });
        self.ensure_typed(id, DNS, &wanted, Update::Replace).await
    }

    /// Finds a zone.
    pub async fn find_zone(&self, id: &ResourceId) -> Result<Option<Zone>, CloudError> {
        self.find(id, DNS).await
    }

    /// Deletes a zone with its records.
    pub async fn delete_zone(&self, id: &ResourceId) -> Result<(), CloudError> {
        self.delete(id, DNS).await
    }

    /// Makes a record set.
    pub async fn ensure_record_set(&self, zone: &ResourceId, set: &RecordSet) -> Result<(), CloudError> {
        self.ensure(&set.id(zone), DNS, &set.body(), Update::Replace).await.map(drop)
    }

    /// Creates a record set; an error that [`CloudError::is_changed`] recognizes if it exists with other content, so that
    /// two owners cannot take one name.
    pub async fn create_record_set(&self, zone: &ResourceId, set: &RecordSet) -> Result<(), CloudError> {
        self.put(&set.id(zone), DNS, &set.body(), &Precondition::Absent).await.map(drop)
    }

    /// Deletes a record set. `kind` is its type, e.g. `A`.
    pub async fn delete_record_set(
        &self,
        zone: &ResourceId,
        kind: &str,
        name: &str,
    ) -> Result<(), CloudError> {
        self.delete(&zone.child(kind, name), DNS).await
    }

    /// Delegates a child zone: the parent's NS records lead to the child's name servers.
    pub async fn ensure_delegation(&self, parent: &ResourceId, child: &ResourceId) -> Result<(), CloudError> {
        let suffix = format!(".{}", parent.name().to_ascii_lowercase());
        let child_name = child.name().to_ascii_lowercase();
        let Some(name) = child_name.strip_suffix(&suffix).filter(|name| !name.is_empty()) else {
            return Err(self.problem(child, Failure::Mismatch("name than one below the parent zone")));
        };
        let zone: Zone = self.get(child, DNS).await?;
        if zone.properties.name_servers.is_empty() {
            return Err(self.problem(child, Failure::Protocol("the zone has no name servers")));
        }
        let data = RecordData::Ns(zone.properties.name_servers);
        let set = RecordSet { name: name.to_owned(), ttl: DELEGATION_TTL, data, metadata: Tags::new() };
        self.ensure_record_set(parent, &set).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_named_as_the_provider_names_them() {
        let set = RecordSet {
            name: "api".to_owned(),
            ttl: 300,
            data: RecordData::A(vec![Ipv4Addr::LOCALHOST]),
            metadata: Tags::new(),
        };
        assert_eq!(
            set.body(),
            json!({"properties": {"TTL": 300, "ARecords": [{"ipv4Address": "127.0.0.1"}]}})
        );
        let (member, records) = RecordData::Txt(vec!["v=spf1 -all".to_owned()]).member();
        assert_eq!((member, records), ("TXTRecords", json!([{"value": ["v=spf1 -all"]}])));
    }
}
