//! Sets of field paths, and their wire form (`FieldsV1`).
//!
//! A set is a tree. A node may be a member itself and have members below it; a node without either does not exist, so
//! that equal sets are equal trees.

use std::cmp::Ordering;

use serde_json::{Map, Value};

pub use super::element::{Element, Scalar};

/// A set of paths into an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Set {
    /// Sorted, each element once.
    nodes: Vec<(Element, Node)>,
}

/// What a set says about one path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Node {
    pub member: bool,
    pub children: Set,
}

impl Node {
    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    pub(super) fn leaf() -> Self {
        Self { member: true, children: Set::default() }
    }
}

impl Set {
    /// Reads `FieldsV1`.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, String> {
        match fields {
            Value::Null => Ok(Self::default()),
            Value::Object(members) => Ok(Self::read(members)?.children),
            other => Err(format!("ReadMapCB: expect {{ or n, but found {other}")),
        }
    }

    fn read(members: &Map<String, Value>) -> Result<Node, String> {
        let mut node = Node::default();
        for (key, below) in members {
            if key == "." {
                node.member = true;
                continue;
            }
            let Some(element) = Element::parse(key)? else { continue };
            let child = match below {
                Value::Null => Node::leaf(),
                Value::Object(members) => Self::read(members)?,
                other => return Err(format!("ReadMapCB: expect {{ or n, but found {other}")),
            };
            *node.children.at(element) = child;
        }
        // What has nothing below it is there for itself.
        node.member |= node.children.is_empty();
        Ok(node)
    }

    /// Writes `FieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(self.write(false))
    }

    fn write(&self, member: bool) -> Map<String, Value> {
        let mut out = Map::new();
        if member && !self.is_empty() {
            out.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, node) in &self.nodes {
            out.insert(element.serialize(), Value::Object(node.children.write(node.member)));
        }
        out
    }

    /// A set of paths of member names (`["spec", "replicas"]`).
    pub fn of_names<'a>(paths: impl IntoIterator<Item = &'a [&'a str]>) -> Self {
        let mut set = Self::default();
        for path in paths {
            let elements: Vec<Element> = path.iter().map(|name| Element::Field((*name).to_owned())).collect();
            set.insert(&elements);
        }
        set
    }

    /// Adds a path. Its parents are not added.
    pub fn insert(&mut self, path: &[Element]) {
        if let Some((first, rest)) = path.split_first() {
            let node = self.at(first.clone());
            if rest.is_empty() {
                node.member = true;
            } else {
                node.children.insert(rest);
            }
        }
    }

    /// The node at an element, made when absent. The caller must not leave it empty.
    pub(super) fn at(&mut self, element: Element) -> &mut Node {
        let index = match self.nodes.binary_search_by(|(known, _)| known.cmp(&element)) {
            Ok(index) => index,
            Err(index) => {
                self.nodes.insert(index, (element, Node::default()));
                index
            }
        };
        &mut self.nodes[index].1
    }

    /// Puts a node at an element, unless it is empty.
    pub(super) fn put(&mut self, element: Element, node: Node) {
        if node.is_empty() {
            return;
        }
        // Mostly in order already.
        if self.nodes.last().is_none_or(|(last, _)| *last < element) {
            self.nodes.push((element, node));
        } else {
            let known = self.at(element);
            known.member |= node.member;
            known.children = known.children.union(&node.children);
        }
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = (&Element, &Node)> {
        self.nodes.iter().map(|(element, node)| (element, node))
    }

    pub(super) fn nodes_mut(&mut self) -> impl Iterator<Item = (&Element, &mut Node)> {
        self.nodes.iter_mut().map(|(element, node)| (&*element, node))
    }

    pub(super) fn get(&self, element: &Element) -> Option<&Node> {
        let index = self.nodes.binary_search_by(|(known, _)| known.cmp(element)).ok()?;
        self.nodes.get(index).map(|(_, node)| node)
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether the path is a member.
    pub fn has(&self, path: &[Element]) -> bool {
        match path.split_first() {
            None => false,
            Some((first, rest)) => self
                .get(first)
                .is_some_and(|node| if rest.is_empty() { node.member } else { node.children.has(rest) }),
        }
    }

    /// Walks both in order and keeps what `join` makes of each element.
    fn zip(&self, other: &Self, join: impl Fn(Option<&Node>, Option<&Node>) -> Option<Node>) -> Self {
        let mut nodes = Vec::with_capacity(self.nodes.len());
        let (mut left, mut right) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some((l, _)), Some((r, _))) => l.cmp(r),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Self { nodes },
            };
            let l = if order == Ordering::Greater { None } else { left.next() };
            let r = if order == Ordering::Less { None } else { right.next() };
            let node = join(l.map(|(_, node)| node), r.map(|(_, node)| node));
            if let Some(node) = node.filter(|node| !node.is_empty())
                && let Some((element, _)) = l.or(r)
            {
                nodes.push((element.clone(), node));
            }
        }
    }

    /// Members of either.
    pub fn union(&self, other: &Self) -> Self {
        if self.is_empty() {
            return other.clone();
        }
        self.zip(other, |left, right| match (left, right) {
            (Some(left), Some(right)) => Some(Node {
                member: left.member || right.member,
                children: left.children.union(&right.children),
            }),
            (one, other) => one.or(other).cloned(),
        })
    }

    /// Members of both.
    pub fn intersection(&self, other: &Self) -> Self {
        self.zip(other, |left, right| {
            let (left, right) = (left?, right?);
            Some(Node {
                member: left.member && right.member,
                children: left.children.intersection(&right.children),
            })
        })
    }

    /// Members of this one only. What is below a member of the other stays.
    pub fn difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        self.zip(other, |left, right| match (left?, right) {
            (left, Some(right)) => Some(Node {
                member: left.member && !right.member,
                children: left.children.difference(&right.children),
            }),
            (left, None) => Some(left.clone()),
        })
    }

    /// Members of this one that are neither members of the other nor below one.
    pub fn recursive_difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        self.zip(other, |left, right| match (left?, right) {
            (_, Some(right)) if right.member => None,
            (left, Some(right)) => Some(Node {
                member: left.member,
                children: left.children.recursive_difference(&right.children),
            }),
            (left, None) => Some(left.clone()),
        })
    }

    /// [`Self::difference`] in place: cheap when the other is small.
    pub(super) fn subtract(&mut self, other: &Self) {
        self.take_out(other, &|node, other| {
            node.member &= !other.member;
            node.children.subtract(&other.children);
        });
    }

    /// [`Self::recursive_difference`] in place.
    pub(super) fn subtract_recursive(&mut self, other: &Self) {
        self.take_out(other, &|node, other| {
            if other.member {
                *node = Node::default();
            } else {
                node.children.subtract_recursive(&other.children);
            }
        });
    }

    fn take_out(&mut self, other: &Self, take: &dyn Fn(&mut Node, &Node)) {
        for (element, taken) in &other.nodes {
            if let Ok(index) = self.nodes.binary_search_by(|(known, _)| known.cmp(element)) {
                let node = &mut self.nodes[index].1;
                take(node, taken);
                if node.is_empty() {
                    self.nodes.remove(index);
                }
            }
        }
    }

    /// Members that have nothing below them.
    pub fn leaves(&self) -> Self {
        let nodes = self.nodes.iter().map(|(element, node)| {
            let leaf = Node { member: node.children.is_empty(), children: node.children.leaves() };
            (element.clone(), leaf)
        });
        Self { nodes: nodes.collect() }
    }

    /// All members, as conflicts name them, those of a level before those below.
    pub fn paths(&self) -> Vec<Vec<Element>> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Vec<Element>, out: &mut Vec<Vec<Element>>) {
        for (element, _) in self.nodes.iter().filter(|(_, node)| node.member) {
            let mut path = prefix.clone();
            path.push(element.clone());
            out.push(path);
        }
        for (element, node) in &self.nodes {
            prefix.push(element.clone());
            node.children.collect(prefix, out);
            prefix.pop();
        }
    }
}

/// A path as conflicts show it: `.spec.containers[name="x"].image`.
pub fn show_path(path: &[Element]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn set(fields: &Value) -> Set {
        Set::from_fields_v1(fields).unwrap()
    }

    #[test]
    fn the_wire_form_is_read_and_written() {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:finalizers": {".": {}, "v:\"x\"": {}}},
            "f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}, "i:3": {}},
        });
        assert_eq!(set(&fields).to_fields_v1(), fields);
        assert!(set(&json!({"x:later": {}})).is_empty());
        for bad in [
            json!({"f": {}}),
            json!({"fx": {}}),
            json!({"k:[]": {}}),
            json!({"v:": {}}),
            json!({"f:a": 1}),
            json!(1),
        ] {
            assert!(Set::from_fields_v1(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn paths_are_shown_as_upstream_does() {
        let fields = json!({"f:spec": {"f:c": {"k:{\"name\":\"x\",\"port\":1}": {"f:image": {}}}, "f:a": {}, "f:f": {"v:\"x\"": {}}, "i:2": {}}});
        let shown: Vec<String> = set(&fields).paths().iter().map(|path| show_path(path)).collect();
        assert_eq!(shown, [".spec.a", ".spec[2]", ".spec.c[name=\"x\",port=1].image", ".spec.f[=\"x\"]"]);
    }

    #[test]
    fn sets_are_combined_member_by_member() {
        let a = set(&json!({"f:a": {".": {}, "f:b": {}, "f:c": {}}, "f:d": {}}));
        let b = set(&json!({"f:a": {"f:b": {}}, "f:e": {}}));
        let whole = set(&json!({"f:a": {}}));
        assert_eq!(
            a.union(&b).to_fields_v1(),
            json!({"f:a": {".": {}, "f:b": {}, "f:c": {}}, "f:d": {}, "f:e": {}})
        );
        assert_eq!(a.intersection(&b).to_fields_v1(), json!({"f:a": {"f:b": {}}}));
        assert_eq!(a.difference(&b).to_fields_v1(), json!({"f:a": {".": {}, "f:c": {}}, "f:d": {}}));
        assert_eq!(a.difference(&whole).to_fields_v1(), json!({"f:a": {"f:b": {}, "f:c": {}}, "f:d": {}}));
        assert_eq!(a.recursive_difference(&whole).to_fields_v1(), json!({"f:d": {}}));
        assert_eq!(a.leaves().to_fields_v1(), json!({"f:a": {"f:b": {}, "f:c": {}}, "f:d": {}}));
        assert!(a.has(&[Element::Field("a".into())]) && !b.has(&[Element::Field("a".into())]));
        assert_eq!(Set::of_names([&["x", "y"][..]]).to_fields_v1(), json!({"f:x": {"f:y": {}}}));
    }

    fn any_set() -> impl Strategy<Value = Set> {
        let path = prop::collection::vec("[a-c]".prop_map(Element::Field), 1..4);
        prop::collection::vec(path, 0..8).prop_map(|paths| {
            let mut set = Set::default();
            for path in &paths {
                set.insert(path);
            }
            set
        })
    }

    proptest! {
        #[test]
        fn sets_obey_their_laws(a in any_set(), b in any_set()) {
            prop_assert_eq!(&a.union(&b), &b.union(&a));
            prop_assert_eq!(&a.intersection(&b), &b.intersection(&a));
            prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
            let (mut plain, mut recursive) = (a.clone(), a.clone());
            plain.subtract(&b);
            recursive.subtract_recursive(&b);
            prop_assert_eq!(plain, a.difference(&b));
            prop_assert_eq!(recursive, a.recursive_difference(&b));
            prop_assert!(a.difference(&a).is_empty());
            prop_assert!(a.recursive_difference(&a).is_empty());
            prop_assert_eq!(set(&a.to_fields_v1()), a);
        }

        #[test]
        fn no_wire_form_panics(key in "[fkvix:]{0,3}[a-z0-9{}\":,ä]{0,12}") {
            let _ = Set::from_fields_v1(&json!({key: {}}));
        }
    }
}
