#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests

//! Helpers: definitions out of small schemas, and the real ones when they are at hand.
#![allow(dead_code)] // each test binary uses a part

use std::sync::Arc;

use aro_kube_apimachinery::Definitions;
use aro_kube_crd::{CustomType, compile};
use serde_json::{Value, json};

/// The built-in types that custom ones refer to, in small.
pub fn definitions() -> Arc<Definitions> {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let definitions = json!({
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "properties": {
            "name": text, "generateName": text, "namespace": text, "uid": text, "resourceVersion": text,
            "generation": {"type": "integer"}, "creationTimestamp": text, "labels": texts, "annotations": texts,
            "finalizers": {"type": "array", "items": text},
            "ownerReferences": {"type": "array", "items": {"type": "object", "required": ["name", "uid"],
                "properties": {"name": text, "uid": text, "controller": {"type": "boolean"}}}},
        }},
    });
    Arc::new(Definitions::from_openapi(&definitions).unwrap())
}

/// A type whose `spec` has the given properties.
pub fn with_spec(properties: Value) -> CustomType {
    of(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}))
}

pub fn of(schema: Value) -> CustomType {
    let crd = json!({"spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    compile(&crd, "v1", &definitions()).unwrap()
}

/// Admits an object as the server does: defaults, pruning, validation. Returns the aggregated message.
pub fn message(custom: &CustomType, object: &Value) -> String {
    let mut object = object.clone();
    custom.default(&mut object);
    custom.prune(&mut object);
    lines(&custom.validate(&object, None))
}

pub fn lines(errors: &[aro_kube_apimachinery::FieldError]) -> String {
    if errors.is_empty() { String::new() } else { aro_kube_apimachinery::status::aggregate(errors) }
}

/// CustomResourceDefinitions of real projects, with their file names.
pub fn real_definitions() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for folder in ["hypershift-crds", "ocm-crds", "ocm-crds/addon-v1beta1"] {
        let files = aro_prerequisites::specs(folder).map(std::fs::read_dir);
        let Some(Ok(files)) = files else { continue };
        for file in files.flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            if file.path().extension().is_some_and(|extension| extension == "yaml") {
                let text = std::fs::read_to_string(file.path()).unwrap();
                found.push((name, serde_saphyr::from_str(&text).unwrap()));
            }
        }
    }
    found
}
