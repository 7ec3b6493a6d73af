//! The built-in types, read once from the generated tables.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use aro_machinery::{Definitions, GroupVersionKind, GroupVersionResource, ResourceType};
use serde_json::Value;

/// All built-in types.
#[derive(Debug)]
pub struct Builtin {
    definitions: Arc<Definitions>,
    resources: Vec<Arc<ResourceType>>,
    groups: Vec<Group>,
    by_gvr: HashMap<GroupVersionResource, Arc<ResourceType>>,
    by_gvk: HashMap<GroupVersionKind, Arc<ResourceType>>,
    rbac: Vec<Value>,
}

/// A group with its versions, the preferred one first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Empty for the core group.
    pub name: String,
    pub versions: Vec<String>,
}

static BUILTIN: LazyLock<Builtin> = LazyLock::new(Builtin::read);

/// The built-in types. The first call reads the tables.
pub fn builtin() -> &'static Builtin {
    &BUILTIN
}

impl Builtin {
    fn read() -> Self {
        Self {
            definitions: Arc::default(),
            resources: Vec::new(),
            groups: Vec::new(),
            by_gvr: HashMap::new(),
            by_gvk: HashMap::new(),
            rbac: Vec::new(),
        }
    }

    /// Every schema of the built-in types, by its OpenAPI name (`io.k8s.api.core.v1.PodSpec`).
    pub fn definitions(&self) -> &Arc<Definitions> {
        &self.definitions
    }

    /// The resources that are served: groups in the order of discovery, within a version by name.
    pub fn resources(&self) -> &[Arc<ResourceType>] {
        &self.resources
    }

    /// The core group first, then in the order of discovery.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub fn by_gvr(&self, gvr: &GroupVersionResource) -> Option<&Arc<ResourceType>> {
        self.by_gvr.get(gvr)
    }

    /// Virtual kinds (`Scale`, `Eviction`, `DeleteOptions`) belong to no resource and are not found.
    pub fn by_gvk(&self, gvk: &GroupVersionKind) -> Option<&Arc<ResourceType>> {
        self.by_gvk.get(gvk)
    }

    /// Default roles and bindings as objects to create: `kind`, `metadata`, and rules or subjects.
    pub fn rbac(&self) -> &[Value] {
        &self.rbac
    }
}
