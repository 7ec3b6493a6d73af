//! What expressions compute with.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use aro_kube_apimachinery::schema::{Kind, ListKind};
use jiff::Timestamp;
use serde_json::Value;

use crate::cel::functions::named_formats::Named;
use crate::cel::functions::net::Cidr;
use crate::cel::functions::quantity::Quantity;
use crate::cel::functions::semver::Semver;
use crate::cel::functions::url::Url;
use crate::cel::functions::{base64, time};
use crate::node::Node;
use crate::validate::formats::Format;

/// A value. Lists and objects of the document stay where they are.
#[derive(Debug, Clone)]
pub(crate) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Str(Cow<'a, str>),
    Bytes(Rc<Vec<u8>>),
    /// A list or an object of the document, seen through its schema.
    Doc(&'a Value, Option<&'a Node>),
    List(Rc<Vec<Val<'a>>>),
    Map(Rc<Vec<(Val<'a>, Val<'a>)>>),
    Optional(Option<Rc<Val<'a>>>),
    Type(&'static str),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    Ip(std::net::IpAddr),
    Cidr(Cidr),
    Url(Rc<Url>),
    Quantity(Quantity),
    Semver(Rc<Semver>),
    /// A named format, such as `format.dns1123Label()`.
    Format(Named),
}

impl<'a> Val<'a> {
    /// A value of the document.
    pub(crate) fn of(value: &'a Value, node: Option<&'a Node>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(*b),
            Value::Number(number) => {
                if node.is_some_and(|node| node.kind == Kind::Number) {
                    return Self::Double(number.as_f64().unwrap_or_default());
                }
                match (number.as_i64(), number.as_f64()) {
                    (Some(int), _) => Self::Int(int),
                    (None, float) => Self::Double(float.unwrap_or_default()),
                }
            }
            Value::String(text) => Self::text(text, node),
            Value::Array(_) | Value::Object(_) => Self::Doc(value, node),
        }
    }

    /// A string whose format gives it another type. One that does not parse stays a string.
    fn text(text: &'a str, node: Option<&Node>) -> Self {
        let plain = || Self::Str(Cow::Borrowed(text));
        match node.and_then(|node| node.format) {
            Some(Format::DateTime) => time::timestamp(text).map_or_else(plain, Self::Timestamp),
            Some(Format::Date) => time::date(text).map_or_else(plain, Self::Timestamp),
            Some(Format::Duration) => time::any_duration(text).map_or_else(plain, Self::Duration),
            Some(Format::Byte) => {
                base64::decode(text).map_or_else(plain, |bytes| Self::Bytes(Rc::new(bytes)))
            }
            _ => plain(),
        }
    }

    pub(crate) fn string(text: impl Into<String>) -> Self {
        Self::Str(Cow::Owned(text.into()))
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(items))
    }

    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    /// As `type()` names it, and as errors do.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Str(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Doc(Value::Array(_), _) | Self::List(_) => "list",
            Self::Doc(..) | Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
        }
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self, Self::List(_) | Self::Doc(Value::Array(_), _))
    }

    /// Members of a list, items first come first.
    pub(crate) fn items(&self) -> Option<Items<'a, '_>> {
        match self {
            Self::List(items) => Some(Items::Made(items.iter())),
            Self::Doc(Value::Array(items), node) => {
                Some(Items::Doc(items.iter(), node.and_then(|node| node.items.as_deref())))
            }
            _ => None,
        }
    }

    /// Keys and values of a map, in the order of the document.
    pub(crate) fn entries(&self) -> Option<Vec<(Self, Self)>> {
        match self {
            Self::Map(entries) => Some(entries.as_ref().clone()),
            Self::Doc(Value::Object(members), node) => Some(
                members
                    .iter()
                    .map(|(name, value)| {
                        let node = node.and_then(|node| node.member(name));
                        (Self::Str(Cow::Borrowed(name)), Self::of(value, node))
                    })
                    .collect(),
            ),
            _ => None,
        }
    }

    /// How many members, entries or characters.
    pub(crate) fn size(&self) -> Option<usize> {
        match self {
            Self::Str(text) => Some(text.chars().count()),
            Self::Bytes(bytes) => Some(bytes.len()),
            Self::List(items) => Some(items.len()),
            Self::Map(entries) => Some(entries.len()),
            Self::Doc(Value::Array(items), _) => Some(items.len()),
            Self::Doc(Value::Object(members), _) => Some(members.len()),
            _ => None,
        }
    }

    /// A rough measure of how much work touching this value is.
    pub(crate) fn weight(&self) -> u64 {
        match self {
            Self::Str(text) => 1 + text.len() as u64 / 10,
            Self::Bytes(bytes) => 1 + bytes.len() as u64 / 10,
            Self::List(items) => 1 + items.len() as u64,
            Self::Map(entries) => 1 + entries.len() as u64,
            Self::Doc(value, _) => document_weight(value),
            _ => 1,
        }
    }

    /// The member of an object by a name as it is written in an expression.
    pub(crate) fn field(&self, name: &str, unescaped: Option<&str>) -> Option<Self> {
        match self {
            Self::Doc(Value::Object(members), node) => {
                let declared =
                    node.is_none_or(|node| !node.properties.is_empty() || node.additional.is_none());
                let name = unescaped.filter(|_| declared).unwrap_or(name);
                let value = members.get(name)?;
                Some(Self::of(value, node.and_then(|node| node.member(name))))
            }
            Self::Map(_) => self.key(&Val::Str(Cow::Borrowed(name))),
            _ => None,
        }
    }

    /// The entry of a map by its key.
    pub(crate) fn key(&self, key: &Val<'_>) -> Option<Self> {
        match self {
            Self::Doc(Value::Object(members), node) => {
                let Val::Str(name) = key else { return None };
                let value = members.get(name.as_ref())?;
                Some(Self::of(value, node.and_then(|node| node.member(name))))
            }
            Self::Map(entries) => {
                entries.iter().find(|(known, _)| known.equals(key)).map(|(_, value)| value.clone())
            }
            _ => None,
        }
    }

    /// Equality across numeric types; lists that are sets or maps by their schema compare without order.
    pub(crate) fn equals(&self, other: &Val<'_>) -> bool {
        use Val as V;
        match (self, other) {
            (V::Null, V::Null) => true,
            (V::Bool(a), V::Bool(b)) => a == b,
            (V::Str(a), V::Str(b)) => a == b,
            (V::Bytes(a), V::Bytes(b)) => a == b,
            (V::Type(a), V::Type(b)) => a == b,
            (V::Duration(a), V::Duration(b)) => a == b,
            (V::Timestamp(a), V::Timestamp(b)) => a == b,
            (V::Ip(a), V::Ip(b)) => a == b,
            (V::Cidr(a), V::Cidr(b)) => a == b,
            (V::Url(a), V::Url(b)) => a == b,
            (V::Quantity(a), V::Quantity(b)) => a.compare(b) == Ordering::Equal,
            (V::Semver(a), V::Semver(b)) => a.compare(b) == Ordering::Equal,
            (V::Optional(a), V::Optional(b)) => match (a, b) {
                (None, None) => true,
                (Some(a), Some(b)) => a.equals(b),
                _ => false,
            },
            (V::Doc(a, x), V::Doc(b, y)) if !ordered_differently(*x) && !ordered_differently(*y) => a == b,
            _ => {
                if let Some(order) = numeric_order(self, other) {
                    return order == Ordering::Equal;
                }
                if let (Some(a), Some(b)) = (self.items(), other.items()) {
                    return self.size() == other.size() && self.lists_equal(other, a, b);
                }
                match (self.entries(), other.size()) {
                    (Some(entries), Some(size)) if other.type_name() == "map" => {
                        entries.len() == size
                            && entries.iter().all(|(key, value)| {
                                other.key(key).is_some_and(|theirs| value.equals(&theirs))
                            })
                    }
                    _ => false,
                }
            }
        }
    }

    fn lists_equal(&self, other: &Val<'_>, mine: Items<'_, '_>, theirs: Items<'_, '_>) -> bool {
        let unordered = |value: &Val<'_>| matches!(value, Val::Doc(_, Some(node)) if matches!(node.list, Some(ListKind::Set | ListKind::Map(_))));
        if unordered(self) || unordered(other) {
            let theirs: Vec<_> = theirs.collect();
            return mine.into_iter().all(|item| theirs.iter().any(|their| item.equals(their)));
        }
        mine.zip(theirs).all(|(mine, theirs)| mine.equals(&theirs))
    }

    /// `None` when the two have no order.
    pub(crate) fn compare(&self, other: &Val<'_>) -> Option<Ordering> {
        use Val as V;
        match (self, other) {
            (V::Bool(a), V::Bool(b)) => Some(a.cmp(b)),
            (V::Str(a), V::Str(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (V::Bytes(a), V::Bytes(b)) => Some(a.cmp(b)),
            (V::Duration(a), V::Duration(b)) => Some(a.cmp(b)),
            (V::Timestamp(a), V::Timestamp(b)) => Some(a.cmp(b)),
            _ => numeric_order(self, other),
        }
    }
}

/// Whether a plain comparison of documents could say something else than the schema does.
fn ordered_differently(node: Option<&Node>) -> bool {
    node.is_some_and(|node| node.below.unique_lists)
}

fn document_weight(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(document_weight).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(document_weight).sum::<u64>(),
        Value::String(text) => 1 + text.len() as u64 / 10,
        _ => 1,
    }
}

/// Order of two numbers of any numeric types.
fn numeric_order(a: &Val<'_>, b: &Val<'_>) -> Option<Ordering> {
    use Val as V;
    match (a, b) {
        (V::Int(a), V::Int(b)) => Some(a.cmp(b)),
        (V::Uint(a), V::Uint(b)) => Some(a.cmp(b)),
        (V::Int(a), V::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (V::Uint(a), V::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (V::Double(a), V::Double(b)) => a.partial_cmp(b),
        (V::Double(a), V::Int(b)) => a.partial_cmp(&(*b as f64)),
        (V::Int(a), V::Double(b)) => (*a as f64).partial_cmp(b),
        (V::Double(a), V::Uint(b)) => a.partial_cmp(&(*b as f64)),
        (V::Uint(a), V::Double(b)) => (*a as f64).partial_cmp(b),
        _ => None,
    }
}

/// Members of a list.
pub(crate) enum Items<'a, 'b> {
    Made(std::slice::Iter<'b, Val<'a>>),
    Doc(std::slice::Iter<'a, Value>, Option<&'a Node>),
}

impl<'a> Iterator for Items<'a, '_> {
    type Item = Val<'a>;

    fn next(&mut self) -> Option<Val<'a>> {
        match self {
            Self::Made(items) => items.next().cloned(),
            Self::Doc(items, node) => items.next().map(|value| Val::of(value, *node)),
        }
    }

    fn nth(&mut self, n: usize) -> Option<Val<'a>> {
        match self {
            Self::Made(items) => items.nth(n).cloned(),
            Self::Doc(items, node) => items.nth(n).map(|value| Val::of(value, *node)),
        }
    }
}
