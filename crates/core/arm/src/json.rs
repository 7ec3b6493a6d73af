//! The JSON form of answers: four spaces, `&`, `<`, `>` escaped, no trailing newline.
//!
//! Resource bodies have their keys in alphabetical order at every level ([`sorted`] or a type whose fields are
//! declared so); operation statuses have a fixed order of their own. Both go through [`to_body`].

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// Serialises an answer. Types handed in serialise without error (maps with string keys, no failing impls); should
/// one fail all the same, the body is `{}` rather than a panic.
pub fn to_body<T: Serialize>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(4096);
    let mut serializer = Serializer::with_formatter(&mut out, Body(PrettyFormatter::with_indent(b"    ")));
    match value.serialize(&mut serializer) {
        Ok(()) => out,
        Err(_) => b"{}".to_vec(),
    }
}

/// Puts the keys of every object in alphabetical order, whatever order the map type keeps.
pub fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map.into_iter().collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

struct Body<'a>(PrettyFormatter<'a>);

/// The bytes a body may not hold as they are, so that it can be embedded in HTML.
fn escape(byte: u8) -> Option<&'static [u8]> {
    match byte {
        b'&' => Some(b"\\u0026"),
        b'<' => Some(b"\\u003c"),
        b'>' => Some(b"\\u003e"),
        _ => None,
    }
}

impl Formatter for Body<'_> {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let bytes = fragment.as_bytes();
        let mut from = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if let Some(escaped) = escape(*byte) {
                writer.write_all(&bytes[from..at])?;
                writer.write_all(escaped)?;
                from = at + 1;
            }
        }
        writer.write_all(&bytes[from..])
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }
    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }
    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }
    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }
    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }
    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }
    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }
    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bodies_are_sorted_indented_and_escaped_as_the_live_service_does() {
        let value = json!({"b": {}, "a": [1, {"z": "x&y", "c": false}], "é": []});
        let body = String::from_utf8(to_body(&sorted(value))).unwrap();
        let expected = [
            "{",
            "    \"a\": [",
            "        1,",
            "        {",
            "            \"c\": false,",
            "            \"z\": \"x\\u0026y\"",
            "        }",
            "    ],",
            "    \"b\": {},",
            "    \"é\": []",
            "}",
        ]
        .join("\n");
        assert_eq!(body, expected);
    }
}
