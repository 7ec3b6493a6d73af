//! `metadata.managedFields`: who owns what.

use serde_json::{Map, Value, json};

use super::fieldset::Set;
use crate::meta;

/// How a manager writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Apply,
    Update,
}

/// What one manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub manager: String,
    pub operation: Operation,
    pub api_version: String,
    pub subresource: String,
    /// RFC 3339.
    pub time: Option<String>,
    pub fields: Set,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl Entry {
    /// Whether two entries are of one manager. Appliers are one in all versions.
    pub(super) fn is_same_manager(&self, other: &Self) -> bool {
        self.operation == other.operation
            && self.manager == other.manager
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    fn decode(index: usize, entry: &Value) -> Result<Self, String> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err("operation must be `Apply` or `Update`".to_owned()),
        };
        if text("apiVersion").is_empty() {
            return Err("apiVersion must not be empty".to_owned());
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
            other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {index}")),
        }
        let fields = Set::from_fields_v1(entry.get("fieldsV1").unwrap_or(&Value::Null))
            .map_err(|error| format!("error decoding set: {error}"))?;
        Ok(Self {
            manager: text("manager").to_owned(),
            operation,
            api_version: text("apiVersion").to_owned(),
            subresource: text("subresource").to_owned(),
            time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
            fields,
        })
    }

    fn encode(&self) -> Value {
        let mut out = Map::new();
        let mut text = |name: &str, value: &str| {
            if !value.is_empty() {
                out.insert(name.to_owned(), json!(value));
            }
        };
        text("manager", &self.manager);
        text("operation", self.operation.name());
        text("apiVersion", &self.api_version);
        text("time", self.time.as_deref().unwrap_or_default());
        text("subresource", &self.subresource);
        text("fieldsType", "FieldsV1");
        out.insert("fieldsV1".to_owned(), self.fields.to_fields_v1());
        Value::Object(out)
    }
}

/// Reads `metadata.managedFields` of an object. Of entries of one manager the last counts.
pub fn decode(object: &Value) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = Vec::new();
    let list = meta::get(object, &["metadata", "managedFields"]).and_then(Value::as_array);
    for (index, entry) in list.into_iter().flatten().enumerate() {
        let entry = Entry::decode(index, entry)?;
        match entries.iter_mut().find(|known| known.is_same_manager(&entry)) {
            Some(known) => *known = entry,
            None => entries.push(entry),
        }
    }
    Ok(entries)
}

/// Writes `metadata.managedFields` of an object, in upstream's order. None at all when there are no entries.
pub fn encode(mut entries: Vec<Entry>, object: &mut Value) {
    if entries.is_empty() {
        meta::remove(object, &["metadata", "managedFields"]);
        return;
    }
    entries.sort_by(|a, b| {
        (a.operation, &a.time, &a.manager, &a.api_version, &a.subresource).cmp(&(
            b.operation,
            &b.time,
            &b.manager,
            &b.api_version,
            &b.subresource,
        ))
    });
    let encoded = entries.iter().map(Entry::encode).collect();
    meta::set(object, &["metadata", "managedFields"], encoded);
}

/// Whether a request asks to forget all owners: `[]` or `[{}]`.
pub(super) fn is_reset(object: &Value) -> bool {
    match meta::get(object, &["metadata", "managedFields"]) {
        Some(Value::Array(entries)) => match entries.as_slice() {
            [] => true,
            [Value::Object(only)] => only.values().all(Value::is_null),
            _ => false,
        },
        _ => false,
    }
}

/// Managers by update are kept apart up to this many.
const MAX_UPDATERS: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// Puts the oldest updaters of each version together until there are few enough.
pub(super) fn cap(entries: &mut Vec<Entry>) {
    let updaters = entries.iter().filter(|entry| entry.operation == Operation::Update).count();
    if updaters <= MAX_UPDATERS {
        return;
    }
    let mut oldest: Vec<Entry> = Vec::with_capacity(updaters);
    let mut rest = Vec::with_capacity(entries.len());
    for entry in entries.drain(..) {
        if entry.operation == Operation::Update { oldest.push(entry) } else { rest.push(entry) }
    }
    oldest.sort_by(|a, b| {
        (&a.time, &a.manager, &a.api_version, &a.subresource).cmp(&(
            &b.time,
            &b.manager,
            &b.api_version,
            &b.subresource,
        ))
    });
    let mut count = oldest.len();
    let mut kept: Vec<Entry> = Vec::with_capacity(count);
    for entry in oldest {
        let bucket = kept.iter().position(|known| {
            known.api_version == entry.api_version
                && (known.manager == ANCIENT && known.subresource.is_empty())
        });
        // The first of a version makes the bucket, when a second one comes.
        let first = bucket.or_else(|| kept.iter().position(|known| known.api_version == entry.api_version));
        match first {
            Some(index) if count > MAX_UPDATERS => {
                let known = &mut kept[index];
                ANCIENT.clone_into(&mut known.manager);
                known.subresource.clear();
                known.fields = known.fields.union(&entry.fields);
                known.time = entry.time;
                count -= 1;
            }
            _ => kept.push(entry),
        }
    }
    rest.extend(kept);
    *entries = rest;
}
