//! Field numbers of Kubernetes' protobuf messages, read from the published modules (`k8s.io/api` and its kin).
//!
//! The table has one line per message and one per field: `number name kind type`. Kinds: `o` one value, `r` a list, `m` a
//! map from strings, `i` a member whose own members appear in its place (Go's embedded structs).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::Value;

const MODULES: [&str; 4] = ["api@", "apimachinery@", "apiextensions-apiserver@", "kube-aggregator@"];

/// Writes the table. `go` is the folder `k8s.io` of a Go module cache.
pub fn run(root: &Path, go: &Path) -> anyhow::Result<()> {
    let schemas = std::fs::read_to_string(root.join("crates/kube/types/gen/schemas.json"))?;
    let schemas: Value = serde_json::from_str(&schemas).context("schemas.json")?;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(go).with_context(|| format!("read {}", go.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if MODULES.iter().any(|module| name.starts_with(module)) {
            find(&path, &mut files)?;
        }
    }
    ensure!(!files.is_empty(), "no generated.proto below {}", go.display());
    let mut messages = BTreeMap::new();
    for file in files {
        read(&std::fs::read_to_string(&file)?, &mut messages);
    }
    let mut out = String::new();
    for (name, fields) in &messages {
        // Alpha and beta types are not served.
        if name.contains("alpha") || name.contains("beta") {
            continue;
        }
        writeln!(out, "{name}")?;
        let known = schemas.get(name).and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        for field in fields {
            let json = json_name(name, &field.name);
            let inline = field.kind == 'o'
                && field.ty.contains('.')
                && known.is_some_and(|known| !known.contains_key(json));
            let kind = if inline { 'i' } else { field.kind };
            writeln!(out, " {} {json} {kind} {}", field.number, field.ty)?;
        }
    }
    let path = root.join("crates/kube/protobuf/gen/messages.txt");
    std::fs::write(&path, out).with_context(|| format!("write {}", path.display()))
}

struct Field {
    number: u32,
    name: String,
    kind: char,
    ty: String,
}

fn find(dir: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.file_name().is_some_and(|name| name == "generated.proto") {
            files.push(path);
        }
    }
    Ok(())
}

/// `k8s.io.api.core.v1.Pod` is `io.k8s.api.core.v1.Pod` in OpenAPI.
fn openapi_name(name: &str) -> String {
    name.replacen("k8s.io.", "io.k8s.", 1).replace('_', "-")
}

fn read(text: &str, messages: &mut BTreeMap<String, Vec<Field>>) {
    let mut package = String::new();
    let mut message: Option<(String, Vec<Field>)> = None;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("package ") {
            package = openapi_name(name.trim_end_matches(';'));
        } else if let Some(name) = line.strip_prefix("message ") {
            message = Some((format!("{package}.{}", name.trim_end_matches('{').trim()), Vec::new()));
        } else if line == "}" {
            if let Some((name, fields)) = message.take() {
                messages.insert(name, fields);
            }
        } else if let Some((_, fields)) = &mut message {
            fields.extend(field(line, &package));
        }
    }
}

fn field(line: &str, package: &str) -> Option<Field> {
    let line = line.split("//").next()?.trim().strip_suffix(';')?;
    let (left, number) = line.rsplit_once('=')?;
    let number = number.trim().parse().ok()?;
    let (left, name) = left.trim().rsplit_once(' ')?;
    let (kind, ty) = match left.trim() {
        left if left.starts_with("optional ") => ('o', left.trim_start_matches("optional ").trim()),
        left if left.starts_with("repeated ") => ('r', left.trim_start_matches("repeated ").trim()),
        left if left.starts_with("map<") => {
            ('m', left.trim_start_matches("map<").trim_end_matches('>').split_once(',')?.1.trim())
        }
        _ => return None,
    };
    Some(Field { number, name: name.to_owned(), kind, ty: type_name(ty, package) })
}

fn type_name(ty: &str, package: &str) -> String {
    match ty {
        "string" | "int32" | "int64" | "bool" | "bytes" | "double" | "uint32" | "uint64" => ty.to_owned(),
        ty if ty.starts_with('.') => openapi_name(ty.trim_start_matches('.')),
        ty => format!("{package}.{ty}"),
    }
}

/// Members whose names in JSON are not those of the messages.
fn json_name<'a>(message: &str, name: &'a str) -> &'a str {
    if !message.ends_with(".JSONSchemaProps") {
        return name;
    }
    match name {
        "ref" => "$ref",
        "schema" => "$schema",
        "xPreserveUnknownFields" => "x-kubernetes-preserve-unknown-fields",
        "xEmbeddedResource" => "x-kubernetes-embedded-resource",
        "xIntOrString" => "x-kubernetes-int-or-string",
        "xListMapKeys" => "x-kubernetes-list-map-keys",
        "xListType" => "x-kubernetes-list-type",
        "xMapType" => "x-kubernetes-map-type",
        "xValidations" => "x-kubernetes-validations",
        other => other,
    }
}
