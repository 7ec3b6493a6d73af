//! Strategic merge patch: a merge patch that knows by the type how to merge lists, and obeys directives.
//!
//! Members that the type does not know are merged like plain maps and kept.

use serde_json::{Map, Value};

use super::order::{Identity, arrange, bad_type, no_merge_key};
use super::{PatchError, show};
use crate::schema::Typed;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;

/// Applies a strategic merge patch by the merge keys and strategies of the type.
pub fn strategic_merge(object: &Value, patch: &Value, typed: Typed<'_>) -> Result<Value, PatchError> {
    let original = match object {
        Value::Object(members) => members.clone(),
        _ => Object::new(),
    };
    match patch {
        Value::Object(patch) => merge_map(original, patch.clone(), Some(typed)).map(Value::Object),
        other => Err(PatchError::bad_request(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            match other {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Number(_) => "number",
                Value::Bool(_) => "bool",
                _ => "null",
            }
        ))),
    }
}

/// How a member is merged.
struct Strategy<'a> {
    name: Option<&'a str>,
    merge_key: Option<&'a str>,
}

fn strategy(member: Option<Typed<'_>>) -> Strategy<'_> {
    let Some(member) = member else { return Strategy { name: None, merge_key: None } };
    let hint = member.patch();
    let name = hint.strategies.iter().map(String::as_str).find(|name| *name != "retainKeys");
    Strategy { name, merge_key: hint.merge_key.as_deref() }
}

fn merge_map(
    mut original: Object,
    mut patch: Object,
    typed: Option<Typed<'_>>,
) -> Result<Object, PatchError> {
    match patch.get(DIRECTIVE).map(|directive| directive.as_str()) {
        None => {}
        Some(Some("replace")) => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some(Some("delete")) => return Ok(Object::new()),
        Some(_) => {
            return Err(unknown_directive(&patch));
        }
    }
    retain_keys(&mut original, &mut patch)?;
    element_orders(&mut original, &mut patch, typed)?;
    for (name, change) in patch {
        let (name, deletes) = match name.strip_prefix(DELETE_PRIMITIVES) {
            Some(rest) => {
                (directive_target(rest, "invalid patch format of primitive list")?.to_owned(), true)
            }
            None => (name, false),
        };
        if change.is_null() {
            original.remove(&name);
            continue;
        }
        let member = typed.and_then(|typed| typed.member(&name));
        let merged = match (original.remove(&name), change) {
            (Some(Value::Object(old)), Value::Object(change)) => {
                Some(Value::Object(merge_member(old, change, member)?))
            }
            (Some(Value::Array(old)), Value::Array(change)) => {
                Some(Value::Array(merge_list(old, change, member, deletes)?))
            }
            (old, _) if deletes => old,
            (Some(_), change @ (Value::Bool(_) | Value::Number(_) | Value::String(_))) => Some(change),
            (_, change) => without_directives(without_nulls(change)),
        };
        if let Some(merged) = merged {
            original.insert(name, merged);
        }
    }
    Ok(original)
}

fn merge_member(old: Object, change: Object, member: Option<Typed<'_>>) -> Result<Object, PatchError> {
    match strategy(member).name {
        Some("replace") => Ok(change),
        _ => merge_map(old, change, member),
    }
}

fn unknown_directive(patch: &Object) -> PatchError {
    let directive = patch.get(DIRECTIVE).map(show).unwrap_or_default();
    let map = show(&Value::Object(patch.clone()));
    PatchError::internal(format!("unknown patch type: {directive} in map: {map}"))
}

/// `/name` after the directive.
fn directive_target<'a>(rest: &'a str, problem: &str) -> Result<&'a str, PatchError> {
    rest.strip_prefix('/').ok_or_else(|| PatchError::bad_request(problem))
}

/// Members that are not listed go, and the patch may not speak of them.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::bad_request("invalid patch format of retainKeys");
    let keys = keys.as_array().ok_or_else(malformed)?;
    let listed = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    for (name, change) in patch.iter() {
        let directive = name.starts_with(DELETE_PRIMITIVES) || name.starts_with(ELEMENT_ORDER);
        if !change.is_null() && !directive && !listed(name) {
            return Err(malformed());
        }
    }
    original.retain(|name, _| listed(name));
    Ok(())
}

/// Merges the lists whose order the patch gives, and takes them out of the patch.
fn element_orders(
    original: &mut Object,
    patch: &mut Object,
    typed: Option<Typed<'_>>,
) -> Result<(), PatchError> {
    if !patch.keys().any(|name| name.starts_with(ELEMENT_ORDER)) {
        return Ok(());
    }
    let directives: Vec<String> =
        patch.keys().filter(|name| name.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(bad_type("[]interface {}", &other.unwrap_or_default())),
        };
        let rest = directive.strip_prefix(ELEMENT_ORDER).unwrap_or_default();
        let name = directive_target(rest, "invalid patch format of setElementOrder list")?;
        let list = |value: Option<Value>| match value {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(bad_type("[]interface {}", &other)),
        };
        let old = list(original.get(name).cloned())?;
        let change = list(patch.remove(name))?;
        let member = typed.and_then(|typed| typed.member(name));
        let identity = Identity(strategy(member).merge_key);
        if let Some(change) = &change {
            check_order(change, &order, identity)?;
        }
        let stood = old.clone().unwrap_or_default();
        let merged = match (old, change) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(change)) => match without_directives(Value::Array(change)) {
                Some(Value::Array(items)) => items,
                _ => continue,
            },
            (Some(old), Some(change)) => merge_list(old, change, member, false)?,
        };
        original.insert(name.to_owned(), Value::Array(arrange(merged, &order, &stood, identity)?));
    }
    Ok(())
}

/// Items of the patch must stand in the order given, all of them.
fn check_order(patch: &[Value], order: &[Value], identity: Identity<'_>) -> Result<(), PatchError> {
    if order.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let mut wanted = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let name = identity.of(item)?;
        let mut found = false;
        for candidate in wanted.by_ref() {
            if identity.of(candidate)? == name {
                found = true;
                break;
            }
        }
        if !found {
            let (patch, order) = (show(&Value::Array(patch.to_vec())), show(&Value::Array(order.to_vec())));
            return Err(PatchError::internal(format!(
                "The order in patch list:\n{patch}\n doesn't match {ELEMENT_ORDER} list:\n{order}\n"
            )));
        }
    }
    Ok(())
}

fn merge_list(
    old: Vec<Value>,
    change: Vec<Value>,
    member: Option<Typed<'_>>,
    deletes: bool,
) -> Result<Vec<Value>, PatchError> {
    let strategy = strategy(member);
    if strategy.name != Some("merge") && !deletes {
        return Ok(change);
    }
    if old.is_empty() && change.is_empty() {
        return Ok(old);
    }
    if check_alike(&old, &change)? {
        let Some(key) = strategy.merge_key else {
            let name =
                member.and_then(|member| member.items()).and_then(|items| items.site.reference.clone());
            let name =
                name.as_deref().and_then(|name| name.rsplit('.').next()).unwrap_or_default().to_owned();
            return Err(PatchError::internal(format!("cannot merge lists without merge key for {name}")));
        };
        return merge_objects(old, change, key, member.and_then(|member| member.items()));
    }
    if deletes {
        return Ok(old.into_iter().filter(|item| !change.contains(item)).collect());
    }
    let mut merged: Vec<Value> = Vec::with_capacity(old.len() + change.len());
    for item in old.iter().chain(&change) {
        if !merged.contains(item) {
            merged.push(item.clone());
        }
    }
    arrange(merged, &change, &old, Identity(strategy.merge_key))
}

/// Whether the items are objects. All must be of one type, and no lists.
fn check_alike(old: &[Value], change: &[Value]) -> Result<bool, PatchError> {
    let mut items = old.iter().chain(change);
    let Some(first) = items.next() else { return Ok(false) };
    if first.is_array() {
        return Err(PatchError::unprocessable());
    }
    let kind = std::mem::discriminant(first);
    if items.any(|item| std::mem::discriminant(item) != kind) {
        let slices = Value::Array(vec![Value::Array(old.to_vec()), Value::Array(change.to_vec())]);
        return Err(PatchError::internal(format!("list element types are not identical: {}", show(&slices))));
    }
    Ok(first.is_object())
}

fn merge_objects(
    mut old: Vec<Value>,
    change: Vec<Value>,
    key: &str,
    items: Option<Typed<'_>>,
) -> Result<Vec<Value>, PatchError> {
    let mut changes = Vec::with_capacity(change.len());
    let mut replaces = false;
    for item in change {
        let Value::Object(members) = &item else { continue };
        match members.get(DIRECTIVE).map(Value::as_str) {
            None => changes.push(item),
            Some(Some("delete")) => {
                let name = members.get(key).ok_or_else(|| no_merge_key(&item, key))?;
                old.retain(|item| item.get(key) != Some(name));
            }
            Some(Some("replace")) => replaces = true,
            Some(Some("merge")) => {
                return Err(PatchError::internal("merging lists cannot yet be specified in the patch"));
            }
            Some(_) => return Err(unknown_directive(members)),
        }
    }
    if replaces {
        (old, changes) = (changes, Vec::new());
    }
    let stood = old.clone();
    let wanted = changes.clone();
    for change in changes {
        let name = change.get(key).ok_or_else(|| no_merge_key(&change, key))?;
        match old.iter_mut().find(|item| item.get(key) == Some(name)) {
            Some(slot) => {
                if let (Value::Object(members), Value::Object(change)) = (slot.take(), change) {
                    *slot = Value::Object(merge_map(members, change, items)?);
                }
            }
            None => old.push(change),
        }
    }
    arrange(old, &wanted, &stood, Identity(Some(key)))
}

/// What replaces or adds a whole member says nothing about what to remove.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, member)| !member.is_null());
            Value::Object(kept.map(|(name, member)| (name, without_nulls(member))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// Takes out objects that are directives, at any depth. `None`: the value itself is one.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(DIRECTIVE) => None,
        Value::Object(members) => {
            let kept =
                members.into_iter().filter_map(|(name, member)| Some((name, without_directives(member)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}
