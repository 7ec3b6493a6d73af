//! Resource ids: `/subscriptions/{s}/resourceGroups/{g}/providers/{ns}/{type}/{name}/{type}/{name}…`.
//!
//! Ids compare without regard to case and keep the case they were given, except for the words ARM owns
//! (`subscriptions`, `resourceGroups`, `providers`), which are always written the canonical way.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A parsed resource id: one text, and where its parts are. Documents hold dozens of ids, so reading one costs one
/// allocation, and comparing two none.
#[derive(Clone)]
pub struct ResourceId {
    text: String,
    subscription: Option<Span>,
    resource_group: Option<Span>,
    namespace: Option<Span>,
    /// Where the type/name pairs below the namespace begin; the end of the text for a subscription or a group.
    pairs: usize,
}

/// A part of the text, by its first byte and its end.
type Span = (usize, usize);

/// Why a text is not a resource id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("resource ID must start with '/'")]
    NoLeadingSlash,
    #[error("resource ID has an empty segment")]
    EmptySegment,
    #[error("resource ID must have a name after '{0}'")]
    Unpaired(String),
    #[error("resource ID must begin with '/subscriptions/' or '/providers/'")]
    BadRoot,
    #[error("resource ID must name a resource type after '/providers/{0}'")]
    NoType(String),
    #[error("resource ID is longer than {MAX_ID_BYTES} bytes")]
    TooLong,
    #[error("resource ID contains a control character or '?' or '#'")]
    BadCharacter,
}

/// Longer ids than any that ARM hands out are refused before they are taken apart.
pub const MAX_ID_BYTES: usize = 2048;

impl ResourceId {
    /// Parses an id. A trailing slash is tolerated, empty segments are not.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        if text.len() > MAX_ID_BYTES {
            return Err(IdError::TooLong);
        }
        let odd = |byte: u8| byte.is_ascii_control() || byte == b'?' || byte == b'#';
        if text.bytes().any(odd) || (!text.is_ascii() && text.chars().any(char::is_control)) {
            return Err(IdError::BadCharacter);
        }
        let rest = text.strip_prefix('/').ok_or(IdError::NoLeadingSlash)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.split('/').any(str::is_empty) {
            return Err(IdError::EmptySegment);
        }
        let mut left = Some(rest);
        let mut id = Self::empty(text.len());
        id.subscription = id.take_pair(&mut left, "subscriptions")?;
        if id.subscription.is_some() {
            id.resource_group = id.take_pair(&mut left, "resourceGroups")?;
        }
        id.namespace = id.take_pair(&mut left, "providers")?;
        id.pairs = id.text.len();
        match (id.namespace(), left) {
            (None, Some(_)) => return Err(IdError::BadRoot),
            (None, None) if id.subscription.is_none() => return Err(IdError::BadRoot),
            (None, None) => {}
            (Some(namespace), None) => return Err(IdError::NoType(namespace.to_owned())),
            (Some(_), Some(pairs)) => {
                if pairs.split('/').count() % 2 == 1 {
                    return Err(IdError::Unpaired(pairs.rsplit('/').next().unwrap_or_default().to_owned()));
                }
                id.text.push('/');
                id.text.push_str(pairs);
            }
        }
        Ok(id)
    }

    fn empty(capacity: usize) -> Self {
        let text = String::with_capacity(capacity);
        Self { text, subscription: None, resource_group: None, namespace: None, pairs: 0 }
    }

    /// Takes `word/value` off the front, if it is there, and writes it with the canonical word.
    fn take_pair(&mut self, left: &mut Option<&str>, word: &str) -> Result<Option<Span>, IdError> {
        let Some(text) = *left else { return Ok(None) };
        let (first, rest) = split(text);
        if !first.eq_ignore_ascii_case(word) {
            return Ok(None);
        }
        let (value, rest) = split(rest.ok_or_else(|| IdError::Unpaired(first.to_owned()))?);
        *left = rest;
        Ok(Some(self.push(word, value)))
    }

    /// Writes `/word/value` and returns where the value is.
    fn push(&mut self, word: &str, value: &str) -> Span {
        for part in ["/", word, "/", value] {
            self.text.push_str(part);
        }
        (self.text.len() - value.len(), self.text.len())
    }

    fn push_pairs<'a>(mut self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        for (kind, name) in pairs {
            self.push(kind, name);
        }
        self
    }

    /// The id of a subscription.
    pub fn of_subscription(subscription: &str) -> Self {
        Self::from_parts(Some(subscription), None, None, [])
    }

    /// An id made of its parts, which are taken as they are: names from a URL are judged by their own rules.
    pub fn from_parts<'a>(
        subscription: Option<&str>,
        resource_group: Option<&str>,
        namespace: Option<&str>,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let mut id = Self::empty(192);
        id.subscription = subscription.map(|subscription| id.push("subscriptions", subscription));
        id.resource_group = resource_group.map(|group| id.push("resourceGroups", group));
        id.namespace = namespace.map(|namespace| id.push("providers", namespace));
        id.pairs = id.text.len();
        id.push_pairs(pairs)
    }

    /// The id of a resource directly below a subscription, e.g. an operation status.
    pub fn in_subscription(subscription: &str, namespace: &str, pairs: &[(&str, &str)]) -> Self {
        Self::from_parts(Some(subscription), None, Some(namespace), pairs.iter().copied())
    }

    /// The id of a resource in a resource group.
    pub fn in_group(
        subscription: &str,
        resource_group: &str,
        namespace: &str,
        pairs: &[(&str, &str)],
    ) -> Self {
        Self::from_parts(Some(subscription), Some(resource_group), Some(namespace), pairs.iter().copied())
    }

    /// The id of a resource below this one.
    pub fn child(&self, kind: &str, name: &str) -> Self {
        self.clone().push_pairs([(kind, name)])
    }

    /// The resource this one is nested in, if it is nested in a resource.
    pub fn parent(&self) -> Option<Self> {
        let pairs = self.text.get(self.pairs..)?;
        let kind = pairs.rfind('/').and_then(|name| pairs.get(..name)?.rfind('/'))?;
        if kind == 0 {
            return None;
        }
        let mut parent = self.clone();
        parent.text.truncate(self.pairs + kind);
        Some(parent)
    }

    fn part(&self, span: Option<Span>) -> Option<&str> {
        span.and_then(|(from, to)| self.text.get(from..to))
    }

    /// The types and names below the namespace, in turn.
    fn segments(&self) -> impl Iterator<Item = &str> {
        self.text.get(self.pairs..).unwrap_or_default().split('/').skip(1)
    }

    fn is_resource(&self) -> bool {
        self.pairs < self.text.len()
    }

    /// The id as text, with the case it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The id in lower case: its identity.
    pub fn to_lower(&self) -> String {
        self.text.to_lowercase()
    }

    pub fn subscription(&self) -> Option<&str> {
        self.part(self.subscription)
    }

    pub fn resource_group(&self) -> Option<&str> {
        self.part(self.resource_group)
    }

    pub fn namespace(&self) -> Option<&str> {
        self.part(self.namespace)
    }

    /// The last name: of the resource, or of the resource group or subscription when there is no resource.
    pub fn name(&self) -> &str {
        if self.is_resource() {
            return self.text.rsplit('/').next().unwrap_or_default();
        }
        self.resource_group().or(self.subscription()).unwrap_or_default()
    }

    /// The full type, e.g. `Microsoft.Network/virtualNetworks/subnets`.
    pub fn resource_type(&self) -> String {
        self.type_parts().collect::<Vec<_>>().join("/")
    }

    fn type_parts(&self) -> impl Iterator<Item = &str> {
        let (namespace, kind) = match (self.namespace(), self.resource_group) {
            (Some(namespace), _) => (namespace, None),
            (None, Some(_)) => ("Microsoft.Resources", Some("resourceGroups")),
            (None, None) => ("Microsoft.Resources", Some("subscriptions")),
        };
        [namespace].into_iter().chain(kind).chain(self.segments().step_by(2))
    }

    /// Whether it is of this full type, without regard to case.
    pub fn is_type(&self, resource_type: &str) -> bool {
        let mut wanted = resource_type.split('/');
        let same =
            self.type_parts().all(|part| wanted.next().is_some_and(|word| word.eq_ignore_ascii_case(part)));
        same && wanted.next().is_none()
    }

    /// Whether both are in the same subscription.
    pub fn same_subscription(&self, other: &Self) -> bool {
        same(self.subscription(), other.subscription())
    }

    /// Whether both are in the same resource group of the same subscription.
    pub fn same_resource_group(&self, other: &Self) -> bool {
        self.same_subscription(other) && same(self.resource_group(), other.resource_group())
    }
}

fn same(a: Option<&str>, b: Option<&str>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => compare(a, b).is_eq(),
        (None, None) => true,
        _ => false,
    }
}

/// Compares without regard to case; names outside ASCII are rare, and lowered as a whole.
fn compare(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        // Ids of one customer share most of their beginning: it is skipped a chunk at a time.
        const CHUNK: usize = 16;
        let (a, b) = (a.as_bytes(), b.as_bytes());
        let same =
            a.chunks_exact(CHUNK).zip(b.chunks_exact(CHUNK)).take_while(|(a, b)| a == b).count() * CHUNK;
        let (a, b) = (a.iter().skip(same), b.iter().skip(same));
        return a.map(u8::to_ascii_lowercase).cmp(b.map(u8::to_ascii_lowercase));
    }
    a.to_lowercase().cmp(&b.to_lowercase())
}

/// The first segment, and what follows it.
fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (text, None),
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl PartialEq for ResourceId {
    fn eq(&self, other: &Self) -> bool {
        compare(&self.text, &other.text).is_eq()
    }
}

impl Eq for ResourceId {}

impl PartialOrd for ResourceId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ResourceId {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.text, &other.text)
    }
}

impl Hash for ResourceId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_lower().hash(state);
    }
}

impl FromStr for ResourceId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::parse(text)
    }
}

impl Serialize for ResourceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for ResourceId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl serde::de::Visitor<'_> for Visitor {
            type Value = ResourceId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a resource ID")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ResourceId, E> {
                ResourceId::parse(text).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests;
