//! One served version of a CustomResourceDefinition, compiled.

use std::sync::Arc;

use aro_kube_apimachinery::schema::{Additional, Kind, Schema, SchemaError};
use aro_kube_apimachinery::{Definitions, FieldError, GroupVersionKind, ResourceType, Subresource};
use base64::Engine as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::columns::{self, Column};
use crate::node::{Compiler, Node};
use crate::{defaults, prune, validate};

/// The name of the type of all metadata in [`Definitions`].
pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// One version of a custom type, ready for use on every write. Cheap to share behind an `Arc`.
#[derive(Debug)]
pub struct CustomType {
    resource: Arc<ResourceType>,
    root: Node,
    columns: Vec<Column>,
    scale: Option<ScalePaths>,
    conversion_strategy: String,
    unenforced: Vec<Unenforced>,
}

/// Why a definition cannot be compiled. An admitted one compiles.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct CompileError {
    pub path: String,
    pub problem: String,
}

/// Where the scale subresource reads and writes, as JSON paths (`.spec.replicas`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    pub spec: String,
    pub status: String,
    pub label_selector: Option<String>,
}

/// A rule that is not enforced, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unenforced {
    /// Where the rule stands: `spec.template.items`.
    pub path: String,
    pub rule: String,
    pub problem: String,
}

/// Compiles one version of an admitted definition. `definitions` holds the built-in types, among them
/// [`OBJECT_META`].
pub fn compile(
    crd: &Value,
    version: &str,
    definitions: &Arc<Definitions>,
) -> Result<CustomType, CompileError> {
    let spec = crd.get("spec").unwrap_or(&Value::Null);
    let found = spec
        .get("versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|v| text(v, "name") == version);
    let served = found.ok_or_else(|| problem("spec.versions", format!("there is no version {version:?}")))?;
    let mut schema = read_schema(served)?;
    let mut compiler = Compiler::default();
    let root = compiler.compile(&schema, &mut Vec::new());
    describe_objects(&mut schema, true);
    Ok(CustomType {
        resource: Arc::new(resource(spec, served, schema, definitions)),
        root,
        columns: columns::columns(served),
        scale: scale(served),
        conversion_strategy: spec
            .pointer("/conversion/strategy")
            .and_then(Value::as_str)
            .unwrap_or("None")
            .to_owned(),
        unenforced: compiler.unenforced,
    })
}

fn problem(path: &str, problem: impl Into<String>) -> CompileError {
    CompileError { path: path.to_owned(), problem: problem.into() }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    let list = value.get(key).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A version without a schema keeps everything.
fn read_schema(version: &Value) -> Result<Schema, CompileError> {
    let Some(schema) = version.pointer("/schema/openAPIV3Schema") else {
        return Ok(Schema { kind: Kind::Object, preserve_unknown: true, ..Schema::default() });
    };
    Schema::from_openapi(schema)
        .map_err(|SchemaError { path, problem }| CompileError { path: format!("schema.{path}"), problem })
}

/// Gives the root and embedded objects the members that all objects have.
fn describe_objects(schema: &mut Schema, root: bool) {
    if root || schema.embedded_resource {
        for name in ["apiVersion", "kind"] {
            let known = schema.properties.entry(name.to_owned()).or_default();
            known.kind = Kind::String;
        }
        let metadata = schema.properties.entry("metadata".to_owned()).or_default();
        *metadata = Schema { reference: Some(OBJECT_META.to_owned()), ..Schema::default() };
    }
    for (name, property) in &mut schema.properties {
        if !(root && name == "metadata") {
            describe_objects(property, false);
        }
    }
    if let Additional::Schema(additional) = &mut schema.additional {
        describe_objects(additional, false);
    }
    if let Some(items) = &mut schema.items {
        describe_objects(items, false);
    }
}

fn resource(spec: &Value, version: &Value, schema: Schema, definitions: &Arc<Definitions>) -> ResourceType {
    let names = spec.get("names").unwrap_or(&Value::Null);
    let gvk = GroupVersionKind::new(text(spec, "group"), text(version, "name"), text(names, "kind"));
    let singular = match text(names, "singular") {
        "" => gvk.kind.to_lowercase(),
        singular => singular.to_owned(),
    };
    let owned = |verbs: &[&str]| verbs.iter().map(|verb| (*verb).to_owned()).collect::<Vec<_>>();
    let mut subresources = Vec::new();
    let mut add = |name: &str, gvk: GroupVersionKind| {
        subresources.push(Subresource { name: name.to_owned(), gvk, verbs: owned(&SUBRESOURCE_VERBS) });
    };
    if version.pointer("/subresources/status").is_some() {
        add("status", gvk.clone());
    }
    if scale(version).is_some() {
        add("scale", GroupVersionKind::new("autoscaling", "v1", "Scale"));
    }
    ResourceType {
        plural: text(names, "plural").to_owned(),
        singular,
        short_names: texts(names, "shortNames"),
        categories: texts(names, "categories"),
        namespaced: text(spec, "scope") == "Namespaced",
        verbs: owned(&VERBS),
        subresources,
        storage_version_hash: storage_version_hash(spec, &gvk),
        schema: Arc::new(schema),
        definitions: Arc::clone(definitions),
        custom: true,
        gvk,
    }
}

/// A short digest of what is stored, by which clients see that the stored version changed.
fn storage_version_hash(spec: &Value, gvk: &GroupVersionKind) -> String {
    let versions = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
    let stored = versions
        .filter(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
        .map(|version| text(version, "name"))
        .next()
        .unwrap_or_default();
    let digest = Sha256::digest(format!("{}/{stored}/{}", gvk.group, gvk.kind));
    base64::engine::general_purpose::STANDARD.encode(&digest[..8])
}

fn scale(version: &Value) -> Option<ScalePaths> {
    let scale = version.pointer("/subresources/scale").filter(|scale| !scale.is_null())?;
    Some(ScalePaths {
        spec: text(scale, "specReplicasPath").to_owned(),
        status: text(scale, "statusReplicasPath").to_owned(),
        label_selector: scale.get("labelSelectorPath").and_then(Value::as_str).map(str::to_owned),
    })
}

impl CustomType {
    /// Names, verbs, subresources and schema, as discovery and server-side apply need them.
    pub fn resource(&self) -> &Arc<ResourceType> {
        &self.resource
    }

    /// Removes what the schema does not know and returns the paths, as the strict decoder names them (`spec.foo`,
    /// `spec.list[0].bar`): those of metadata first, then the rest, sorted. Also takes out nulls that are not allowed.
    /// To be called after [`Self::default`], as upstream does.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let meta = Schema { reference: Some(OBJECT_META.to_owned()), ..Schema::default() };
        prune::prune(object, &self.resource.schema, &meta, &self.resource.definitions)
    }

    /// Fills in the schema's defaults.
    pub fn default(&self, object: &mut Value) {
        defaults::apply(object, &self.resource.schema);
    }

    /// Everything that is wrong with an object, in upstream's order. With `old`, what was wrong before and did not
    /// change is tolerated, and transition rules run.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        validate::validate(&self.root, self.scale.as_ref(), new, old)
    }

    /// Rules that are not enforced.
    pub fn unenforced(&self) -> &[Unenforced] {
        &self.unenforced
    }

    /// Columns of tables, the name first.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    pub fn scale(&self) -> Option<&ScalePaths> {
        self.scale.as_ref()
    }

    pub fn has_status(&self) -> bool {
        self.resource.subresource("status").is_some()
    }

    /// `None` or `Webhook`.
    pub fn conversion_strategy(&self) -> &str {
        &self.conversion_strategy
    }
}
