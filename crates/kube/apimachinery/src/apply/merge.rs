//! Merging what an applier says into an object, and taking fields out of one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::Element;
use super::fieldset::{Node, Set};
use super::shape::{Relation, Shape, Type, item_element};
use crate::schema::Typed;

/// Puts a configuration over a live object: leaves of the configuration win, items of lists are matched by what tells
/// them apart. Live items keep their order; new ones stand where the configuration has them among its neighbours.
/// Fails on items of keyed lists without their keys.
pub fn merge(live: &Value, config: &Value, typed: Typed<'_>) -> Result<Value, String> {
    let merged = merge_node(Some(live), Some(config), Type::Known(typed))?;
    Ok(merged.unwrap_or_else(|| Value::Object(Map::new())))
}

/// `None`: nothing is left.
fn merge_node(live: Option<&Value>, config: Option<&Value>, kind: Type<'_>) -> Result<Option<Value>, String> {
    let Some(decisive) = config.or(live) else { return Ok(None) };
    // Null takes the shape of what it replaces.
    let shape = match (decisive, live) {
        (Value::Null, Some(live)) => kind.shape(live),
        _ => kind.shape(decisive),
    };
    match shape {
        Shape::Map { whole: false } => {
            let empty = Map::new();
            let live_members = live.and_then(Value::as_object).unwrap_or(&empty);
            let config_members = config.and_then(Value::as_object).unwrap_or(&empty);
            if !live_members.is_empty() || !config_members.is_empty() {
                return merge_members(live_members, config_members, kind);
            }
        }
        Shape::List(relation) if relation != Relation::Whole => {
            let items = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
            let (live_items, config_items) = (items(live), items(config));
            if !live_items.is_empty() || !config_items.is_empty() {
                return merge_items(&live_items, &config_items, kind, relation);
            }
        }
        _ => {}
    }
    Ok(Some(decisive.clone()))
}

fn merge_members(
    live: &Map<String, Value>,
    config: &Map<String, Value>,
    kind: Type<'_>,
) -> Result<Option<Value>, String> {
    let mut out = Map::new();
    for (name, value) in live {
        // What the configuration does not speak of stays as it is.
        let merged = match config.get(name) {
            None => Some(value.clone()),
            change => merge_node(Some(value), change, kind.member(name).0)?,
        };
        out.extend(merged.map(|merged| (name.clone(), merged)));
    }
    for (name, value) in config.iter().filter(|(name, _)| !live.contains_key(*name)) {
        let merged = merge_node(None, Some(value), kind.member(name).0)?;
        out.extend(merged.map(|merged| (name.clone(), merged)));
    }
    Ok((!out.is_empty()).then_some(Value::Object(out)))
}

/// Where the items of a list are, by what tells them apart. `None`: there more than once.
struct Index<'v> {
    elements: Vec<Element>,
    items: BTreeMap<Element, Option<&'v Value>>,
}

impl<'v> Index<'v> {
    fn of(list: &'v [Value], kind: Type<'_>, relation: Relation<'_>) -> Result<Self, String> {
        let mut index = Self { elements: Vec::with_capacity(list.len()), items: BTreeMap::new() };
        for (place, item) in list.iter().enumerate() {
            let element =
                item_element(kind, relation, item).map_err(|error| format!("element {place}: {error}"))?;
            index.items.entry(element.clone()).and_modify(|item| *item = None).or_insert(Some(item));
            index.elements.push(element);
        }
        Ok(index)
    }
}

/// Walks both lists at once. Items of both stand in the order of the configuration; live ones stay before the shared
/// item they stood before; new ones go before the shared item they are followed by.
fn merge_items(
    live: &[Value],
    config: &[Value],
    kind: Type<'_>,
    relation: Relation<'_>,
) -> Result<Option<Value>, String> {
    let ours = Index::of(config, kind, relation)?;
    let theirs = Index::of(live, kind, relation)?;
    let below = kind.items();
    let mut shared = ours.elements.iter().filter(|element| theirs.items.contains_key(element)).peekable();
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.len().max(config.len()));
    let both = |element: &Element| {
        let live = theirs.items.get(element).copied().flatten();
        let config = ours.items.get(element).copied().flatten();
        merge_node(live, config, below)
    };
    let (mut l, mut r) = (0, 0);
    while l < live.len() || r < config.len() {
        if let (Some(left), Some(right)) = (theirs.elements.get(l), ours.elements.get(r)) {
            if left == right {
                done.insert(left);
                out.extend(both(left)?);
                (l, r) = (l + 1, r + 1);
                shared.next();
                continue;
            }
            if ours.items.contains_key(left) && shared.peek().is_some_and(|next| *next != left) {
                // It comes when the configuration has it.
                l += 1;
                continue;
            }
        }
        if let Some(left) = theirs.elements.get(l) {
            if !ours.items.contains_key(left) {
                out.extend(merge_node(live.get(l), None, below)?);
                l += 1;
                continue;
            }
            if done.contains(left) {
                l += 1;
            }
        }
        if let Some(right) = ours.elements.get(r) {
            done.insert(right);
            out.extend(both(right)?);
            r += 1;
            if shared.peek().is_some_and(|next| *next == right) {
                shared.next();
            }
        }
    }
    Ok((!out.is_empty()).then_some(Value::Array(out)))
}

/// Takes members of the set out of an object, with all below them. Maps and lists of the object that lose all they have
/// are null then.
pub fn remove_items(value: &Value, fields: &Set, typed: Typed<'_>) -> Value {
    if fields.is_empty() {
        return value.clone();
    }
    remove(value, fields, Type::Known(typed)).unwrap_or_else(|| Value::Object(Map::new()))
}

/// `None`: nothing is left.
fn remove(value: &Value, fields: &Set, kind: Type<'_>) -> Option<Value> {
    match (kind.shape(value), value) {
        (Shape::Scalar, value) => Some(value.clone()),
        (Shape::Map { whole: false }, Value::Object(members)) => {
            let mut out = Map::new();
            for (name, member) in members {
                let kept = match fields.get(&Element::Field(name.clone())) {
                    Some(Node { member: true, .. }) => None,
                    // What lost all it had is still there, as null.
                    Some(node) => {
                        Some(remove(member, &node.children, kind.member(name).0).unwrap_or_default())
                    }
                    None => Some(member.clone()),
                };
                out.extend(kept.map(|kept| (name.clone(), kept)));
            }
            (!out.is_empty()).then_some(Value::Object(out))
        }
        (Shape::List(relation), Value::Array(items)) if relation != Relation::Whole => {
            let kept = items.iter().filter_map(|item| {
                let node = item_element(kind, relation, item).ok();
                match node.and_then(|element| fields.get(&element)) {
                    Some(Node { member: true, .. }) => None,
                    Some(node) => remove(item, &node.children, kind.items()),
                    None => Some(item.clone()),
                }
            });
            let kept: Vec<Value> = kept.collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        // What is owned as a whole goes as a whole.
        _ => None,
    }
}

/// Only the members of the set, and what tells the items apart that they are in.
pub fn extract(value: &Value, fields: &Set, typed: Typed<'_>) -> Value {
    pick(value, fields, Type::Known(typed))
}

fn pick(value: &Value, fields: &Set, kind: Type<'_>) -> Value {
    match (kind.shape(value), value) {
        (Shape::Map { whole: false }, Value::Object(members)) => {
            let kept = members.iter().filter_map(|(name, member)| {
                let node = fields.get(&Element::Field(name.clone()))?;
                let below = kind.member(name).0;
                let whole = node.children.is_empty();
                Some((name.clone(), if whole { member.clone() } else { pick(member, &node.children, below) }))
            });
            Value::Object(kept.collect())
        }
        (Shape::List(relation), Value::Array(items)) if relation != Relation::Whole => {
            let kept = items.iter().filter_map(|item| {
                let node = fields.get(&item_element(kind, relation, item).ok()?)?;
                let whole = node.children.is_empty();
                Some(if whole { item.clone() } else { pick(item, &node.children, kind.items()) })
            });
            Value::Array(kept.collect())
        }
        _ => value.clone(),
    }
}

/// The set with every declared member that has members below it: what pruning goes by.
pub(super) fn with_named_fields(set: &Set, kind: Type<'_>) -> Set {
    let mut out = Set::default();
    for (element, node) in set.nodes() {
        let (below, declared) = match element {
            Element::Field(name) => kind.member(name),
            Element::Key(_) => (kind.items(), false),
            _ => (Type::Deduced, false),
        };
        let children = with_named_fields(&node.children, below);
        let member = node.member || (declared && !children.is_empty());
        out.put(element.clone(), Node { member, children });
    }
    out
}

/// Sets written when the type was owned in finer parts: they now own it as a whole.
pub(super) fn follow_schema(set: &mut Set, kind: Type<'_>) {
    for (element, node) in set.nodes_mut() {
        if node.children.is_empty() {
            continue;
        }
        let below = match element {
            Element::Field(name) => kind.member(name).0,
            _ => kind.items(),
        };
        if below.is_declared_whole() {
            *node = Node::leaf();
        } else {
            follow_schema(&mut node.children, below);
        }
    }
}
