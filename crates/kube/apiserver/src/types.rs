//! Which resources a cluster serves: the built-in ones, shared by all, and those of its own definitions.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use aro_kube_apimachinery::{ResourceType, Typed, meta};
use aro_kube_crd::{CustomType, compile};
use aro_kube_types::registry::builtin;
use serde_json::Value;

/// A resource in one version, and where its objects are kept.
#[derive(Debug)]
pub struct Served {
    pub resource: Arc<ResourceType>,
    /// The watch cache of its objects. Versions of one resource share it.
    pub watch_cache: Box<str>,
    /// The `apiVersion` objects are stored in.
    pub stored_as: String,
    /// Whether that is another version than this one.
    converts: bool,
    pub custom: Option<CustomServed>,
}

#[derive(Debug)]
pub struct CustomServed {
    pub compiled: CustomType,
    /// `openAPIV3Schema` as written, for OpenAPI documents.
    pub schema: Option<Value>,
    pub list_kind: String,
    /// From `deprecated` and `deprecationWarning`.
    pub warning: Option<String>,
    /// Paths of fields that selectors may name.
    pub selectable: Vec<String>,
    /// The definition and generation it was compiled from.
    source: (String, i64),
}

impl Served {
    pub fn typed(&self) -> Typed<'_> {
        self.resource.typed()
    }

    pub fn list_kind(&self) -> String {
        match &self.custom {
            Some(custom) => custom.list_kind.clone(),
            None => format!("{}List", self.resource.gvk.kind),
        }
    }

    fn new(
        resource: Arc<ResourceType>,
        watch_cache: Box<str>,
        stored_as: String,
        custom: Option<CustomServed>,
    ) -> Arc<Self> {
        let converts = stored_as != resource.api_version();
        Arc::new(Self { resource, watch_cache, stored_as, converts, custom })
    }

    /// Whether objects are stored in another version than this one.
    pub fn converts(&self) -> bool {
        self.converts
    }

    fn is_from(&self, source: &(String, i64)) -> bool {
        self.custom.as_ref().is_some_and(|custom| custom.source == *source)
    }

    /// Whether this is the built-in resource of that name.
    pub fn is(&self, group: &str, plural: &str) -> bool {
        self.custom.is_none() && self.resource.gvk.group == group && self.resource.plural == plural
    }
}

fn key(group: &str, version: &str, plural: &str) -> String {
    format!("{group}/{version}/{plural}")
}

fn shelf_name(group: &str, plural: &str) -> Box<str> {
    if group.is_empty() { plural.into() } else { format!("{plural}.{group}").into() }
}

/// By plural: few resources share one, and looking up needs no key to be put together.
static BUILTIN: LazyLock<HashMap<&'static str, Vec<Arc<Served>>>> = LazyLock::new(|| {
    let serve = |resource: &Arc<ResourceType>| {
        let gvk = &resource.gvk;
        // Two groups show the same events; of two versions of autoscalers the newer is kept.
        let (group, stored_as) = match (gvk.group.as_str(), resource.plural.as_str()) {
            ("events.k8s.io", "events") => ("", "v1".to_owned()),
            ("autoscaling", _) => ("autoscaling", "autoscaling/v2".to_owned()),
            _ => (gvk.group.as_str(), gvk.api_version()),
        };
        let watch_cache = shelf_name(group, &resource.plural);
        Served::new(resource.clone(), watch_cache, stored_as, None)
    };
    let mut all: HashMap<&'static str, Vec<Arc<Served>>> = HashMap::new();
    for resource in builtin().resources() {
        all.entry(&resource.plural).or_default().push(serve(resource));
    }
    all
});

fn built_in(group: &str, version: &str, plural: &str) -> Option<&'static Arc<Served>> {
    BUILTIN.get(plural)?.iter().find(|served| {
        let gvk = &served.resource.gvk;
        gvk.group == group && gvk.version == version
    })
}

/// What one cluster serves at one moment.
#[derive(Debug, Default)]
pub struct Types {
    custom: BTreeMap<String, Arc<Served>>,
}

impl Types {
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Served>> {
        built_in(group, version, plural).or_else(|| {
            if self.custom.is_empty() { None } else { self.custom.get(&key(group, version, plural)) }
        })
    }

    /// The resource of a kind, for owner references and managed fields.
    pub fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Served>> {
        let wanted = aro_kube_apimachinery::GroupVersion::parse(api_version)?.with_kind(kind);
        if let Some(resource) = builtin().by_gvk(&wanted) {
            return built_in(&wanted.group, &wanted.version, &resource.plural);
        }
        self.custom.values().find(|served| served.resource.gvk == wanted)
    }

    /// Another version of the same resource.
    pub fn in_version(&self, served: &Served, api_version: &str) -> Option<&Arc<Served>> {
        let gv = aro_kube_apimachinery::GroupVersion::parse(api_version)?;
        self.find(&gv.group, &gv.version, &served.resource.plural)
    }

    /// Everything: built-in resources in their order, then custom ones by name.
    pub fn all(&self) -> impl Iterator<Item = Arc<Served>> + '_ {
        let built_in = builtin().resources().iter().filter_map(|resource| {
            built_in(&resource.gvk.group, &resource.gvk.version, &resource.plural).cloned()
        });
        built_in.chain(self.custom.values().cloned())
    }

    pub fn custom(&self) -> impl Iterator<Item = &Arc<Served>> {
        self.custom.values()
    }

    pub fn group_version_exists(&self, group: &str, version: &str) -> bool {
        self.all().any(|served| served.resource.gvk.group == group && served.resource.gvk.version == version)
    }

    /// What these definitions serve. Compiled types of definitions that did not change are taken over from `before`.
    pub fn of_definitions<'a>(definitions: impl IntoIterator<Item = &'a Value>, before: &Self) -> Self {
        let mut custom = BTreeMap::new();
        for crd in definitions {
            let source = (meta::uid(crd).to_owned(), meta::generation(crd));
            let known: Vec<Arc<Served>> =
                before.custom.values().filter(|known| known.is_from(&source)).cloned().collect();
            // What is served already may be about to be called established: it stays.
            if known.is_empty() && !is_established(crd) {
                continue;
            }
            let served = if known.is_empty() { compile_all(crd, &source) } else { known };
            for served in served {
                let gvk = &served.resource.gvk;
                custom.insert(key(&gvk.group, &gvk.version, &served.resource.plural), served);
            }
        }
        Self { custom }
    }
}

/// A definition is served once its names are accepted.
pub fn is_established(crd: &Value) -> bool {
    let conditions = meta::get(crd, &["status", "conditions"]).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        condition.get("type").and_then(Value::as_str) == Some("Established")
            && condition.get("status").and_then(Value::as_str) == Some("True")
    })
}

fn selectable_fields(version: &Value) -> Vec<String> {
    let fields = version.get("selectableFields").and_then(Value::as_array);
    let path = |field: &Value| field.get("jsonPath").and_then(Value::as_str).map(str::to_owned);
    fields.into_iter().flatten().filter_map(path).collect()
}

/// Every served version of a definition.
fn compile_all(crd: &Value, source: &(String, i64)) -> Vec<Arc<Served>> {
    let text = |path: &[&str]| meta::get(crd, path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let versions =
        meta::get(crd, &["spec", "versions"]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let flag = |version: &Value, name: &str| version.get(name).and_then(Value::as_bool).unwrap_or_default();
    let name = |version: &Value| version.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let group = text(&["spec", "group"]);
    let stored = versions.iter().find(|version| flag(version, "storage")).map(name).unwrap_or_default();
    let mut served = Vec::new();
    for version in versions.iter().filter(|version| flag(version, "served")) {
        match compile(crd, &name(version), builtin().definitions()) {
            Ok(compiled) => {
                let kind = compiled.resource().gvk.clone();
                let warning = flag(version, "deprecated").then(|| {
                    let given = version.get("deprecationWarning").and_then(Value::as_str);
                    given.map_or_else(
                        || format!("{} {} is deprecated", kind.api_version(), kind.kind),
                        str::to_owned,
                    )
                });
                let accepted = text(&["status", "acceptedNames", "listKind"]);
                let list_kind = if accepted.is_empty() { format!("{}List", kind.kind) } else { accepted };
                let resource = compiled.resource().clone();
                let watch_cache = shelf_name(&group, &resource.plural);
                let custom = CustomServed {
                    compiled,
                    schema: meta::get(version, &["schema", "openAPIV3Schema"]).cloned(),
                    list_kind,
                    warning,
                    selectable: selectable_fields(version),
                    source: source.clone(),
                };
                served.push(Served::new(resource, watch_cache, format!("{group}/{stored}"), Some(custom)));
            }
            Err(error) => {
                let crd = meta::name(crd);
                tracing::error!(crd, %error, "a CustomResourceDefinition cannot be served");
            }
        }
    }
    served
}
