//! An object as it is kept: its JSON as it goes over the wire, and what selecting and collecting need at hand.
//!
//! Every write goes to all watchers, mostly as a whole. So an object is rendered once, together with the line of a
//! watch around it: readers get a slice of that line, watchers all of it, without a copy.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::watch_cache::EventKind;

/// One version of an object.
#[derive(Debug)]
pub struct Stored {
    /// `namespace/name`, or `name` for cluster-scoped objects.
    pub key: Arc<str>,
    pub version: u64,
    rendered: Rendered,
    /// Where the digits of the resource version are in the JSON.
    hole: u32,
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// UIDs of the owners.
    pub owners: Box<[Box<str>]>,
}

/// The whole object, resource version included.
#[derive(Debug)]
enum Rendered {
    /// Inside of a line that tells watchers of it.
    Line { kind: EventKind, line: Bytes },
    /// Alone: it was read from the log, before any watch.
    Json(Bytes),
}

const LINE_END: &[u8] = b"}\n";

fn line_start(kind: EventKind) -> &'static [u8] {
    match kind {
        EventKind::Added => b"{\"type\":\"ADDED\",\"object\":",
        EventKind::Modified => b"{\"type\":\"MODIFIED\",\"object\":",
        EventKind::Deleted => b"{\"type\":\"DELETED\",\"object\":",
    }
}

/// The line of a watch about an object that comes in parts.
fn line(kind: EventKind, parts: &[&[u8]]) -> Bytes {
    let start = line_start(kind);
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut line = Vec::with_capacity(start.len() + length + LINE_END.len());
    line.extend_from_slice(start);
    for part in parts {
        line.extend_from_slice(part);
    }
    line.extend_from_slice(LINE_END);
    line.into()
}

impl Rendered {
    fn told(kind: EventKind, parts: &[&[u8]]) -> Self {
        Self::Line { kind, line: line(kind, parts) }
    }

    fn json(&self) -> &[u8] {
        match self {
            Self::Json(json) => json,
            Self::Line { kind, line } => {
                inside(*kind, line.len()).and_then(|place| line.get(place)).unwrap_or_default()
            }
        }
    }
}

/// Where the object is in a line.
fn inside(kind: EventKind, length: usize) -> Option<std::ops::Range<usize>> {
    Some(line_start(kind).len()..length.checked_sub(LINE_END.len())?)
}

/// The members that name an object's type.
const TYPE_META: [&str; 2] = ["kind", "apiVersion"];

/// An object that has no resource version yet.
#[derive(Debug, Clone)]
pub struct Draft {
    /// JSON with an empty string as the resource version.
    bytes: Vec<u8>,
    hole: usize,
    labels: Box<[(Box<str>, Box<str>)]>,
    owners: Box<[Box<str>]>,
}

impl Draft {
    /// Renders an object, leaving room for its resource version.
    pub fn of(object: &Value) -> Self {
        let mut bytes = Vec::with_capacity(512);
        let mut hole = 0;
        bytes.push(b'{');
        let mut has_metadata = false;
        if let Value::Object(members) = object {
            // The type comes first, as upstream renders it: lists leave it out.
            for name in TYPE_META {
                if let Some(value) = members.get(name) {
                    separate(&mut bytes);
                    put_name(&mut bytes, name);
                    put(&mut bytes, value);
                }
            }
            for (name, value) in members.iter().filter(|(name, _)| !TYPE_META.contains(&name.as_str())) {
                separate(&mut bytes);
                put_name(&mut bytes, name);
                if name == "metadata" {
                    has_metadata = true;
                    hole = put_metadata(&mut bytes, value);
                } else {
                    put(&mut bytes, value);
                }
            }
        }
        if !has_metadata {
            separate(&mut bytes);
            put_name(&mut bytes, "metadata");
            hole = put_metadata(&mut bytes, &Value::Null);
        }
        bytes.push(b'}');
        let labels = aro_kube_apimachinery::meta::labels(object).into_iter().flatten();
        let labels =
            labels.map(|(name, value)| (name.as_str().into(), value.as_str().unwrap_or_default().into()));
        let owners = aro_kube_apimachinery::meta::owner_references(object).iter();
        let owners = owners.filter_map(|owner| owner.get("uid")?.as_str()).map(Into::into);
        Self { bytes, hole, labels: labels.collect(), owners: owners.collect() }
    }

    /// The object as it is written: added or modified.
    pub(super) fn finish(self, key: Arc<str>, version: u64, kind: EventKind) -> Stored {
        let digits = version.to_string();
        let (before, after) = self.bytes.split_at(self.hole);
        Stored {
            key,
            version,
            rendered: Rendered::told(kind, &[before, digits.as_bytes(), after]),
            hole: self.hole as u32,
            labels: self.labels,
            owners: self.owners,
        }
    }
}

/// What follows the type, if the object begins with it. Kinds and versions hold nothing that is escaped.
fn after_type(json: &[u8]) -> Option<&[u8]> {
    let mut rest = json;
    for start in [b"{\"kind\":\"".as_slice(), b"\"apiVersion\":\""] {
        rest = rest.strip_prefix(start)?;
        let end = rest.iter().position(|byte| *byte == b'"')?;
        if rest.get(..end)?.contains(&b'\\') || rest.get(end + 1) != Some(&b',') {
            return None;
        }
        rest = rest.get(end + 2..)?;
    }
    Some(rest)
}

fn separate(bytes: &mut Vec<u8>) {
    if !bytes.ends_with(b"{") {
        bytes.push(b',');
    }
}

fn put(bytes: &mut Vec<u8>, value: &Value) {
    // A JSON value always renders, and a vector takes everything.
    let _ = serde_json::to_writer(bytes, value);
}

fn put_name(bytes: &mut Vec<u8>, name: &str) {
    let _ = serde_json::to_writer(&mut *bytes, name);
    bytes.push(b':');
}

/// Renders metadata and tells where its resource version belongs.
fn put_metadata(bytes: &mut Vec<u8>, metadata: &Value) -> usize {
    let mut hole = None;
    let mut put_version = |bytes: &mut Vec<u8>| {
        separate(bytes);
        bytes.extend_from_slice(b"\"resourceVersion\":\"");
        hole = Some(bytes.len());
        bytes.push(b'"');
    };
    bytes.push(b'{');
    let mut done = false;
    for (name, value) in metadata.as_object().into_iter().flatten() {
        if name == "resourceVersion" {
            continue;
        }
        if !done && name.as_str() > "resourceVersion" {
            put_version(bytes);
            done = true;
        }
        separate(bytes);
        put_name(bytes, name);
        put(bytes, value);
    }
    if !done {
        put_version(bytes);
    }
    bytes.push(b'}');
    hole.unwrap_or_default()
}

impl Stored {
    /// The whole object, resource version included.
    pub fn json(&self) -> &[u8] {
        self.rendered.json()
    }

    /// The same, to be sent.
    pub fn json_bytes(&self) -> Bytes {
        match &self.rendered {
            Rendered::Json(json) => json.clone(),
            Rendered::Line { kind, line } => {
                inside(*kind, line.len()).map(|place| line.slice(place)).unwrap_or_default()
            }
        }
    }

    /// Appends the object without its kind and version: an item of a list that names them.
    pub fn put_untyped(&self, out: &mut Vec<u8>) {
        let json = self.json();
        if let Some(rest) = after_type(json) {
            out.push(b'{');
            out.extend_from_slice(rest);
            return;
        }
        // Written by an earlier version, with its members in another order.
        let mut tree = self.value();
        if let Some(members) = tree.as_object_mut() {
            members.retain(|name, _| !TYPE_META.contains(&name.as_str()));
        }
        put(out, &tree);
    }

    /// The object as a tree.
    pub fn value(&self) -> Value {
        // It was rendered from a tree.
        serde_json::from_slice(self.json()).unwrap_or_default()
    }

    /// The line of a watch that tells of a change of this kind.
    pub fn line(&self, told: EventKind) -> Bytes {
        match &self.rendered {
            Rendered::Line { kind, line } if *kind == told => line.clone(),
            _ => line(told, &[self.json()]),
        }
    }

    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| &**known == name).map(|(_, value)| &**value)
    }

    /// `""` for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    pub fn name(&self) -> &str {
        self.key.split_once('/').map_or(&*self.key, |(_, name)| name)
    }

    /// The same object at the version of its deletion: what watchers of that see.
    pub(super) fn deleted_at(&self, version: u64) -> Self {
        let old = self.version.to_string().len();
        let json = self.json();
        let (before, after) = json.split_at((self.hole as usize).min(json.len()));
        let digits = version.to_string();
        let after = after.get(old..).unwrap_or_default();
        Self {
            key: self.key.clone(),
            version,
            rendered: Rendered::told(EventKind::Deleted, &[before, digits.as_bytes(), after]),
            hole: self.hole,
            labels: self.labels.clone(),
            owners: self.owners.clone(),
        }
    }

    /// What a start finds in the log.
    pub(super) fn recover(
        key: &str,
        version: u64,
        hole: u32,
        json: Bytes,
    ) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Head {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        struct Metadata {
            #[serde(default)]
            labels: Option<std::collections::BTreeMap<Box<str>, Box<str>>>,
            #[serde(default, rename = "ownerReferences")]
            owners: Option<Vec<Owner>>,
        }
        #[derive(Deserialize)]
        struct Owner {
            #[serde(default)]
            uid: Box<str>,
        }
        let head: Head = serde_json::from_slice(&json)?;
        Ok(Self {
            key: key.into(),
            version,
            hole,
            labels: head.metadata.labels.unwrap_or_default().into_iter().collect(),
            owners: head.metadata.owners.unwrap_or_default().into_iter().map(|owner| owner.uid).collect(),
            rendered: Rendered::Json(json),
        })
    }

    pub(super) fn hole(&self) -> u32 {
        self.hole
    }

    /// What it takes on disk, roughly.
    pub(super) fn weight(&self) -> u64 {
        self.json().len() as u64 + self.key.len() as u64 + 48
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn untyped(object: &Value) -> (String, Value) {
        let stored = Draft::of(object).finish("a".into(), 7, EventKind::Added);
        let mut out = Vec::new();
        stored.put_untyped(&mut out);
        (String::from_utf8(stored.json().to_vec()).unwrap(), serde_json::from_slice(&out).unwrap())
    }

    #[test]
    fn the_type_comes_first_and_is_left_out_of_list_items() {
        let object = json!({"apiVersion": "v1", "data": {"kind": "x"}, "kind": "ConfigMap", "metadata": {"name": "a"}});
        let (json, item) = untyped(&object);
        assert!(json.starts_with(r#"{"kind":"ConfigMap","apiVersion":"v1","#), "{json}");
        let expected = json!({"data": {"kind": "x"}, "metadata": {"name": "a", "resourceVersion": "7"}});
        assert_eq!(item, expected);
    }

    #[test]
    fn objects_in_another_order_lose_their_type_too() {
        let json = Bytes::from_static(
            br#"{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"resourceVersion":"7"}}"#,
        );
        let stored = Stored::recover("a", 7, 0, json).unwrap();
        let mut out = Vec::new();
        stored.put_untyped(&mut out);
        let item: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(item, json!({"data": {"a": "b"}, "metadata": {"resourceVersion": "7"}}));
        assert!(after_type(br#"{"kind":"a\"b","apiVersion":"v1","x":1}"#).is_none());
        assert!(after_type(br#"{"kind":"a","apiVersion":"v1"}"#).is_none());
    }
}
