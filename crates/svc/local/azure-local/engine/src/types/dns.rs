//! DNS zones and their record sets.

use serde_json::{Value, json};

use crate::compute::Draft;
use crate::refusal::Refusal;
use crate::spec::{
    InUse, Member, MemberKind as Kind, NameShape, Naming, PLAIN, Placement, Reference, TypeSpec,
};

const VERSIONS: &[&str] = &["2018-05-01", "2023-07-01-preview"];
const PRIVATE_VERSIONS: &[&str] = &["2018-09-01", "2020-01-01", "2020-06-01", "2024-06-01"];

/// The record types, each with the member that holds its records.
pub const RECORDS: &[(&str, &str)] = &[
    ("A", "ARecords"),
    ("AAAA", "AAAARecords"),
    ("CAA", "caaRecords"),
    ("CNAME", "CNAMERecord"),
    ("MX", "MXRecords"),
    ("NS", "NSRecords"),
    ("PTR", "PTRRecords"),
    ("SOA", "SOARecord"),
    ("SRV", "SRVRecords"),
    ("TXT", "TXTRecords"),
];

const fn member(path: &'static str, kind: Kind) -> Member {
    Member { path, kind, required: false }
}

const RECORD: TypeSpec = TypeSpec {
    namespace: "Microsoft.Network",
    versions: VERSIONS,
    placement: Placement::None,
    naming: Naming { longest: 253, shape: NameShape::DnsRecord, unique_everywhere: None },
    members: &[
        member("properties", Kind::Object),
        member("properties.metadata", Kind::Object),
        member("properties.TTL", Kind::Integer(0, 2_147_483_647)),
        member("properties.ARecords", Kind::List),
        member("properties.ARecords[].ipv4Address", Kind::Address),
        member("properties.AAAARecords", Kind::List),
        member("properties.AAAARecords[].ipv6Address", Kind::Address),
        member("properties.CNAMERecord", Kind::Object),
        member("properties.CNAMERecord.cname", Kind::Text),
        member("properties.NSRecords", Kind::List),
        member("properties.NSRecords[].nsdname", Kind::Text),
        member("properties.MXRecords", Kind::List),
        member("properties.MXRecords[].preference", Kind::Integer(0, 65_535)),
        member("properties.MXRecords[].exchange", Kind::Text),
        member("properties.PTRRecords", Kind::List),
        member("properties.PTRRecords[].ptrdname", Kind::Text),
        member("properties.SRVRecords", Kind::List),
        member("properties.SRVRecords[].port", Kind::Integer(0, 65_535)),
        member("properties.SRVRecords[].target", Kind::Text),
        member("properties.TXTRecords", Kind::List),
        member("properties.TXTRecords[].value", Kind::Texts),
        member("properties.caaRecords", Kind::List),
        member("properties.caaRecords[].tag", Kind::Text),
        member("properties.SOARecord", Kind::Object),
    ],
    references: &[Reference {
        path: "properties.targetResource.id",
        target: "Microsoft.Network/publicIPAddresses",
        action: None,
    }],
    compute: record_set,
    ..PLAIN
};

const fn record(types: &'static [(&'static str, &'static str)], full: &'static str) -> TypeSpec {
    TypeSpec { types, full, ..RECORD }
}

/// The types.
pub const TYPES: &[TypeSpec] = &[
    TypeSpec {
        namespace: "Microsoft.Network",
        types: &[("dnsZones", "zone")],
        full: "Microsoft.Network/dnsZones",
        versions: VERSIONS,
        placement: Placement::Global,
        naming: Naming { longest: 253, shape: NameShape::DnsZone, unique_everywhere: None },
        members: &[
            member("properties", Kind::Object),
            member("properties.zoneType", Kind::OneOf(&["Public", "Private"])),
        ],
        compute: zone,
        in_use: InUse { code: "InUseDnsZoneCannotBeDeleted", noun: "DNS zone" },
        ..PLAIN
    },
    record(&[("dnsZones", "zone"), ("A", "record")], "Microsoft.Network/dnsZones/A"),
    record(&[("dnsZones", "zone"), ("AAAA", "record")], "Microsoft.Network/dnsZones/AAAA"),
    record(&[("dnsZones", "zone"), ("CAA", "record")], "Microsoft.Network/dnsZones/CAA"),
    record(&[("dnsZones", "zone"), ("CNAME", "record")], "Microsoft.Network/dnsZones/CNAME"),
    record(&[("dnsZones", "zone"), ("MX", "record")], "Microsoft.Network/dnsZones/MX"),
    record(&[("dnsZones", "zone"), ("NS", "record")], "Microsoft.Network/dnsZones/NS"),
    record(&[("dnsZones", "zone"), ("PTR", "record")], "Microsoft.Network/dnsZones/PTR"),
    record(&[("dnsZones", "zone"), ("SOA", "record")], "Microsoft.Network/dnsZones/SOA"),
    record(&[("dnsZones", "zone"), ("SRV", "record")], "Microsoft.Network/dnsZones/SRV"),
    record(&[("dnsZones", "zone"), ("TXT", "record")], "Microsoft.Network/dnsZones/TXT"),
    TypeSpec {
        namespace: "Microsoft.Network",
        types: &[("privateDnsZones", "zone")],
        full: "Microsoft.Network/privateDnsZones",
        versions: PRIVATE_VERSIONS,
        placement: Placement::Global,
        naming: Naming { longest: 253, shape: NameShape::DnsZone, unique_everywhere: None },
        long_running: true,
        ..PLAIN
    },
];

/// The name servers that the local cloud delegates to.
const NAME_SERVERS: [&str; 2] = ["ns1.azure-local.invalid.", "ns2.azure-local.invalid."];

fn zone(draft: &mut Draft<'_>) -> Result<(), Refusal> {
    draft.default("zoneType", json!("Public"));
    draft.immutable("zoneType")?;
    draft.set("nameServers", json!(NAME_SERVERS));
    draft.set("maxNumberOfRecordSets", json!(10_000));
    Ok(())
}

fn record_set(draft: &mut Draft<'_>) -> Result<(), Refusal> {
    // Clients of different ages spell these members in different cases.
    for (wrong, right) in [
        ("ttl", "TTL"),
        ("aRecords", "ARecords"),
        ("aaaaRecords", "AAAARecords"),
        ("cnameRecord", "CNAMERecord"),
        ("nsRecords", "NSRecords"),
        ("mxRecords", "MXRecords"),
        ("ptrRecords", "PTRRecords"),
        ("srvRecords", "SRVRecords"),
        ("txtRecords", "TXTRecords"),
        ("soaRecord", "SOARecord"),
        ("CAARecords", "caaRecords"),
    ] {
        if let Some(value) = draft.properties().remove(wrong) {
            draft.default(right, value);
        }
    }
    let own = draft.id.resource_type().rsplit('/').next().unwrap_or_default().to_uppercase();
    let own = RECORDS.iter().find(|(word, _)| *word == own).map_or("", |(_, member)| *member);
    let strangers = RECORDS.iter().map(|(_, member)| *member).filter(|member| *member != own);
    for stranger in strangers {
        let present = draft
            .properties()
            .get(stranger)
            .is_some_and(|value| value.as_array().is_none_or(|list| !list.is_empty()) && !value.is_null());
        if present {
            let message = format!(
                "The record set of type '{}' cannot have the property '{stranger}'.",
                draft.id.resource_type()
            );
            return Err(Refusal::new(http::StatusCode::BAD_REQUEST, "BadRequest", message)
                .at(format!("properties.{stranger}")));
        }
    }
    draft.default("TTL", json!(3600));
    let zone = draft.id.parent().map(|zone| zone.name().to_owned()).unwrap_or_default();
    let fqdn = match draft.id.name() {
        "@" => format!("{zone}."),
        name => format!("{name}.{zone}."),
    };
    if draft.id.is_type("Microsoft.Network/dnsZones/CNAME") && draft.id.name() == "@" {
        let message = "The relative record set name '@' is not allowed for a CNAME record set.";
        return Err(Refusal::new(http::StatusCode::BAD_REQUEST, "BadRequest", message));
    }
    draft.set("fqdn", Value::from(fqdn));
    Ok(())
}
