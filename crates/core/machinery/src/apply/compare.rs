//! How two objects differ.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::element::{Element, same};
use super::fieldset::{Node, Set};
use super::own::group;
use super::shape::{Relation, Shape, Type};
use crate::schema::Typed;

/// How an object differs from an older one. No path is in two of the sets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    pub added: Set,
    pub modified: Set,
    pub removed: Set,
}

impl Comparison {
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Without paths that nobody may own.
    pub(super) fn without(&self, fields: &Set) -> Self {
        Self {
            added: self.added.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            removed: self.removed.recursive_difference(fields),
        }
    }
}

/// How `new` differs from `old`.
pub fn compare(old: &Value, new: &Value, typed: Typed<'_>) -> Comparison {
    let nodes = Nodes::of(Some(old), Some(new), Type::Known(typed));
    Comparison {
        added: nodes.added.children,
        modified: nodes.modified.children,
        removed: nodes.removed.children,
    }
}

/// What the three sets say about one path.
#[derive(Default)]
struct Nodes {
    added: Node,
    modified: Node,
    removed: Node,
    /// Was compared as a whole.
    whole: bool,
}

impl Nodes {
    fn of(old: Option<&Value>, new: Option<&Value>, kind: Type<'_>) -> Self {
        let mut nodes = Self::default();
        let old_shape = old.filter(|old| !old.is_null() || new.is_none()).map(|old| kind.shape(old));
        let new_shape = new.map(|new| kind.shape(new));
        // Only what is not described can change its shape: then it is looked at both ways.
        if let Some(shape) = old_shape
            && old_shape != new_shape
        {
            nodes.look(old, new, kind, shape);
            nodes.whole = false;
        }
        if let Some(shape) = new_shape {
            nodes.look(old, new, kind, shape);
        }
        if !nodes.whole && new_shape.is_some() {
            nodes.added.member |= old.is_none();
        }
        if new.is_none() {
            nodes.removed.member |= old.is_some();
        }
        nodes
    }

    fn put(&mut self, element: impl Fn() -> Element, child: Self) {
        for (set, node) in [
            (&mut self.added, child.added),
            (&mut self.modified, child.modified),
            (&mut self.removed, child.removed),
        ] {
            if !node.is_empty() {
                set.children.put(element(), node);
            }
        }
    }

    fn look(&mut self, old: Option<&Value>, new: Option<&Value>, kind: Type<'_>, shape: Shape<'_>) {
        match shape {
            Shape::Map { whole: false } => {
                let members = |value: Option<&'_ Value>| {
                    value.and_then(Value::as_object).is_some_and(|map| !map.is_empty())
                };
                if members(old) || members(new) {
                    return self.members(old, new, kind);
                }
            }
            Shape::List(relation) if relation != Relation::Whole => {
                let (old, new) = (items(old), items(new));
                if !old.is_empty() || !new.is_empty() {
                    return self.items(old, new, kind, relation);
                }
            }
            _ => {}
        }
        self.leaf(old, new);
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        self.whole = true;
        match (old, new) {
            (None, _) => self.added.member = true,
            (_, None) => self.removed.member = true,
            (Some(old), Some(new)) => self.modified.member |= !same(old, new),
        }
    }

    fn members(&mut self, old: Option<&Value>, new: Option<&Value>, kind: Type<'_>) {
        let empty = Map::new();
        let old = old.and_then(Value::as_object).unwrap_or(&empty);
        let new = new.and_then(Value::as_object).unwrap_or(&empty);
        for (name, old) in old {
            let child = Self::of(Some(old), new.get(name), kind.member(name).0);
            self.put(|| Element::Field(name.clone()), child);
        }
        for (name, new) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
            let child = Self::of(None, Some(new), kind.member(name).0);
            self.put(|| Element::Field(name.clone()), child);
        }
    }

    fn items(&mut self, old: &[Value], new: &[Value], kind: Type<'_>, relation: Relation<'_>) {
        let (old, new) = (group(old, kind, relation), group(new, kind, relation));
        let elements: BTreeSet<&Element> = old.keys().chain(new.keys()).collect();
        let below = kind.items();
        for element in elements {
            let old = old.get(element).map_or(&[][..], Vec::as_slice);
            let new = new.get(element).map_or(&[][..], Vec::as_slice);
            let child = match (old, new) {
                (old @ ([] | [_]), new @ ([] | [_])) => {
                    Self::of(old.first().copied(), new.first().copied(), below)
                }
                // Items that are there more than once are compared together.
                ([_, _, ..], [_, _, ..]) => {
                    let alike =
                        old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new));
                    Self { modified: Node { member: !alike, ..Node::default() }, ..Self::default() }
                }
                (_, new) if old.len() > 1 => {
                    let mut child =
                        new.first().map(|new| Self::of(None, Some(new), below)).unwrap_or_default();
                    child.removed.member = true;
                    child
                }
                (old, _) => {
                    let mut child =
                        old.first().map(|old| Self::of(Some(old), None, below)).unwrap_or_default();
                    child.added.member = true;
                    child
                }
            };
            self.put(|| element.clone(), child);
        }
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
