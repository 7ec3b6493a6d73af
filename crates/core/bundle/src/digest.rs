//! Digests of a spec's data and of a status.

use aro_crds::work::v1::ManifestWorkStatus;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The digest of an event's data as received; the delivery ledger follows it.
pub fn content_hash(data: &[u8]) -> String {
    hex(data)
}

/// The digest of a work's status: of its JSON with sorted names, as the original agent computes it.
pub fn status_hash(status: &ManifestWorkStatus) -> String {
    let value = serde_json::to_value(status).unwrap_or_default();
    let mut text = Vec::with_capacity(2048);
    sorted(&value, &mut text);
    hex(&text)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        text.push(DIGITS[usize::from(byte >> 4)].into());
        text.push(DIGITS[usize::from(byte & 15)].into());
    }
    text
}

/// JSON with sorted names, independent of the map's order.
fn sorted(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Object(members) => {
            text.push(b'{');
            if members.keys().is_sorted() {
                members_in_order(members.iter(), text);
            } else {
                let mut all: Vec<(&String, &Value)> = members.iter().collect();
                all.sort_unstable_by_key(|(name, _)| *name);
                members_in_order(all.into_iter(), text);
            }
            text.push(b'}');
        }
        Value::Array(items) => {
            text.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                sorted(item, text);
            }
            text.push(b']');
        }
        plain => write(plain, text),
    }
}

fn members_in_order<'a>(members: impl Iterator<Item = (&'a String, &'a Value)>, text: &mut Vec<u8>) {
    for (index, (name, value)) in members.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write(name, text);
        text.push(b':');
        sorted(value, text);
    }
}

fn write(plain: &impl serde::Serialize, text: &mut Vec<u8>) {
    // Strings and numbers always serialize into memory.
    let _ = serde_json::to_writer(text, plain);
}
