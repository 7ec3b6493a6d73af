//! What an object owns.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::Element;
use super::fieldset::{Node, Set};
use super::shape::{Relation, Shape, Type, item_element};
use crate::schema::Typed;

/// The fields an object has, as a manager who says all of it owns them.
pub fn of_object(value: &Value, typed: Typed<'_>) -> Set {
    own(value, Type::Known(typed)).children
}

fn own(value: &Value, kind: Type<'_>) -> Node {
    match (kind.shape(value), value) {
        (Shape::Scalar | Shape::List(Relation::Whole) | Shape::Map { whole: true }, _) => Node::leaf(),
        (Shape::List(relation), Value::Array(items)) => own_items(items, kind, relation),
        (Shape::Map { .. }, Value::Object(members)) => {
            let mut node = Node::default();
            for (name, member) in members {
                let (below, declared) = kind.member(name);
                let mut child = own(member, below);
                let is_empty = member.is_null() || member.as_object().is_some_and(Map::is_empty);
                child.member |= is_empty || !declared;
                node.children.put(Element::Field(name.clone()), child);
            }
            node
        }
        _ => Node::default(),
    }
}

fn own_items(items: &[Value], kind: Type<'_>, relation: Relation<'_>) -> Node {
    let mut node = Node::default();
    for (element, found) in group(items, kind, relation) {
        // Items that are there more than once are owned by their name only.
        let child = match found.as_slice() {
            [item] => Node { member: true, ..own(item, kind.items()) },
            _ => Node::leaf(),
        };
        node.children.put(element, child);
    }
    node
}

/// Items by what tells them apart. Those that nothing tells apart are left out.
pub(super) fn group<'v>(
    items: &'v [Value],
    kind: Type<'_>,
    relation: Relation<'_>,
) -> BTreeMap<Element, Vec<&'v Value>> {
    let mut groups: BTreeMap<Element, Vec<&Value>> = BTreeMap::new();
    for item in items {
        if let Ok(element) = item_element(kind, relation, item) {
            groups.entry(element).or_default().push(item);
        }
    }
    groups
}
