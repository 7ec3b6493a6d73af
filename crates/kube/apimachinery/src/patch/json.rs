//! RFC 6902, with the liberties of upstream's library: `replace` makes members that were absent, `copy` and `test` read
//! absent members as null, negative indices count from the end.

use aro_base::nesting;
use serde_json::Value;

use super::{PatchError, PatchErrorClass};
use crate::decode::json_type;

const MAX_OPERATIONS: usize = 10_000;

/// What all copies of a patch may add, in bytes of JSON: each copy can double the document.
const MAX_COPIED: usize = 3 << 20;

/// What does not apply. The client is not told more, so there is nothing in it.
struct Inapplicable;

/// Applies a list of operations.
pub fn json_patch(object: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => {
            let found = json_type(other);
            return Err(PatchError::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp"
            )));
        }
    };
    if let Some(other) = operations.iter().find(|operation| !operation.is_object()) {
        let found = json_type(other);
        return Err(PatchError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {found} into Go value of type handlers.jsonPatchOp"
        )));
    }
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError {
            class: PatchErrorClass::TooLarge,
            message: format!(
                "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
                operations.len()
            ),
        });
    }
    let mut patched = object.clone();
    let mut copied = 0;
    for operation in operations {
        copied += copied_size(&patched, operation);
        if copied > MAX_COPIED {
            return Err(PatchError {
                class: PatchErrorClass::TooLarge,
                message: format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {MAX_COPIED}"
                ),
            });
        }
        apply(&mut patched, operation).map_err(|Inapplicable| PatchError::unprocessable())?;
    }
    Ok(patched)
}

/// The size of what an operation copies.
fn copied_size(document: &Value, operation: &Value) -> usize {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    if text("op") != Some("copy") {
        return 0;
    }
    let copied = text("from").and_then(|from| read(document, from).ok().flatten());
    copied.map_or(0, |value| value.to_string().len())
}

fn apply(document: &mut Value, operation: &Value) -> Result<(), Inapplicable> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str).ok_or(Inapplicable);
    let value = || operation.get("value").cloned().unwrap_or_default();
    match text("op")? {
        "add" => add(document, text("path")?, value()),
        "remove" => remove(document, text("path")?).map(drop),
        "replace" => replace(document, text("path")?, value()),
        "move" => {
            let value = remove(document, text("from")?)?;
            add(document, text("path")?, value)
        }
        "copy" => {
            let value = read(document, text("from")?)?.cloned().unwrap_or_default();
            add(document, text("path")?, value)
        }
        "test" => {
            let path = text("path")?;
            let found = if path.is_empty() { Some(&*document) } else { read(document, path)? };
            let same = found.unwrap_or(&Value::Null) == operation.get("value").unwrap_or(&Value::Null);
            if same { Ok(()) } else { Err(Inapplicable) }
        }
        _ => Err(Inapplicable),
    }
}

/// The steps to the parent, and the last step. What stands before the first slash is not looked at.
fn steps(path: &str) -> Result<(Vec<String>, String), Inapplicable> {
    let decode = |step: &str| step.replace("~1", "/").replace("~0", "~");
    let mut steps: Vec<String> = path.split('/').skip(1).map(decode).collect();
    let last = steps.pop().ok_or(Inapplicable)?;
    Ok((steps, last))
}

fn parent<'a>(document: &'a mut Value, steps: &[String]) -> Result<&'a mut Value, Inapplicable> {
    let parent = steps.iter().try_fold(document, |at, step| match at {
        Value::Object(members) => members.get_mut(step).ok_or(Inapplicable),
        Value::Array(items) => {
            let index = index(step, items.len())?;
            items.get_mut(index).ok_or(Inapplicable)
        }
        _ => Err(Inapplicable),
    })?;
    if parent.is_object() || parent.is_array() { Ok(parent) } else { Err(Inapplicable) }
}

/// An index into so many places; negative ones count from the end.
fn index(step: &str, length: usize) -> Result<usize, Inapplicable> {
    let number: i64 = step.parse().map_err(|_| Inapplicable)?;
    let number = if number < 0 { number + length as i64 } else { number };
    usize::try_from(number).ok().filter(|index| *index < length).ok_or(Inapplicable)
}

fn read<'a>(document: &'a Value, path: &str) -> Result<Option<&'a Value>, Inapplicable> {
    let (steps, last) = steps(path)?;
    let parent = steps.iter().try_fold(document, |at, step| match at {
        Value::Object(members) => members.get(step).ok_or(Inapplicable),
        Value::Array(items) => items.get(index(step, items.len())?).ok_or(Inapplicable),
        _ => Err(Inapplicable),
    })?;
    match parent {
        Value::Object(members) => Ok(members.get(&last)),
        Value::Array(items) => Ok(items.get(index(&last, items.len())?)),
        _ => Err(Inapplicable),
    }
}

/// Operations on the results of operations could nest a document ever deeper.
fn check_depth(steps: &[String], value: &Value) -> Result<(), Inapplicable> {
    let levels = nesting::MAX_DEPTH.checked_sub(steps.len() + 1).ok_or(Inapplicable)?;
    if nesting::is_deeper_than(value, levels) { Err(Inapplicable) } else { Ok(()) }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), Inapplicable> {
    let (steps, last) = steps(path)?;
    check_depth(&steps, &value)?;
    match parent(document, &steps)? {
        Value::Object(members) => {
            members.insert(last, value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let index = index(&last, items.len() + 1)?;
            items.insert(index, value);
        }
        _ => return Err(Inapplicable),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, Inapplicable> {
    let (steps, last) = steps(path)?;
    match parent(document, &steps)? {
        Value::Object(members) => members.remove(&last).ok_or(Inapplicable),
        Value::Array(items) => {
            let index = index(&last, items.len())?;
            Ok(items.remove(index))
        }
        _ => Err(Inapplicable),
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), Inapplicable> {
    if path.is_empty() {
        if !(value.is_object() || value.is_array()) {
            return Err(Inapplicable);
        }
        *document = value;
        return Ok(());
    }
    let (steps, last) = steps(path)?;
    check_depth(&steps, &value)?;
    match parent(document, &steps)? {
        Value::Object(members) => {
            members.insert(last, value);
        }
        Value::Array(items) => {
            let index = index(&last, items.len())?;
            items[index] = value;
        }
        _ => return Err(Inapplicable),
    }
    Ok(())
}
