//! The built-in types, read once from the generated tables.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use aro_kube_apimachinery::{
    Definitions, GroupVersion, GroupVersionKind, GroupVersionResource, ResourceType, Schema, Subresource,
};
use serde_json::Value;

use crate::discovery::storage_version_hash;

static SCHEMAS: &str = include_str!("../gen/schemas.json");
static RESOURCES: &str = include_str!("../gen/resources.json");
static SHAPES: &str = include_str!("../gen/shapes.json");
static RBAC: &str = include_str!("../gen/rbac.json");

/// All built-in types.
#[derive(Debug)]
pub struct Builtin {
    definitions: Arc<Definitions>,
    resources: Vec<Arc<ResourceType>>,
    groups: Vec<Group>,
    by_gvr: HashMap<GroupVersionResource, Arc<ResourceType>>,
    by_gvk: HashMap<GroupVersionKind, Arc<ResourceType>>,
    names: HashMap<GroupVersionKind, String>,
}

/// A group with its versions, the preferred one first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Empty for the core group.
    pub name: String,
    pub versions: Vec<String>,
}

/// Kinds stored in another version than the one they are served in. Their hash shows the stored one.
const STORED_ELSEWHERE: [(&str, &str, &str, &str); 5] = [
    ("events.k8s.io", "Event", "", "v1"),
    ("autoscaling", "HorizontalPodAutoscaler", "autoscaling", "v2"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy", "admissionregistration.k8s.io", "v1beta1"),
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicyBinding",
        "admissionregistration.k8s.io",
        "v1beta1",
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition", "apiextensions.k8s.io", "v1beta1"),
];

static BUILTIN: LazyLock<Builtin> = LazyLock::new(Builtin::read);

static ROLES: LazyLock<Vec<Value>> = LazyLock::new(|| match parse(RBAC) {
    Value::Array(roles) => roles,
    _ => Vec::new(),
});

/// The built-in types. The first call reads the tables.
pub fn builtin() -> &'static Builtin {
    &BUILTIN
}

/// The schemas as they were written, for documents about them.
pub(crate) fn raw_schemas() -> Value {
    parse(SCHEMAS)
}

/// By definition: which members keep an explicit zero (`keep`), are null when absent (`null`), show a
/// zero (`zero`), or do not show the zero that is their default (`drop`).
pub(crate) fn shapes() -> Value {
    parse(SHAPES)
}

fn parse(table: &str) -> Value {
    serde_json::from_str(table).expect("a generated table is JSON; a test reads them all")
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    list(value, key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl Builtin {
    fn read() -> Self {
        let schemas = parse(SCHEMAS);
        let definitions =
            Definitions::from_openapi(&schemas).expect("generated schemas are sound; a test reads them");
        let mut all = Self {
            definitions: Arc::new(definitions),
            resources: Vec::new(),
            groups: Vec::new(),
            by_gvr: HashMap::new(),
            by_gvk: HashMap::new(),
            names: schema_names(&schemas),
        };
        for line in parse(RESOURCES).as_array().into_iter().flatten() {
            all.add(line);
        }
        all
    }

    /// One line of the table: a group version.
    fn add(&mut self, line: &Value) {
        let at = GroupVersion::new(text(line, "group"), text(line, "version"));
        match self.groups.last_mut() {
            Some(group) if group.name == at.group => group.versions.push(at.version.clone()),
            _ => self.groups.push(Group { name: at.group.clone(), versions: vec![at.version.clone()] }),
        }
        for entry in list(line, "resources") {
            let resource = Arc::new(self.resource(&at, entry));
            self.by_gvr.insert(resource.gvr(), Arc::clone(&resource));
            self.by_gvk.insert(resource.gvk.clone(), Arc::clone(&resource));
            self.resources.push(resource);
        }
    }

    fn resource(&self, at: &GroupVersion, entry: &Value) -> ResourceType {
        let gvk = at.with_kind(text(entry, "kind"));
        let reference = self.names.get(&gvk).cloned();
        let subresource = |sub: &Value| Subresource {
            name: text(sub, "name"),
            gvk: sub["apiVersion"]
                .as_str()
                .and_then(GroupVersion::parse)
                .unwrap_or_else(|| at.clone())
                .with_kind(text(sub, "kind")),
            verbs: texts(sub, "verbs"),
        };
        let verbs = texts(entry, "verbs");
        // What cannot be created is not stored, and what is only created (reviews) is not stored either.
        let stored = verbs.iter().any(|verb| verb == "create") && verbs.iter().any(|verb| verb == "get");
        ResourceType {
            plural: text(entry, "name"),
            singular: text(entry, "singular"),
            short_names: texts(entry, "short"),
            categories: texts(entry, "categories"),
            namespaced: entry["namespaced"] == true,
            subresources: list(entry, "subresources").iter().map(subresource).collect(),
            storage_version_hash: if stored { hash(&gvk) } else { String::new() },
            schema: Arc::new(Schema { reference, ..Schema::default() }),
            definitions: Arc::clone(&self.definitions),
            custom: false,
            verbs,
            gvk,
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

    /// The name in [`Self::definitions`] of any built-in kind, virtual ones too.
    pub fn definition_name(&self, gvk: &GroupVersionKind) -> Option<&str> {
        self.names.get(gvk).map(String::as_str)
    }

    /// Default roles and bindings as objects to create: `kind`, `metadata`, and rules or subjects. All are of
    /// `rbac.authorization.k8s.io/v1`.
    pub fn rbac(&self) -> &'static [Value] {
        &ROLES
    }
}

fn hash(gvk: &GroupVersionKind) -> String {
    let elsewhere =
        STORED_ELSEWHERE.iter().find(|(group, kind, ..)| *group == gvk.group && *kind == gvk.kind);
    match elsewhere {
        Some((_, kind, group, version)) => storage_version_hash(group, version, kind),
        None => storage_version_hash(&gvk.group, &gvk.version, &gvk.kind),
    }
}

/// Which schema describes which kind. Schemas shared by every group (options, watch events) describe none in particular.
fn schema_names(schemas: &Value) -> HashMap<GroupVersionKind, String> {
    let mut names = HashMap::new();
    for (name, schema) in schemas.as_object().into_iter().flatten() {
        if let [kind] = list(schema, "x-kubernetes-group-version-kind") {
            let gvk = GroupVersionKind::new(text(kind, "group"), text(kind, "version"), text(kind, "kind"));
            names.insert(gvk, name.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use aro_kube_apimachinery::schema::Kind;

    use super::*;

    #[test]
    fn every_resource_and_its_subresources_have_a_schema() {
        assert!(builtin().resources().len() > 60);
        for resource in builtin().resources() {
            assert_eq!(resource.typed().kind(), Kind::Object, "{}", resource.gvk);
            assert!(!resource.typed().preserves_unknown(), "{}", resource.gvk);
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn look(schema: &Schema, at: &str) {
            if let Some(name) = &schema.reference {
                assert!(builtin().definitions().get(name).is_some(), "{at} refers to {name}");
            }
            schema.properties.values().for_each(|below| look(below, at));
            schema.items.iter().for_each(|below| look(below, at));
        }
        builtin().definitions().iter().for_each(|(name, schema)| look(schema, name));
    }

    #[test]
    fn resources_are_found_by_name_and_by_kind() {
        let pods = GroupVersionResource::new("", "v1", "pods");
        let found = builtin().by_gvr(&pods).unwrap();
        assert_eq!(found.singular, "pod");
        assert!(Arc::ptr_eq(found, builtin().by_gvk(&GroupVersionKind::new("", "v1", "Pod")).unwrap()));
        assert_eq!(
            found.subresource("eviction").unwrap().gvk,
            GroupVersionKind::new("policy", "v1", "Eviction")
        );
        assert_eq!(found.storage_version_hash, "xPOwRZ+Yhw8=");
        assert!(builtin().by_gvr(&GroupVersionResource::new("", "v2", "pods")).is_none());
    }

    #[test]
    fn the_preferred_version_comes_first() {
        let group = builtin().groups().iter().find(|group| group.name == "autoscaling").unwrap();
        assert_eq!(group.versions, ["v2", "v1"]);
        assert_eq!(builtin().groups()[0].name, "");
    }

    #[test]
    fn default_roles_are_there() {
        let admin = builtin().rbac().iter().find(|role| role["metadata"]["name"] == "cluster-admin").unwrap();
        assert_eq!(admin["rules"][0]["verbs"][0], "*");
    }
}
