//! Resource ids: `/subscriptions/{s}/resourceGroups/{g}/providers/{ns}/{type}/{name}/{type}/{name}…`.
//!
//! Ids compare without regard to case and keep the case they were given, except for the words ARM owns
//! (`subscriptions`, `resourceGroups`, `providers`), which are always written the canonical way.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A parsed resource id.
#[derive(Clone)]
pub struct ResourceId {
    text: String,
    subscription: Option<String>,
    resource_group: Option<String>,
    /// Provider namespace and the type/name pairs below it; empty for a subscription or a resource group.
    namespace: Option<String>,
    pairs: Vec<(String, String)>,
}

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
        if text.chars().any(|c| c.is_control() || c == '?' || c == '#') {
            return Err(IdError::BadCharacter);
        }
        let rest = text.strip_prefix('/').ok_or(IdError::NoLeadingSlash)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let segments: Vec<&str> = rest.split('/').collect();
        if segments.iter().any(|segment| segment.is_empty()) {
            return Err(IdError::EmptySegment);
        }
        let mut left = segments.as_slice();
        let subscription = take_pair(&mut left, "subscriptions")?;
        let resource_group = match &subscription {
            Some(_) => take_pair(&mut left, "resourceGroups")?,
            None => None,
        };
        let namespace = take_pair(&mut left, "providers")?;
        if subscription.is_none() && namespace.is_none() {
            return Err(IdError::BadRoot);
        }
        let pairs = match &namespace {
            None if left.is_empty() => Vec::new(),
            None => return Err(IdError::BadRoot),
            Some(namespace) if left.is_empty() => return Err(IdError::NoType(namespace.clone())),
            Some(_) => left
                .chunks(2)
                .map(|pair| match pair {
                    [kind, name] => Ok(((*kind).to_owned(), (*name).to_owned())),
                    _ => Err(IdError::Unpaired(pair.concat())),
                })
                .collect::<Result<_, _>>()?,
        };
        Ok(Self::assemble(subscription, resource_group, namespace, pairs))
    }

    /// The id of a subscription.
    pub fn of_subscription(subscription: &str) -> Self {
        Self::assemble(Some(subscription.to_owned()), None, None, Vec::new())
    }

    /// The id of a resource directly below a subscription, e.g. an operation status.
    pub fn in_subscription(subscription: &str, namespace: &str, pairs: &[(&str, &str)]) -> Self {
        let pairs = pairs.iter().map(|(kind, name)| ((*kind).to_owned(), (*name).to_owned())).collect();
        Self::assemble(Some(subscription.to_owned()), None, Some(namespace.to_owned()), pairs)
    }

    /// The id of a resource in a resource group.
    pub fn in_group(
        subscription: &str,
        resource_group: &str,
        namespace: &str,
        pairs: &[(&str, &str)],
    ) -> Self {
        let pairs = pairs.iter().map(|(kind, name)| ((*kind).to_owned(), (*name).to_owned())).collect();
        Self::assemble(
            Some(subscription.to_owned()),
            Some(resource_group.to_owned()),
            Some(namespace.to_owned()),
            pairs,
        )
    }

    /// The id of a resource below this one.
    pub fn child(&self, kind: &str, name: &str) -> Self {
        let mut pairs = self.pairs.clone();
        pairs.push((kind.to_owned(), name.to_owned()));
        Self::assemble(self.subscription.clone(), self.resource_group.clone(), self.namespace.clone(), pairs)
    }

    /// The resource this one is nested in, if it is nested in a resource.
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.pairs.split_last()?;
        if above.is_empty() {
            return None;
        }
        Some(Self::assemble(
            self.subscription.clone(),
            self.resource_group.clone(),
            self.namespace.clone(),
            above.to_vec(),
        ))
    }

    fn assemble(
        subscription: Option<String>,
        resource_group: Option<String>,
        namespace: Option<String>,
        pairs: Vec<(String, String)>,
    ) -> Self {
        let mut text = String::with_capacity(128);
        let mut add = |word: &str, value: &str| {
            text.push('/');
            text.push_str(word);
            text.push('/');
            text.push_str(value);
        };
        if let Some(subscription) = &subscription {
            add("subscriptions", subscription);
        }
        if let Some(resource_group) = &resource_group {
            add("resourceGroups", resource_group);
        }
        if let Some(namespace) = &namespace {
            add("providers", namespace);
        }
        for (kind, name) in &pairs {
            add(kind, name);
        }
        Self { text, subscription, resource_group, namespace, pairs }
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
        self.subscription.as_deref()
    }

    pub fn resource_group(&self) -> Option<&str> {
        self.resource_group.as_deref()
    }

    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The last name: of the resource, or of the resource group or subscription when there is no resource.
    pub fn name(&self) -> &str {
        self.pairs
            .last()
            .map(|(_, name)| name.as_str())
            .or(self.resource_group.as_deref())
            .or(self.subscription.as_deref())
            .unwrap_or_default()
    }

    /// The full type, e.g. `Microsoft.Network/virtualNetworks/subnets`.
    pub fn resource_type(&self) -> String {
        match (&self.namespace, &self.resource_group) {
            (Some(namespace), _) => self.pairs.iter().fold(namespace.clone(), |mut text, (kind, _)| {
                text.push('/');
                text.push_str(kind);
                text
            }),
            (None, Some(_)) => "Microsoft.Resources/resourceGroups".to_owned(),
            (None, None) => "Microsoft.Resources/subscriptions".to_owned(),
        }
    }

    /// Whether it is of this full type, without regard to case.
    pub fn is_type(&self, resource_type: &str) -> bool {
        self.resource_type().eq_ignore_ascii_case(resource_type)
    }

    /// Whether both are in the same subscription.
    pub fn same_subscription(&self, other: &Self) -> bool {
        same(self.subscription.as_deref(), other.subscription.as_deref())
    }

    /// Whether both are in the same resource group of the same subscription.
    pub fn same_resource_group(&self, other: &Self) -> bool {
        self.same_subscription(other) && same(self.resource_group.as_deref(), other.resource_group.as_deref())
    }
}

fn same(a: Option<&str>, b: Option<&str>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.to_lowercase() == b.to_lowercase(),
        (None, None) => true,
        _ => false,
    }
}

fn take_pair(left: &mut &[&str], word: &str) -> Result<Option<String>, IdError> {
    match left {
        [first, rest @ ..] if first.eq_ignore_ascii_case(word) => match rest {
            [value, rest @ ..] => {
                *left = rest;
                Ok(Some((*value).to_owned()))
            }
            [] => Err(IdError::Unpaired((*first).to_owned())),
        },
        _ => Ok(None),
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
        self.to_lower() == other.to_lower()
    }
}

impl Eq for ResourceId {}

impl PartialOrd for ResourceId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ResourceId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.to_lower().cmp(&other.to_lower())
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
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
