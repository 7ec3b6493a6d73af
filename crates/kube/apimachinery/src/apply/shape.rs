//! How a node of an object is owned and merged: as a scalar, a list or a map, whole or in parts.

use serde_json::Value;

use super::element::{Element, Scalar};
use crate::schema::{Kind, ListKind, Typed};

/// The type of a node.
#[derive(Clone, Copy)]
pub(super) enum Type<'t> {
    Known(Typed<'t>),
    /// Not described: maps in parts, lists as a whole.
    Deduced,
    /// Not described, inside of something owned as a whole.
    Whole,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape<'t> {
    Scalar,
    List(Relation<'t>),
    Map { whole: bool },
}

/// How the items of a list are told apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation<'t> {
    /// Not at all: the list is owned as a whole.
    Whole,
    /// By their value.
    Set,
    /// By these members.
    Keys(&'t [String]),
}

impl<'t> Type<'t> {
    /// How a value of this type is treated. Where the type does not say, the value does.
    pub(super) fn shape(self, value: &Value) -> Shape<'t> {
        match self.kind() {
            Kind::Any => match value {
                Value::Array(_) => Shape::List(self.relation()),
                Value::Object(_) | Value::Null => Shape::Map { whole: self.is_whole_map() },
                _ => Shape::Scalar,
            },
            Kind::Object => Shape::Map { whole: self.is_whole_map() },
            Kind::Array => Shape::List(self.relation()),
            _ => Shape::Scalar,
        }
    }

    /// Whether the type itself says that a node is owned as a whole.
    pub(super) fn is_declared_whole(self) -> bool {
        match self {
            Self::Known(typed) => match typed.kind() {
                Kind::Array => self.relation() == Relation::Whole,
                Kind::Object => self.is_whole_map(),
                _ => false,
            },
            Self::Deduced | Self::Whole => false,
        }
    }

    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Known(typed) => typed.kind(),
            _ => Kind::Any,
        }
    }

    fn is_whole_map(self) -> bool {
        match self {
            Self::Known(typed) => typed.is_atomic_map() || is_raw_extension(typed),
            Self::Deduced => false,
            Self::Whole => true,
        }
    }

    fn relation(self) -> Relation<'t> {
        let Self::Known(typed) = self else { return Relation::Whole };
        match typed.list_kind() {
            Some(ListKind::Atomic) => Relation::Whole,
            Some(ListKind::Set) => Relation::Set,
            Some(ListKind::Map(keys)) => Relation::Keys(keys),
            // Older types say it only to strategic merge patches.
            None => {
                let hint = typed.patch();
                match &hint.merge_key {
                    _ if !hint.strategies.iter().any(|strategy| strategy == "merge") => Relation::Whole,
                    Some(key) => Relation::Keys(std::slice::from_ref(key)),
                    None => Relation::Set,
                }
            }
        }
    }

    /// The type of a member, and whether it is a declared one.
    pub(super) fn member(self, name: &str) -> (Self, bool) {
        match self {
            Self::Known(typed) if is_raw_extension(typed) => (Self::Whole, false),
            Self::Known(typed) => match typed.property(name) {
                Some(property) => (Self::Known(property), true),
                None => (typed.additional().map_or(Self::Deduced, Self::Known), false),
            },
            other => (other, false),
        }
    }

    /// Whether a struct may have such a member.
    pub(super) fn knows(self, name: &str) -> bool {
        match self {
            Self::Known(typed) => {
                typed.member(name).is_some()
                    || typed.preserves_unknown()
                    || typed.schema.properties.is_empty()
                    || typed.kind() == Kind::Any
            }
            _ => true,
        }
    }

    pub(super) fn items(self) -> Self {
        match self {
            Self::Known(typed) => typed.items().map_or(Self::Whole, Self::Known),
            _ => Self::Whole,
        }
    }
}

fn is_raw_extension(typed: Typed<'_>) -> bool {
    typed.site.reference.as_deref().is_some_and(|name| name.ends_with("runtime.RawExtension"))
}

/// What tells an item of a list apart from the others.
pub(super) fn item_element(list: Type<'_>, relation: Relation<'_>, item: &Value) -> Result<Element, String> {
    match relation {
        Relation::Whole => Err("invalid indexing of non-associative list".to_owned()),
        Relation::Set => match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null".to_owned())
            }
            scalar => Ok(Element::Value(Scalar(scalar.clone()))),
        },
        Relation::Keys(keys) => {
            let members = match item {
                Value::Object(members) => members,
                Value::Null => {
                    return Err("associative list with keys may not have a null element".to_owned());
                }
                _ => return Err("associative list with keys may not have non-map elements".to_owned()),
            };
            let mut fields = Vec::with_capacity(keys.len());
            for key in keys {
                let default = || match list.items() {
                    Type::Known(item) => item.property(key).and_then(Typed::default_value),
                    _ => None,
                };
                if let Some(value) = members.get(key).or_else(default) {
                    fields.push((key.clone(), Scalar(value.clone())));
                }
            }
            if fields.is_empty() && !keys.is_empty() {
                let names: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
                return Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't have \
                     default values for any key fields)",
                    names.join(" ")
                ));
            }
            fields.sort_by(|(left, _), (right, _)| left.cmp(right));
            Ok(Element::Key(fields))
        }
    }
}
