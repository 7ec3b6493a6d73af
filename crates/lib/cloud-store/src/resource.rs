//! A resource as a document.

use std::collections::BTreeSet;

use aro_base::Timestamp;
use aro_store::Kind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::secrets::ResourceSecret;

/// One ARM resource of the local cloud.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// The resource id: words in canonical case, names as they were first written.
    pub id: String,
    /// The ARM body without what is derived from the rest (`id`, `name`, `type`, `etag`, `provisioningState`).
    pub body: Map<String, Value>,
    /// When it was created.
    pub created: Timestamp,
    /// When it was last changed.
    pub changed: Timestamp,
    /// The object id of the principal that created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// The resources it refers to, ids in lower case. A resource that is referred to cannot be deleted.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub references: BTreeSet<String>,
    /// Its secrets; they are part of no answer but that of the action that asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<ResourceSecret>,
    /// The last long-running operation on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Whether its deletion was accepted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
}

/// A long-running operation on one resource. Its state follows from the clock, so that no task has to finish it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Names it in the URLs that clients poll.
    pub id: String,
    /// When it ends; `None` while it is stuck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settles: Option<Timestamp>,
    /// Whether it created the resource.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub creates: bool,
}

impl Operation {
    /// Whether it has ended.
    pub fn is_settled(&self, now: Timestamp) -> bool {
        self.settles.is_some_and(|settles| settles <= now)
    }
}

impl Resource {
    /// The member `properties`.
    pub fn properties(&self) -> Option<&Map<String, Value>> {
        self.body.get("properties").and_then(Value::as_object)
    }
}

/// How resources of a type are written and read. The type is part of every document, so that queries find them by it.
pub const fn kind_of(resource_type: &'static str) -> Kind<Resource> {
    Kind::new(resource_type)
}
