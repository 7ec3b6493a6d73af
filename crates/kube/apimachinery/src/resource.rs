//! What a resource is: the same description for built-in and custom types.

use std::sync::Arc;

use crate::names::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
use crate::schema::{Definitions, Schema, Typed};

/// One resource in one version.
#[derive(Debug, Clone)]
pub struct ResourceType {
    pub gvk: GroupVersionKind,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    /// As discovery lists them, sorted.
    pub verbs: Vec<String>,
    pub subresources: Vec<Subresource>,
    /// Hash of the stored version, as discovery shows it in plain documents. May be empty.
    pub storage_version_hash: String,
    /// The root: an object with `apiVersion`, `kind`, `metadata` and the rest.
    pub schema: Arc<Schema>,
    /// What the schema's references point into.
    pub definitions: Arc<Definitions>,
    /// Made from a CustomResourceDefinition.
    pub custom: bool,
}

/// `status`, `scale`, `log`, …
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subresource {
    pub name: String,
    /// What it answers with; may be of another group (`autoscaling/v1, Kind=Scale`).
    pub gvk: GroupVersionKind,
    pub verbs: Vec<String>,
}

impl ResourceType {
    pub fn gvr(&self) -> GroupVersionResource {
        GroupVersionResource::new(&*self.gvk.group, &*self.gvk.version, &*self.plural)
    }

    pub fn group_version(&self) -> GroupVersion {
        self.gvk.group_version()
    }

    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&*self.gvk.group, &*self.plural)
    }

    pub fn group_kind(&self) -> GroupKind {
        self.gvk.group_kind()
    }

    pub fn api_version(&self) -> String {
        self.gvk.api_version()
    }

    pub fn typed(&self) -> Typed<'_> {
        Typed::new(&self.schema, &self.definitions)
    }

    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }
}
