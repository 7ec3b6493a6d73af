//! From bytes to JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Number, Value, json};

use crate::table::{Field, FieldKind, fields};

/// Why bytes are no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoEnvelope,
    #[error("no kind {0:?} is known in protobuf")]
    UnknownType(String),
    #[error("proto: illegal wireType {0}")]
    WireType(u8),
    #[error("unexpected EOF")]
    Truncated,
    #[error("proto: invalid UTF-8 in a string")]
    Text,
    #[error("proto: messages are nested too deeply")]
    Depth,
}

const MAX_DEPTH: usize = 64;

/// What stands on the wire.
enum Raw<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed64(u64),
    Fixed32(u32),
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for shift in 0..10 {
            let (byte, rest) = self.0.split_first().ok_or(WireError::Truncated)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << (shift * 7).min(63);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError::Truncated)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(WireError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn next(&mut self) -> Result<Option<(u32, Raw<'a>)>, WireError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| WireError::Truncated)?;
        let raw = match (tag & 7) as u8 {
            0 => Raw::Number(self.varint()?),
            1 => Raw::Fixed64(
                self.take(8)?.try_into().map(u64::from_le_bytes).map_err(|_| WireError::Truncated)?,
            ),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| WireError::Truncated)?;
                Raw::Bytes(self.take(length)?)
            }
            5 => Raw::Fixed32(
                self.take(4)?.try_into().map(u32::from_le_bytes).map_err(|_| WireError::Truncated)?,
            ),
            other => return Err(WireError::WireType(other)),
        };
        Ok(Some((number, raw)))
    }
}

/// The bytes of one member; empty when it is absent.
pub(crate) fn raw_field(bytes: &[u8], wanted: u32) -> Result<&[u8], WireError> {
    let mut reader = Reader(bytes);
    let mut found: &[u8] = &[];
    while let Some((number, raw)) = reader.next()? {
        if let Raw::Bytes(bytes) = raw
            && number == wanted
        {
            found = bytes;
        }
    }
    Ok(found)
}

/// Types that are something else in JSON.
fn special(name: &str, bytes: &[u8]) -> Result<Option<Value>, WireError> {
    let short = name.rsplit('.').next().unwrap_or(name);
    Ok(Some(match short {
        "Time" | "MicroTime" if name.contains(".meta.v1.") => time(bytes, short == "MicroTime")?,
        "Duration" if name.contains(".meta.v1.") => duration(first_number(bytes)? as i64),
        "Quantity" => json!(text(raw_field(bytes, 1)?)?),
        "IntOrString" => {
            if numbers(bytes)?.0 == 0 {
                json!(numbers(bytes)?.1 as i32)
            } else {
                json!(text(raw_field(bytes, 3)?)?)
            }
        }
        "RawExtension" | "FieldsV1" | "JSON" => {
            serde_json::from_slice(raw_field(bytes, 1)?).unwrap_or(Value::Null)
        }
        _ => return Ok(None),
    }))
}

fn first_number(bytes: &[u8]) -> Result<u64, WireError> {
    Ok(numbers(bytes)?.0)
}

/// Members one and two, as numbers.
fn numbers(bytes: &[u8]) -> Result<(u64, u64), WireError> {
    let mut reader = Reader(bytes);
    let mut found = (0, 0);
    while let Some((number, raw)) = reader.next()? {
        match (number, raw) {
            (1, Raw::Number(value)) => found.0 = value,
            (2, Raw::Number(value)) => found.1 = value,
            _ => {}
        }
    }
    Ok(found)
}

fn time(bytes: &[u8], micro: bool) -> Result<Value, WireError> {
    // The zero time has no members at all.
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (seconds, nanos) = numbers(bytes)?;
    let Ok(moment) = Timestamp::new(seconds as i64, (nanos as i32).clamp(0, 999_999_999)) else {
        return Ok(Value::Null);
    };
    let format = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(json!(moment.strftime(format).to_string()))
}

/// As Go writes durations.
fn duration(nanos: i64) -> Value {
    if nanos == 0 {
        return json!("0s");
    }
    let sign = if nanos < 0 { "-" } else { "" };
    let seconds = nanos.unsigned_abs() as f64 / 1e9;
    let (hours, rest) = ((seconds / 3600.0).floor(), seconds % 3600.0);
    let (minutes, seconds) = ((rest / 60.0).floor(), rest % 60.0);
    json!(match (hours > 0.0, minutes > 0.0) {
        (true, _) => format!("{sign}{hours}h{minutes}m{seconds}s"),
        (false, true) => format!("{sign}{minutes}m{seconds}s"),
        (false, false) => format!("{sign}{seconds}s"),
    })
}

fn text(bytes: &[u8]) -> Result<&str, WireError> {
    std::str::from_utf8(bytes).map_err(|_| WireError::Text)
}

/// Reads a message of a known type.
pub(crate) fn message(bytes: &[u8], name: &str, depth: usize) -> Result<Value, WireError> {
    if depth > MAX_DEPTH {
        return Err(WireError::Depth);
    }
    if let Some(value) = special(name, bytes)? {
        return Ok(value);
    }
    let known = fields(name).ok_or_else(|| WireError::UnknownType(name.to_owned()))?;
    // Lists under a name of their own (`Verbs`, `ExtraValue`) are plain lists in JSON.
    if let [Field { name: "items", kind: FieldKind::List, ty, .. }] = known
        && !ty.contains('.')
    {
        return list_of(bytes, known, depth);
    }
    let mut object = Map::new();
    let mut reader = Reader(bytes);
    while let Some((number, raw)) = reader.next()? {
        let Some(field) = known.iter().find(|field| field.number == number) else { continue };
        put(&mut object, field, raw, depth)?;
    }
    Ok(Value::Object(object))
}

fn list_of(bytes: &[u8], known: &[Field], depth: usize) -> Result<Value, WireError> {
    let mut items = Vec::new();
    let mut reader = Reader(bytes);
    while let Some((number, raw)) = reader.next()? {
        if let Some(field) = known.iter().find(|field| field.number == number) {
            items.push(scalar(field.ty, raw, depth)?);
        }
    }
    Ok(Value::Array(items))
}

fn put(object: &mut Map<String, Value>, field: &Field, raw: Raw<'_>, depth: usize) -> Result<(), WireError> {
    match field.kind {
        FieldKind::One => {
            let value = scalar(field.ty, raw, depth)?;
            if !value.is_null() {
                object.insert(field.name.to_owned(), value);
            }
        }
        FieldKind::Inline => {
            if let Value::Object(members) = scalar(field.ty, raw, depth)? {
                object.extend(members);
            }
        }
        FieldKind::List => {
            let value = scalar(field.ty, raw, depth)?;
            match object.entry(field.name).or_insert_with(|| json!([])) {
                Value::Array(items) => items.push(value),
                other => *other = json!([value]),
            }
        }
        FieldKind::Map => {
            let Raw::Bytes(entry) = raw else { return Ok(()) };
            let mut key = String::new();
            let mut value = None;
            let mut reader = Reader(entry);
            while let Some((number, raw)) = reader.next()? {
                match (number, raw) {
                    (1, Raw::Bytes(bytes)) => text(bytes)?.clone_into(&mut key),
                    (2, raw) => value = Some(scalar(field.ty, raw, depth)?),
                    _ => {}
                }
            }
            let value = value.unwrap_or_else(|| {
                if field.ty == "string" || field.ty == "bytes" { json!("") } else { json!({}) }
            });
            match object.entry(field.name).or_insert_with(|| json!({})) {
                Value::Object(entries) => {
                    entries.insert(key, value);
                }
                other => *other = json!({key: value}),
            }
        }
    }
    Ok(())
}

fn scalar(ty: &str, raw: Raw<'_>, depth: usize) -> Result<Value, WireError> {
    Ok(match (ty, raw) {
        ("string", Raw::Bytes(bytes)) => json!(text(bytes)?),
        ("bytes", Raw::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        ("bool", Raw::Number(value)) => json!(value != 0),
        ("int32", Raw::Number(value)) => json!(value as i32),
        ("int64", Raw::Number(value)) => json!(value as i64),
        ("uint32" | "uint64", Raw::Number(value)) => json!(value),
        ("double", Raw::Fixed64(bits)) => {
            Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)
        }
        (_, Raw::Fixed32(bits)) => json!(bits),
        (name, Raw::Bytes(bytes)) => message(bytes, name, depth + 1)?,
        (_, Raw::Number(_)) => return Err(WireError::WireType(0)),
        (_, Raw::Fixed64(_)) => return Err(WireError::WireType(1)),
    })
}
