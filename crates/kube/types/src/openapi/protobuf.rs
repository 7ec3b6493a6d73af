//! A Swagger document in the protobuf form that kubectl and client-go ask for at `/openapi/v2`.
//!
//! The messages are those of gnostic's `openapi.v2` package. Each is a table of members, so that one function writes all
//! of them; members that no table names are left out, as clients read only what the tables have. Values of no fixed type
//! (defaults, enumerations, extensions) are YAML texts on that wire, and JSON is YAML.
//!
//! Invariant: recursion follows the document, which this program has made of schemas of bounded depth.

use serde_json::Value;

/// How a member is written.
enum Kind {
    Text,
    Texts,
    Bool,
    Double,
    Integer,
    /// A value of any type.
    Any,
    Anys,
    Message(&'static Table),
    Messages(&'static Table),
    /// An object as a message of named values: the number of its entries, and what a value is.
    Named(u32, &'static Table),
    /// A message inside of messages that have nothing but it: their numbers from the outside, and the innermost.
    Wrapped(&'static [u32], &'static Table),
    /// One text or several, in a message.
    TypeItem,
    /// A schema or a boolean.
    Additional,
    Parameters,
}

/// A message: its members by their name in JSON, and the number of its extensions.
struct Table {
    members: &'static [(&'static str, u32, Kind)],
    extensions: u32,
    /// Members of [`Kind::Named`] tables whose values are wrapped once more.
    wrapped_in: Option<u32>,
}

const fn table(extensions: u32, members: &'static [(&'static str, u32, Kind)]) -> Table {
    Table { members, extensions, wrapped_in: None }
}

static DOCUMENT: Table = table(
    16,
    &[
        ("swagger", 1, Kind::Text),
        ("info", 2, Kind::Message(&INFO)),
        ("paths", 8, Kind::Named(2, &PATH_ITEM)),
        ("definitions", 9, Kind::Named(1, &SCHEMA)),
    ],
);

static INFO: Table = table(7, &[("title", 1, Kind::Text), ("version", 2, Kind::Text)]);

static PATH_ITEM: Table = table(
    10,
    &[
        ("get", 2, Kind::Message(&OPERATION)),
        ("put", 3, Kind::Message(&OPERATION)),
        ("post", 4, Kind::Message(&OPERATION)),
        ("delete", 5, Kind::Message(&OPERATION)),
        ("options", 6, Kind::Message(&OPERATION)),
        ("head", 7, Kind::Message(&OPERATION)),
        ("patch", 8, Kind::Message(&OPERATION)),
        ("parameters", 9, Kind::Parameters),
    ],
);

static OPERATION: Table = table(
    13,
    &[
        ("tags", 1, Kind::Texts),
        ("summary", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("operationId", 5, Kind::Text),
        ("produces", 6, Kind::Texts),
        ("consumes", 7, Kind::Texts),
        ("parameters", 8, Kind::Parameters),
        ("responses", 9, Kind::Named(1, &RESPONSE)),
        ("schemes", 10, Kind::Texts),
        ("deprecated", 11, Kind::Bool),
    ],
);

static RESPONSE: Table = Table {
    members: &[("description", 1, Kind::Text), ("schema", 2, Kind::Wrapped(&[1], &SCHEMA))],
    extensions: 5,
    // A response or a reference to one.
    wrapped_in: Some(1),
};

static BODY_PARAMETER: Table = table(
    6,
    &[
        ("description", 1, Kind::Text),
        ("name", 2, Kind::Text),
        ("in", 3, Kind::Text),
        ("required", 4, Kind::Bool),
        ("schema", 5, Kind::Message(&SCHEMA)),
    ],
);

static HEADER_PARAMETER: Table = table(
    22,
    &[
        ("required", 1, Kind::Bool),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("name", 4, Kind::Text),
        ("type", 5, Kind::Text),
        ("format", 6, Kind::Text),
    ],
);

/// Of the path; it has the numbers of one of the header.
static PATH_PARAMETER: &Table = &HEADER_PARAMETER;

static QUERY_PARAMETER: Table = table(
    23,
    &[
        ("required", 1, Kind::Bool),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("name", 4, Kind::Text),
        ("allowEmptyValue", 5, Kind::Bool),
        ("type", 6, Kind::Text),
        ("format", 7, Kind::Text),
    ],
);

static SCHEMA: Table = table(
    31,
    &[
        ("$ref", 1, Kind::Text),
        ("format", 2, Kind::Text),
        ("title", 3, Kind::Text),
        ("description", 4, Kind::Text),
        ("default", 5, Kind::Any),
        ("multipleOf", 6, Kind::Double),
        ("maximum", 7, Kind::Double),
        ("exclusiveMaximum", 8, Kind::Bool),
        ("minimum", 9, Kind::Double),
        ("exclusiveMinimum", 10, Kind::Bool),
        ("maxLength", 11, Kind::Integer),
        ("minLength", 12, Kind::Integer),
        ("pattern", 13, Kind::Text),
        ("maxItems", 14, Kind::Integer),
        ("minItems", 15, Kind::Integer),
        ("uniqueItems", 16, Kind::Bool),
        ("maxProperties", 17, Kind::Integer),
        ("minProperties", 18, Kind::Integer),
        ("required", 19, Kind::Texts),
        ("enum", 20, Kind::Anys),
        ("additionalProperties", 21, Kind::Additional),
        ("type", 22, Kind::TypeItem),
        ("items", 23, Kind::Wrapped(&[1], &SCHEMA)),
        ("allOf", 24, Kind::Messages(&SCHEMA)),
        ("properties", 25, Kind::Named(1, &SCHEMA)),
        ("readOnly", 27, Kind::Bool),
        ("example", 30, Kind::Any),
    ],
);

/// The document as a message.
pub fn document(swagger: &Value) -> Vec<u8> {
    message(&DOCUMENT, swagger)
}

fn message(table: &Table, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let Some(object) = value.as_object() else { return out };
    for (name, number, kind) in table.members {
        if let Some(member) = object.get(*name) {
            put(&mut out, *number, kind, member);
        }
    }
    for (name, extension) in object.iter().filter(|(name, _)| name.starts_with("x-")) {
        bytes(&mut out, table.extensions, &named(name, &any(extension)));
    }
    out
}

fn put(out: &mut Vec<u8>, number: u32, kind: &Kind, value: &Value) {
    match kind {
        Kind::Text => bytes(out, number, value.as_str().unwrap_or_default().as_bytes()),
        Kind::Texts => texts(out, number, value),
        Kind::Bool => {
            if value == &Value::Bool(true) {
                tag(out, number, 0);
                out.push(1);
            }
        }
        Kind::Double => {
            tag(out, number, 1);
            out.extend_from_slice(&value.as_f64().unwrap_or_default().to_le_bytes());
        }
        Kind::Integer => {
            tag(out, number, 0);
            varint(out, value.as_i64().unwrap_or_default() as u64);
        }
        Kind::Any => bytes(out, number, &any(value)),
        Kind::Anys => items(value).for_each(|item| bytes(out, number, &any(item))),
        Kind::Message(table) => bytes(out, number, &message(table, value)),
        Kind::Messages(table) => items(value).for_each(|item| bytes(out, number, &message(table, item))),
        Kind::Named(entry, table) => bytes(out, number, &entries(*entry, table, value)),
        Kind::Wrapped(around, table) => bytes(out, number, &wrapped(around, message(table, value))),
        Kind::TypeItem => {
            let mut inner = Vec::new();
            match value {
                Value::String(text) => bytes(&mut inner, 1, text.as_bytes()),
                several => texts(&mut inner, 1, several),
            }
            bytes(out, number, &inner);
        }
        Kind::Additional => {
            let mut inner = Vec::new();
            match value {
                Value::Bool(allowed) => {
                    tag(&mut inner, 2, 0);
                    inner.push(u8::from(*allowed));
                }
                schema => bytes(&mut inner, 1, &message(&SCHEMA, schema)),
            }
            bytes(out, number, &inner);
        }
        Kind::Parameters => items(value).for_each(|item| bytes(out, number, &parameter(item))),
    }
}

/// A parameter, by where it stands in a request.
fn parameter(value: &Value) -> Vec<u8> {
    let (around, table): (&[u32], &Table) = match value.get("in").and_then(Value::as_str) {
        Some("body") => (&[1, 1], &BODY_PARAMETER),
        Some("header") => (&[1, 2, 1], &HEADER_PARAMETER),
        Some("path") => (&[1, 2, 4], PATH_PARAMETER),
        _ => (&[1, 2, 3], &QUERY_PARAMETER),
    };
    wrapped(around, message(table, value))
}

fn wrapped(around: &[u32], inner: Vec<u8>) -> Vec<u8> {
    around.iter().rev().fold(inner, |inner, number| {
        let mut outer = Vec::with_capacity(inner.len() + 6);
        bytes(&mut outer, *number, &inner);
        outer
    })
}

fn entries(entry: u32, table: &Table, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        let around = table.wrapped_in;
        let value = wrapped(around.as_slice(), message(table, value));
        bytes(&mut out, entry, &named(name, &value));
    }
    out
}

fn named(name: &str, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, 1, name.as_bytes());
    bytes(&mut out, 2, value);
    out
}

fn any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, 2, format!("{value}\n").as_bytes());
    out
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts(out: &mut Vec<u8>, number: u32, value: &Value) {
    items(value).filter_map(Value::as_str).for_each(|text| bytes(out, number, text.as_bytes()));
}

fn bytes(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    tag(out, number, 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn tag(out: &mut Vec<u8>, number: u32, wire_type: u32) {
    varint(out, u64::from(number << 3 | wire_type));
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_have_the_numbers_of_the_protocol() {
        let text = |number: u8, text: &str| [&[number << 3 | 2, text.len() as u8], text.as_bytes()].concat();
        let wrap = |number: u8, inner: &[u8]| [&[number << 3 | 2, inner.len() as u8], inner].concat();
        assert_eq!(message(&DOCUMENT, &json!({"swagger": "2.0"})), text(1, "2.0"));
        // Strings are in a type item, and extensions are YAML.
        let schema = message(&SCHEMA, &json!({"type": "string", "description": "d"}));
        let kind = [&[0xb2, 0x01, 8][..], &text(1, "string")].concat();
        assert_eq!(schema, [text(4, "d"), kind].concat());
        let path = message(&PATH_ITEM, &json!({"get": {"operationId": "a"}}));
        assert_eq!(path, wrap(2, &text(5, "a")));
        let extended = message(&INFO, &json!({"x-a": [1]}));
        assert_eq!(extended, wrap(7, &[text(1, "x-a"), wrap(2, &text(2, "[1]\n"))].concat()));
        let parameter = parameter(&json!({"in": "query", "name": "q"}));
        let inner = [text(2, "query"), text(4, "q")].concat();
        assert_eq!(parameter, wrap(1, &wrap(2, &wrap(3, &inner))));
    }
}
