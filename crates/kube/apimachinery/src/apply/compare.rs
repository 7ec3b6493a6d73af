//! How two objects differ.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::element::{Element, same};
use super::fieldset::{Node, Set};
use super::own::group;
use super::shape::{Relation, Shape, Type};
use crate::schema::{Kind, Typed};

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

    /// Without paths that no manager may own.
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
    Nodes::of(Some(old), Some(new), Type::Known(typed), false).comparison()
}

/// What a new object adds to the empty one of its type: structs that are always there are not added.
pub(super) fn compare_with_empty(new: &Value, typed: Typed<'_>) -> Comparison {
    Nodes::of(Some(&EMPTY), Some(new), Type::Known(typed), true).comparison()
}

static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

/// What the empty object of a type has at a member: structs held by value and collections that are always written.
fn always_there(owner: Type<'_>, name: &str) -> Option<&'static Value> {
    let Type::Known(owner) = owner else { return None };
    let member = owner.property(name)?;
    match (member.kind(), &member.site.reference) {
        // Custom types have no references: their defaults are no sign of how they are held.
        (Kind::Object, Some(_)) => {
            let empty = member.site.default.as_ref().and_then(Value::as_object).is_some_and(Map::is_empty);
            empty.then_some(&*EMPTY)
        }
        (Kind::Object | Kind::Array, None) if owner.site.reference.is_some() => {
            owner.schema.required.iter().any(|required| required == name).then_some(&Value::Null)
        }
        _ => None,
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
    fn comparison(self) -> Comparison {
        Comparison {
            added: self.added.children,
            modified: self.modified.children,
            removed: self.removed.children,
        }
    }

    /// `empty`: the old one is the empty object of its type, or always there inside of it.
    fn of(old: Option<&Value>, new: Option<&Value>, kind: Type<'_>, empty: bool) -> Self {
        let mut nodes = Self::default();
        // Most of an object does not change, and finding that out is cheaper than walking it by its type.
        if !empty && old.is_some() && old == new {
            return nodes;
        }
        let old_shape = old.filter(|old| !old.is_null() || new.is_none()).map(|old| kind.shape(old));
        let new_shape = new.map(|new| kind.shape(new));
        // Only what is not described can change its shape: then it is looked at both ways.
        if let Some(shape) = old_shape
            && old_shape != new_shape
        {
            nodes.look(old, new, kind, shape, empty);
            nodes.whole = false;
        }
        if let Some(shape) = new_shape {
            nodes.look(old, new, kind, shape, empty);
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

    fn look(
        &mut self,
        old: Option<&Value>,
        new: Option<&Value>,
        kind: Type<'_>,
        shape: Shape<'_>,
        empty: bool,
    ) {
        match shape {
            Shape::Map { whole: false } => {
                let members = |value: Option<&'_ Value>| {
                    value.and_then(Value::as_object).is_some_and(|map| !map.is_empty())
                };
                if members(old) || members(new) {
                    return self.members(old, new, kind, empty);
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

    fn members(&mut self, old: Option<&Value>, new: Option<&Value>, kind: Type<'_>, empty: bool) {
        let none = Map::new();
        let old = old.and_then(Value::as_object).unwrap_or(&none);
        let new = new.and_then(Value::as_object).unwrap_or(&none);
        for (name, old) in old {
            let child = Self::of(Some(old), new.get(name), kind.member(name).0, false);
            self.put(|| Element::Field(name.clone()), child);
        }
        for (name, new) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
            let old = if empty { always_there(kind, name) } else { None };
            let child = Self::of(old, Some(new), kind.member(name).0, old.is_some());
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
                    Self::of(old.first().copied(), new.first().copied(), below, false)
                }
                // Items that are there more than once are compared together.
                ([_, _, ..], [_, _, ..]) => {
                    let alike =
                        old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new));
                    Self { modified: Node { member: !alike, ..Node::default() }, ..Self::default() }
                }
                (_, new) if old.len() > 1 => {
                    let mut child =
                        new.first().map(|new| Self::of(None, Some(new), below, false)).unwrap_or_default();
                    child.removed.member = true;
                    child
                }
                (old, _) => {
                    let mut child =
                        old.first().map(|old| Self::of(Some(old), None, below, false)).unwrap_or_default();
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
