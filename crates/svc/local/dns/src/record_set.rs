//! Record sets: from the `properties` of an ARM resource to DNS records.
//!
//! Azure writes the members of a record set in several spellings (`ARecords`, `caaRecords`), so names are compared without
//! case. An entry that is not valid is left out; the rest of the set is served.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hickory_proto::rr::rdata::{A, AAAA, CAA, CNAME, MX, NS, PTR, SOA, SRV, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use serde_json::{Map, Value};

use crate::name::parse_name;

/// Records of one set; the limit of Azure DNS.
const MOST_RECORDS: usize = 400;
/// Strings of one TXT record.
const MOST_STRINGS: usize = 64;
/// Seconds; what Azure fills in.
const DEFAULT_TTL: u32 = 3600;
/// RFC 2181: the topmost bit is not used.
const LONGEST_TTL: u32 = 0x7fff_ffff;

/// The record types of `Microsoft.Network/dnsZones`.
pub(crate) const TYPES: [(&str, RecordType); 10] = [
    ("A", RecordType::A),
    ("AAAA", RecordType::AAAA),
    ("CAA", RecordType::CAA),
    ("CNAME", RecordType::CNAME),
    ("MX", RecordType::MX),
    ("NS", RecordType::NS),
    ("PTR", RecordType::PTR),
    ("SOA", RecordType::SOA),
    ("SRV", RecordType::SRV),
    ("TXT", RecordType::TXT),
];

/// A record set, parsed.
#[derive(Debug, Clone)]
pub(crate) struct RecordSet {
    pub(crate) record_type: RecordType,
    ttl: u32,
    data: Vec<RData>,
    /// The resource that an alias points to, in lower case.
    pub(crate) target: Option<String>,
}

impl RecordSet {
    /// Parses the properties of a record set.
    pub(crate) fn parse(record_type: RecordType, properties: &Map<String, Value>) -> Self {
        let ttl = number(properties, "TTL").map_or(DEFAULT_TTL, |ttl: u32| ttl.min(LONGEST_TTL));
        let target = member(properties, "targetResource").and_then(Value::as_object);
        let target = target.and_then(|target| text(target, "id")).map(str::to_ascii_lowercase);
        let mut data: Vec<RData> = Vec::new();
        match record_type {
            RecordType::CNAME => data.extend(single(properties, "CNAMERecord").and_then(cname)),
            RecordType::SOA => data.extend(single(properties, "SOARecord").and_then(soa)),
            _ => {
                let list = member(properties, &format!("{record_type}Records")).and_then(Value::as_array);
                let entries = list.into_iter().flatten().filter_map(Value::as_object);
                data.extend(entries.filter_map(|entry| parse_entry(record_type, entry)).take(MOST_RECORDS));
            }
        }
        Self { record_type, ttl, data, target: target.filter(|target| !target.is_empty()) }
    }

    /// Its records under a name. An alias takes the addresses that the target has.
    pub(crate) fn records(&self, owner: &Name, addresses: impl Fn(&str) -> Option<IpAddr>) -> Vec<Record> {
        let record = |data: RData| Record::from_rdata(owner.clone(), self.ttl, data);
        match &self.target {
            Some(target) => {
                let address = addresses(target).and_then(|address| self.address(address));
                address.into_iter().map(record).collect()
            }
            None => self.data.iter().cloned().map(record).collect(),
        }
    }

    /// An address as a record of this set's type.
    fn address(&self, address: IpAddr) -> Option<RData> {
        match (self.record_type, address) {
            (RecordType::A, IpAddr::V4(address)) => Some(RData::A(A(address))),
            (RecordType::AAAA, IpAddr::V6(address)) => Some(RData::AAAA(AAAA(address))),
            _ => None,
        }
    }
}

fn parse_entry(record_type: RecordType, entry: &Map<String, Value>) -> Option<RData> {
    let name = |key: &str| text(entry, key).and_then(parse_name);
    Some(match record_type {
        RecordType::A => RData::A(A(text(entry, "ipv4Address")?.parse::<Ipv4Addr>().ok()?)),
        RecordType::AAAA => RData::AAAA(AAAA(text(entry, "ipv6Address")?.parse::<Ipv6Addr>().ok()?)),
        RecordType::NS => RData::NS(NS(name("nsdname")?)),
        RecordType::PTR => RData::PTR(PTR(name("ptrdname")?)),
        RecordType::MX => RData::MX(MX::new(number(entry, "preference")?, name("exchange")?)),
        RecordType::SRV => {
            let part = |key: &str| number::<u16>(entry, key);
            RData::SRV(SRV::new(part("priority")?, part("weight")?, part("port")?, name("target")?))
        }
        RecordType::TXT => RData::TXT(txt(entry)?),
        RecordType::CAA => RData::CAA(caa(entry)?),
        _ => return None,
    })
}

fn cname(entry: &Map<String, Value>) -> Option<RData> {
    Some(RData::CNAME(CNAME(text(entry, "cname").and_then(parse_name)?)))
}

/// The strings of a TXT record; the wire allows 255 bytes in each, so longer ones are split.
fn txt(entry: &Map<String, Value>) -> Option<TXT> {
    let strings = member(entry, "value")?.as_array()?.iter().filter_map(Value::as_str);
    let mut parts: Vec<&[u8]> = Vec::new();
    for string in strings {
        match string.is_empty() {
            true => parts.push(&[]),
            false => parts.extend(string.as_bytes().chunks(255)),
        }
    }
    parts.truncate(MOST_STRINGS);
    (!parts.is_empty()).then(|| TXT::from_bytes(parts))
}

fn caa(entry: &Map<String, Value>) -> Option<CAA> {
    let flags: u8 = number(entry, "flags")?;
    let tag = text(entry, "tag")?;
    if !(1..=15).contains(&tag.len()) || !tag.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    // The constructor knows two tags only; flags, tag and value are then replaced by those of the entry.
    let mut caa = CAA::new_issue(flags & 0x80 != 0, None, Vec::new());
    caa.reserved_flags = flags & 0x7f;
    tag.clone_into(&mut caa.tag);
    caa.value = text(entry, "value")?.as_bytes().to_vec();
    Some(caa)
}

fn soa(entry: &Map<String, Value>) -> Option<RData> {
    let seconds = |key: &str, default: i32| number::<i32>(entry, key).unwrap_or(default);
    let email = text(entry, "email").unwrap_or(HOSTMASTER).replacen('@', ".", 1);
    Some(RData::SOA(SOA::new(
        text(entry, "host").and_then(parse_name)?,
        parse_name(&email)?,
        number(entry, "serialNumber").unwrap_or(1),
        seconds("refreshTime", REFRESH),
        seconds("retryTime", RETRY),
        seconds("expireTime", EXPIRE),
        number(entry, "minimumTTL").unwrap_or(MINIMUM),
    )))
}

const HOSTMASTER: &str = "azuredns-hostmaster.microsoft.com";
const REFRESH: i32 = 3600;
const RETRY: i32 = 300;
const EXPIRE: i32 = 2_419_200;
const MINIMUM: u32 = 300;

/// The SOA record of a zone that has no record set for it: the values that Azure gives new zones.
pub(crate) fn implicit_soa(origin: &Name, name_server: Option<&Name>) -> Record {
    let host = name_server.cloned().unwrap_or_else(|| origin.clone());
    let mailbox = parse_name(HOSTMASTER).unwrap_or_else(|| origin.clone());
    let soa = SOA::new(host, mailbox, 1, REFRESH, RETRY, EXPIRE, MINIMUM);
    Record::from_rdata(origin.clone(), DEFAULT_TTL, RData::SOA(soa))
}

/// The NS records of a zone's apex out of its name servers.
pub(crate) fn name_server_records(origin: &Name, servers: &[Name]) -> Vec<Record> {
    const TTL: u32 = 172_800;
    servers
        .iter()
        .map(|server| Record::from_rdata(origin.clone(), TTL, RData::NS(NS(server.clone()))))
        .collect()
}

/// A member of an object, its name compared without case.
pub(crate) fn member<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    object
        .get(name)
        .or_else(|| object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value))
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    member(object, name)?.as_str()
}

fn single<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    member(object, name)?.as_object()
}

fn number<T: TryFrom<i64>>(object: &Map<String, Value>, name: &str) -> Option<T> {
    T::try_from(member(object, name)?.as_i64()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn records(record_type: RecordType, properties: Value) -> Vec<String> {
        let Value::Object(properties) = properties else { panic!("not an object") };
        let owner = parse_name("x.example.com").unwrap();
        let set = RecordSet::parse(record_type, &properties);
        set.records(&owner, |_| None).iter().map(|record| format!("{} {}", record.ttl, record.data)).collect()
    }

    #[test]
    fn every_record_type_is_read_from_its_arm_body() {
        for (record_type, properties, expected) in [
            (RecordType::A, json!({"TTL": 60, "ARecords": [{"ipv4Address": "192.0.2.1"}]}), "60 192.0.2.1"),
            (RecordType::A, json!({"ttl": 60, "aRecords": [{"ipv4Address": "192.0.2.1"}]}), "60 192.0.2.1"),
            (RecordType::AAAA, json!({"AAAARecords": [{"ipv6Address": "2001:db8::1"}]}), "3600 2001:db8::1"),
            (RecordType::CNAME, json!({"CNAMERecord": {"cname": "Y.example.com"}}), "3600 y.example.com."),
            (
                RecordType::NS,
                json!({"NSRecords": [{"nsdname": "ns1.example.net."}]}),
                "3600 ns1.example.net.",
            ),
            (
                RecordType::MX,
                json!({"MXRecords": [{"preference": 5, "exchange": "m.example.com"}]}),
                "3600 5 m.example.com.",
            ),
            (RecordType::TXT, json!({"TXTRecords": [{"value": ["v=spf1 -all"]}]}), "3600 v=spf1 -all"),
            (
                RecordType::SRV,
                json!({"SRVRecords": [{"priority": 1, "weight": 2, "port": 3, "target": "t.example.com"}]}),
                "3600 1 2 3 t.example.com.",
            ),
            (
                RecordType::CAA,
                json!({"caaRecords": [{"flags": 0, "tag": "issue", "value": "digicert.com"}]}),
                "3600 0 issue \"digicert.com\"",
            ),
            (RecordType::PTR, json!({"PTRRecords": [{"ptrdname": "p.example.com"}]}), "3600 p.example.com."),
            (
                RecordType::SOA,
                json!({"SOARecord": {"host": "h.example.com", "email": "a@example.com", "serialNumber": 7,
                    "refreshTime": 1, "retryTime": 2, "expireTime": 3, "minimumTTL": 4}}),
                "3600 h.example.com. a.example.com. 7 1 2 3 4",
            ),
        ] {
            assert_eq!(records(record_type, properties.clone()), [expected], "{properties}");
        }
    }

    #[test]
    fn entries_that_are_not_valid_are_left_out() {
        let mixed = json!({"TTL": -5, "ARecords": [
            {"ipv4Address": "not an address"}, {"ipv4Address": "192.0.2.7"}, {}, 3,
        ]});
        assert_eq!(records(RecordType::A, mixed), ["3600 192.0.2.7"]);
        assert!(
            records(RecordType::MX, json!({"MXRecords": [{"preference": 70_000, "exchange": "m."}]}))
                .is_empty()
        );
        assert!(records(RecordType::CNAME, json!({"CNAMERecord": {"cname": "a..b"}})).is_empty());
        assert!(
            records(RecordType::CAA, json!({"caaRecords": [{"flags": 0, "tag": "no tag", "value": ""}]}))
                .is_empty()
        );
        assert!(records(RecordType::TXT, json!({"TXTRecords": [{"value": []}, {"value": "x"}]})).is_empty());
    }

    #[test]
    fn a_set_and_a_string_are_bounded() {
        let many: Vec<Value> =
            (0..1000).map(|n| json!({"ipv4Address": format!("10.0.{}.{}", n / 256, n % 256)})).collect();
        assert_eq!(records(RecordType::A, json!({"ARecords": many})).len(), MOST_RECORDS);
        let Value::Object(long) = json!({"TXTRecords": [{"value": ["x".repeat(600)]}]}) else { panic!() };
        let set = RecordSet::parse(RecordType::TXT, &long);
        let RData::TXT(txt) = &set.data[0] else { panic!("{set:?}") };
        let lengths: Vec<usize> = txt.txt_data.iter().map(|part| part.len()).collect();
        assert_eq!(lengths, [255, 255, 90]);
    }

    #[test]
    fn an_alias_takes_the_address_of_its_target_if_the_family_fits() {
        let Value::Object(alias) = json!({"TTL": 30, "targetResource": {"id": "/Some/IP"}, "ARecords": [{"ipv4Address": "192.0.2.1"}]})
        else {
            panic!()
        };
        let owner = parse_name("x.example.com").unwrap();
        let v4: IpAddr = "198.51.100.9".parse().unwrap();
        let find = |id: &str| (id == "/some/ip").then_some(v4);
        let records = RecordSet::parse(RecordType::A, &alias).records(&owner, find);
        assert_eq!(
            records.iter().map(|record| record.data.to_string()).collect::<Vec<_>>(),
            ["198.51.100.9"]
        );
        assert!(RecordSet::parse(RecordType::AAAA, &alias).records(&owner, find).is_empty());
        assert!(RecordSet::parse(RecordType::A, &alias).records(&owner, |_| None).is_empty());
    }
}
