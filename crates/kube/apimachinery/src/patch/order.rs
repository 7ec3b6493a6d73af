//! In which order the items of a merged list stand: those the patch speaks of as it says, the others as they stood,
//! and between the two kinds the old order decides where it can.

use std::collections::HashMap;

use serde_json::Value;

use super::{PatchError, show};

/// Tells items of a list apart: by a member, or by the items themselves.
#[derive(Clone, Copy)]
pub(super) struct Identity<'a>(pub Option<&'a str>);

impl Identity<'_> {
    /// What identifies an item. Objects must have the key.
    pub(super) fn of<'v>(&self, item: &'v Value) -> Result<&'v Value, PatchError> {
        match self.0 {
            None => Ok(item),
            Some(key) => match item {
                Value::Object(members) => members.get(key).ok_or_else(|| no_merge_key(item, key)),
                other => Err(bad_type("map[string]interface {}", other)),
            },
        }
    }

    fn places(&self, order: &[Value]) -> Result<HashMap<String, usize>, PatchError> {
        let mut places = HashMap::with_capacity(order.len());
        for (index, item) in order.iter().enumerate() {
            // The first one counts.
            places.entry(self.of(item)?.to_string()).or_insert(index);
        }
        Ok(places)
    }
}

pub(super) fn no_merge_key(item: &Value, key: &str) -> PatchError {
    PatchError::internal(format!("map: {} does not contain declared merge key: {key}", show(item)))
}

pub(super) fn bad_type(expected: &str, found: &Value) -> PatchError {
    PatchError::internal(format!("expected a {expected}, but received a {}", go_type(found)))
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Orders merged items. `wanted` is what the patch says, `stood` is how the list was.
pub(super) fn arrange(
    merged: Vec<Value>,
    wanted: &[Value],
    stood: &[Value],
    identity: Identity<'_>,
) -> Result<Vec<Value>, PatchError> {
    let (wanted, stood) = (identity.places(wanted)?, identity.places(stood)?);
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for item in merged {
        let name = identity.of(&item)?.to_string();
        let old = stood.get(&name).copied();
        match wanted.get(&name) {
            Some(place) => ours.push((*place, old, item)),
            None => theirs.push((old.unwrap_or(usize::MAX), old, item)),
        }
    }
    ours.sort_by_key(|(place, ..)| *place);
    theirs.sort_by_key(|(place, ..)| *place);

    let mut all = Vec::with_capacity(ours.len() + theirs.len());
    let mut ours = ours.into_iter().peekable();
    for (_, old, item) in theirs {
        // Items of the patch go first, unless both stood in the list and this one stood before.
        while let Some((_, our_old, _)) = ours.peek() {
            let stood_before = matches!((old, our_old), (Some(old), Some(our)) if old < *our);
            if stood_before {
                break;
            }
            all.extend(ours.next().map(|(_, _, item)| item));
        }
        all.push(item);
    }
    all.extend(ours.map(|(_, _, item)| item));
    Ok(all)
}
