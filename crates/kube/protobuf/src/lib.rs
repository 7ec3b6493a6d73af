//! Kubernetes' protobuf form of objects: what Go clients send for built-in types.
//!
//! What it is: a decoder driven by a table of field numbers (`gen/messages.txt`, written by `cargo xtask gen-kube-wire`),
//! from bytes to the same JSON the client could have sent. Unset and zero look alike on this wire for many members, so
//! zeros are kept here and dropped where a type's defaults are filled in.
//!
//! What it is not: an encoder. Answers are JSON, which every client accepts beside protobuf.
//!
//! Invariants: no input panics; depth and size are bounded by the input's own length.

mod table;
mod value;

use serde_json::{Value, json};

pub use value::WireError;

/// What a body must begin with.
const MAGIC: &[u8] = b"k8s\0";

/// An object out of its envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    pub api_version: String,
    pub kind: String,
    pub object: Value,
}

/// Reads a body of `application/vnd.kubernetes.protobuf`. `find` names the message of an `apiVersion` and `kind`
/// (`io.k8s.api.core.v1.Pod`).
pub fn decode(bytes: &[u8], find: impl Fn(&str, &str) -> Option<String>) -> Result<Decoded, WireError> {
    let bytes = bytes.strip_prefix(MAGIC).ok_or(WireError::NoEnvelope)?;
    let envelope = value::message(bytes, "io.k8s.apimachinery.pkg.runtime.Unknown", 0)?;
    let text = |name: &str| {
        envelope
            .get("typeMeta")
            .and_then(|meta| meta.get(name))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let raw = value::raw_field(bytes, 2)?;
    let name = find(&api_version, &kind).ok_or_else(|| WireError::UnknownType(kind.clone()))?;
    let mut object = value::message(raw, &name, 0)?;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    Ok(Decoded { api_version, kind, object })
}

#[cfg(test)]
mod tests;
