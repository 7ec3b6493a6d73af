//! What many objects share.

use serde::{Deserialize, Serialize};

use crate::Float;
use crate::wire::{Described, Member, Object, Shape};

objects! {
    /// A reference to an object that this API does not serve in full: a region, a cloud provider, a product.
    Reference {
        kind: String,
        id: String,
        href: String,
    }

    /// A number with a unit.
    Value {
        unit: String,
        value: Float,
    }

    /// Whether a cluster may be deleted.
    DeleteProtection {
        enabled: bool,
    }

    /// Answer of the root of an API.
    ApiMetadata {
        kind: String,
        id: String,
        href: String,
        server_version: String,
    }
}

impl Reference {
    /// A reference with its kind and id.
    pub fn new(kind: &str, id: &str) -> Self {
        Self { kind: Some(kind.to_owned()), id: Some(id.to_owned()), href: None }
    }
}

/// A collection inside an object: `{"items": […]}`, or a link with its address only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Items<T> {
    /// `<Kind>List`, or `<Kind>ListLink`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The address of the collection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub href: Option<String>,
    /// The members; absent in a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<T>>,
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self { kind: None, href: None, items: None }
    }
}

impl<T> Items<T> {
    /// The members themselves.
    pub fn of(items: Vec<T>) -> Self {
        Self { kind: None, href: None, items: Some(items) }
    }

    /// A link.
    pub fn link(kind: &str, href: String) -> Self {
        Self { kind: Some(format!("{kind}ListLink")), href: Some(href), items: None }
    }
}

impl<T: Described> Described for Items<T> {
    const SHAPE: &'static Shape = &Shape::Object(&Object {
        name: "",
        members: &[
            Member { raw_name: "kind", shape: &Shape::Text },
            Member { raw_name: "href", shape: &Shape::Text },
            Member { raw_name: "items", shape: &Shape::List(T::SHAPE) },
        ],
    });
}
