//! One pass over a document: builds the value, drops what the type does not know, checks JSON types.
//!
//! Like Go's decoder it goes on after a type error and reports the first one; a syntax error beats them all.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{Problem, named, names, quantity, scalar};
use crate::schema::{Kind, Typed};

/// Upstream reports no more than this.
const MAX_PROBLEMS: usize = 100;

#[derive(Default)]
pub(super) struct Notes {
    pub problems: Vec<Problem>,
    pub error: Option<String>,
}

/// Where we are. Lives on the stack, so that a path costs nothing until an error needs it.
#[derive(Clone, Copy)]
pub(super) enum Path<'p> {
    Root,
    /// A member of the struct `owner`.
    Field {
        parent: &'p Path<'p>,
        owner: &'p str,
        name: &'p str,
    },
    /// A member of a map.
    Key {
        parent: &'p Path<'p>,
        name: &'p str,
    },
    Index {
        parent: &'p Path<'p>,
        index: usize,
    },
}

impl Path<'_> {
    /// `spec.containers[0].name`
    fn show(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field { parent, name, .. } | Self::Key { parent, name } => {
                let mut path = parent.show();
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                path
            }
            Self::Index { parent, index } => format!("{}[{index}]", parent.show()),
        }
    }

    /// Names of members only: `spec.containers.name`.
    fn fields(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Key { parent, .. } | Self::Index { parent, .. } => parent.fields(),
            Self::Field { parent, owner, name } => {
                let mut path = parent.fields();
                for step in names::embedded(owner, name).into_iter().chain([*name]) {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(step);
                }
                path
            }
        }
    }

    /// The member this is, or is an item of.
    fn field(&self) -> Option<&Self> {
        match self {
            Self::Field { .. } => Some(self),
            Self::Index { parent, .. } => parent.field(),
            Self::Root | Self::Key { .. } => None,
        }
    }

    /// The struct whose member this is or is inside of.
    fn owner(&self) -> Option<&str> {
        match self {
            Self::Root => None,
            Self::Field { owner, .. } => Some(owner),
            Self::Key { parent, .. } | Self::Index { parent, .. } => parent.owner(),
        }
    }
}

/// Reads one node.
pub(super) struct Node<'n, 't, 'p> {
    /// `None`: anything goes.
    pub typed: Option<Typed<'t>>,
    /// The struct this node is of, for errors.
    pub path: Path<'p>,
    pub notes: &'n RefCell<Notes>,
    /// Whether repeated members are noted where anything goes.
    pub duplicates: bool,
}

impl<'t> Node<'_, 't, '_> {
    fn kind(&self) -> Kind {
        self.typed.map_or(Kind::Any, Typed::kind)
    }

    fn reference(&self) -> &'t str {
        self.typed.and_then(|typed| typed.site.reference.as_deref()).map_or("", names::struct_name)
    }

    fn is_quantity(&self) -> bool {
        self.kind() == Kind::Any && self.reference() == "Quantity"
    }

    fn note(&self, problem: Problem) {
        let problems = &mut self.notes.borrow_mut().problems;
        if problems.len() < MAX_PROBLEMS {
            problems.push(problem);
        }
    }

    /// Keeps the first error. The value at fault is as absent.
    fn fail(&self, error: String) -> Value {
        self.notes.borrow_mut().error.get_or_insert(error);
        Value::Null
    }

    fn mismatch(&self, found: &str) -> Value {
        if self.is_quantity() {
            return self.fail(quantity::canonical("x").err().unwrap_or_default().to_owned());
        }
        let target = self.named_type().or_else(|| self.typed.map(names::go_type)).unwrap_or_default();
        let place = match self.path.owner() {
            Some(owner) => format!("Go struct field {owner}.{}", self.path.fields()),
            None => "Go value".to_owned(),
        };
        self.fail(format!("json: cannot unmarshal {found} into {place} of type {target}"))
    }

    /// The Go type, when it has a name that the schema does not know.
    fn named_type(&self) -> Option<String> {
        let Path::Field { owner, name, .. } = self.path.field()? else { return None };
        let named = named::type_of(owner, name)?;
        match (self.path, self.kind()) {
            (Path::Field { .. }, Kind::Array) => Some(format!("[]{named}")),
            (Path::Field { .. } | Path::Index { .. }, _) => Some(named.to_owned()),
            _ => None,
        }
    }

    fn number(&self, number: Number) -> Value {
        match self.kind() {
            Kind::Any if self.is_quantity() => self.quantity(&number.to_string()),
            Kind::Any | Kind::Number => Value::Number(plain(number)),
            Kind::Integer | Kind::IntOrString => {
                let narrow = self.kind() == Kind::IntOrString
                    || self.typed.is_some_and(|typed| typed.schema.format.as_deref() == Some("int32"));
                let fits = number.as_i64().is_some_and(|number| !narrow || i32::try_from(number).is_ok());
                if fits { Value::Number(number) } else { self.mismatch(&format!("number {number}")) }
            }
            _ => self.mismatch("number"),
        }
    }

    fn quantity(&self, text: &str) -> Value {
        match quantity::canonical(text) {
            Ok(form) => Value::String(form),
            Err(error) => self.fail(error.to_owned()),
        }
    }

    fn text(&self, text: String) -> Value {
        let Some(typed) = self.typed else { return Value::String(text) };
        let checked = match (typed.kind(), typed.schema.format.as_deref()) {
            (Kind::Any, _) if self.is_quantity() => return self.quantity(&text),
            (Kind::String, Some("date-time")) if self.reference() == "MicroTime" => scalar::micro_time(&text),
            (Kind::String, Some("date-time")) => scalar::time(&text),
            (Kind::String, Some("byte")) => scalar::base64(&text),
            (Kind::Any | Kind::String | Kind::IntOrString, _) => Ok(text),
            _ => return self.mismatch("string"),
        };
        checked.map_or_else(|error| self.fail(error), Value::String)
    }

    /// What null means as an element of a list or a value of a map: the empty value of the type.
    fn zero(&self) -> Value {
        match self.kind() {
            Kind::Any => Value::Null,
            Kind::Object => Value::Object(Map::new()),
            Kind::Array => Value::Array(Vec::new()),
            Kind::String => Value::String(String::new()),
            Kind::Integer | Kind::Number | Kind::IntOrString => Value::Number(0.into()),
            Kind::Boolean => Value::Bool(false),
        }
    }

    /// Whether empty lists and maps here are as absent, because Go leaves them out.
    fn omits_empty(owner: Typed<'_>, name: &str, member: Typed<'_>) -> bool {
        let collection = match member.kind() {
            Kind::Array => true,
            Kind::Object => member.site.reference.is_none() && member.schema.properties.is_empty(),
            _ => false,
        };
        collection && !owner.schema.required.iter().any(|required| required == name)
    }

    fn object<'de, A: MapAccess<'de>>(self, typed: Typed<'t>, mut map: A) -> Result<Value, A::Error> {
        let owner = typed.site.reference.as_deref().map_or("", names::struct_name);
        let open = typed.preserves_unknown();
        let mut out = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let declared = typed.property(&name);
            let path = match declared {
                Some(_) => Path::Field { parent: &self.path, owner, name: &name },
                None => Path::Key { parent: &self.path, name: &name },
            };
            let member = declared.or_else(|| typed.additional());
            let node = Node { typed: member, path, notes: self.notes, duplicates: self.duplicates };
            if member.is_none() && !open {
                node.note(Problem::Unknown(path.show()));
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if out.contains_key(&name) {
                node.note(Problem::Duplicate(path.show()));
            }
            let zero = if declared.is_none() { node.zero() } else { Value::Null };
            let keeps_null = member.is_none();
            let mut value = map.next_value_seed(node)?;
            if value.is_null() {
                value = zero;
            }
            let empty = match &value {
                Value::Null => !keeps_null,
                Value::Array(items) if items.is_empty() => {
                    member.is_some_and(|member| Self::omits_empty(typed, &name, member)) && declared.is_some()
                }
                Value::Object(members) if members.is_empty() => {
                    member.is_some_and(|member| Self::omits_empty(typed, &name, member)) && declared.is_some()
                }
                Value::String(text) => text.is_empty() && owner == "ObjectMeta",
                _ => false,
            };
            if empty {
                out.remove(&name);
            } else {
                out.insert(name, value);
            }
        }
        Ok(Value::Object(out))
    }

    fn anything<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let path = Path::Key { parent: &self.path, name: &name };
            let node = Node { typed: None, path, notes: self.notes, duplicates: self.duplicates };
            if self.duplicates && out.contains_key(&name) {
                node.note(Problem::Duplicate(path.show()));
            }
            let value = map.next_value_seed(node)?;
            out.insert(name, value);
        }
        Ok(Value::Object(out))
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_, '_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, '_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(match self.kind() {
            Kind::Any if !self.is_quantity() => Value::Bool(value),
            Kind::Boolean => Value::Bool(value),
            _ => self.mismatch("bool"),
        })
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(self.number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(self.number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, |number| self.number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(self.text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(self.text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        if !matches!(self.kind(), Kind::Any | Kind::Array) || self.is_quantity() {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(self.mismatch("array"));
        }
        let items = self.typed.and_then(Typed::items);
        let mut out = Vec::new();
        loop {
            let path = Path::Index { parent: &self.path, index: out.len() };
            let node = Node { typed: items, path, notes: self.notes, duplicates: self.duplicates };
            let zero = node.zero();
            let Some(value) = seq.next_element_seed(node)? else { return Ok(Value::Array(out)) };
            out.push(if value.is_null() { zero } else { value });
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        match (self.typed, self.kind()) {
            (Some(typed), Kind::Object) if !is_free(typed) => self.object(typed, map),
            (_, Kind::Any | Kind::Object) if !self.is_quantity() => self.anything(map),
            _ => {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(self.mismatch("object"))
            }
        }
    }
}

/// A number in the form Go gives it: whole ones are integers, however written; too large ones lose digits.
fn plain(number: Number) -> Number {
    if number.is_i64() {
        return number;
    }
    let float = number.as_f64().unwrap_or_default();
    // Exact below this bound.
    let whole = float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
    if whole { (float as i64).into() } else { Number::from_f64(float).unwrap_or(number) }
}

/// An object about whose members nothing is said.
fn is_free(typed: Typed<'_>) -> bool {
    typed.schema.properties.is_empty() && typed.additional().is_none()
}
