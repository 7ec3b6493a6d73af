//! The DER encoding of a leaf certificate.
//!
//! rcgen keeps one value per attribute of a name, but a subject may have several groups (organizations), and a signed
//! request must keep its subject unchanged. So leaf certificates are encoded here; keys, signatures and authorities are
//! rcgen's (ADR 0042).

use std::net::IpAddr;

use aro_base::Timestamp;

use crate::{Subject, Usage, Validity};

pub(crate) const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_ID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const BOOLEAN: u8 = 0x01;

// Object identifiers, encoded.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 0x23];
const EXTENDED_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const CLIENT_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];

/// A value with its tag and length.
pub(crate) fn wrap(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match content.len() {
        short @ 0..128 => out.push(short as u8),
        long => {
            let bytes = long.to_be_bytes();
            let bytes: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
            out.push(0x80 | bytes.len() as u8);
            out.extend(bytes);
        }
    }
    out.extend_from_slice(content);
    out
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    wrap(SEQUENCE, &parts.concat())
}

/// A name: organizations in their order, then the common name.
pub(crate) fn name(subject: &Subject) -> Vec<u8> {
    let attribute = |kind: &[u8], value: &str| {
        let pair = sequence(&[wrap(OBJECT_ID, kind), wrap(UTF8_STRING, value.as_bytes())]);
        wrap(SET, &pair)
    };
    let mut parts: Vec<Vec<u8>> =
        subject.organizations.iter().map(|name| attribute(ORGANIZATION, name)).collect();
    parts.push(attribute(COMMON_NAME, &subject.common_name));
    sequence(&parts)
}

/// Alternative names as the value of their extension; `None` if there are none.
pub(crate) fn alternative_names(dns_names: &[String], addresses: &[IpAddr]) -> Option<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = dns_names.iter().map(|name| wrap(0x82, name.as_bytes())).collect();
    parts.extend(addresses.iter().map(|address| match address {
        IpAddr::V4(address) => wrap(0x87, &address.octets()),
        IpAddr::V6(address) => wrap(0x87, &address.octets()),
    }));
    (!parts.is_empty()).then(|| sequence(&parts))
}

/// The fields of a leaf certificate.
pub(crate) struct Leaf<'a> {
    pub serial: [u8; 16],
    /// The authority's name as it is in its certificate.
    pub issuer: &'a [u8],
    pub authority_key: &'a [u8],
    pub validity: Validity,
    pub subject: &'a [u8],
    pub public_key: &'a [u8],
    pub usage: Usage,
    pub alternative_names: Option<Vec<u8>>,
}

fn algorithm() -> Vec<u8> {
    sequence(&[wrap(OBJECT_ID, ECDSA_SHA256)])
}

fn time(moment: Timestamp) -> Vec<u8> {
    // Two digits of the year until 2049, four after that.
    let zoned = moment.to_zoned(jiff::tz::TimeZone::UTC);
    if (1950..2050).contains(&zoned.year()) {
        wrap(UTC_TIME, moment.strftime("%y%m%d%H%M%SZ").to_string().as_bytes())
    } else {
        wrap(GENERALIZED_TIME, moment.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes())
    }
}

fn extension(kind: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let mut parts = vec![wrap(OBJECT_ID, kind)];
    if critical {
        parts.push(wrap(BOOLEAN, &[0xff]));
    }
    parts.push(wrap(OCTET_STRING, value));
    sequence(&parts)
}

/// The part of a certificate that is signed.
pub(crate) fn to_be_signed(leaf: &Leaf<'_>) -> Vec<u8> {
    let mut serial = leaf.serial.to_vec();
    // Positive, and not zero at the front.
    if let Some(first) = serial.first_mut() {
        *first = *first & 0x7f | 0x40;
    }
    let uses: Vec<Vec<u8>> = match leaf.usage {
        Usage::Server => vec![wrap(OBJECT_ID, SERVER_AUTH)],
        Usage::Client => vec![wrap(OBJECT_ID, CLIENT_AUTH)],
        Usage::Both => vec![wrap(OBJECT_ID, SERVER_AUTH), wrap(OBJECT_ID, CLIENT_AUTH)],
    };
    let mut extensions = vec![
        // Digital signature: the first bit of eight, seven unused.
        extension(KEY_USAGE, true, &wrap(BIT_STRING, &[7, 0x80])),
        extension(EXTENDED_USAGE, false, &sequence(&uses)),
        extension(BASIC_CONSTRAINTS, true, &sequence(&[])),
        extension(AUTHORITY_KEY, false, &sequence(&[wrap(0x80, leaf.authority_key)])),
    ];
    if let Some(names) = &leaf.alternative_names {
        extensions.push(extension(ALTERNATIVE_NAMES, false, names));
    }
    sequence(&[
        wrap(0xa0, &wrap(INTEGER, &[2])),
        wrap(INTEGER, &serial),
        algorithm(),
        leaf.issuer.to_vec(),
        sequence(&[time(leaf.validity.not_before), time(leaf.validity.not_after)]),
        leaf.subject.to_vec(),
        leaf.public_key.to_vec(),
        wrap(0xa3, &sequence(&extensions)),
    ])
}

/// A whole certificate.
pub(crate) fn certificate(to_be_signed: &[u8], signature: &[u8]) -> Vec<u8> {
    let mut bits = vec![0];
    bits.extend_from_slice(signature);
    sequence(&[to_be_signed.to_vec(), algorithm(), wrap(BIT_STRING, &bits)])
}
