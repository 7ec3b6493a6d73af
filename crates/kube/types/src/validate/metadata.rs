//! Metadata, which all kinds share.

use std::collections::BTreeSet;

use aro_kube_apimachinery::meta;
use serde_json::Value;

use super::format;
use super::path::{Found, IMMUTABLE, NOT_NEGATIVE, Path, entries, flag, list, member, text};

/// How objects of a kind may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    Subdomain,
    Label,
    Dns1035Label,
    PathSegment,
    /// Only what every name must be.
    Any,
}

impl NameRule {
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            Self::Subdomain => format::dns_subdomain(name),
            Self::Label => format::dns_label(name),
            Self::Dns1035Label => format::dns_1035_label(name),
            Self::PathSegment => format::path_segment(name),
            Self::Any => Vec::new(),
        }
    }

    /// What generated names begin with: the rest will end it well.
    fn check_prefix(self, prefix: &str) -> Vec<String> {
        match prefix.strip_suffix('-') {
            Some(stem) if self != Self::PathSegment => self.check(&format!("{stem}a")),
            _ => self.check(prefix),
        }
    }
}

const METADATA: Path<'static> = Path::new("metadata");
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// The metadata of a new object. Built-in types want finalizers to be standard or qualified; custom ones do not.
pub fn create(found: &mut Found, object: &Value, namespaced: bool, rule: NameRule, strict_finalizers: bool) {
    let metadata = &object["metadata"];
    let prefix = text(metadata, "generateName");
    if !prefix.is_empty() {
        found.texts(&METADATA.child("generateName"), prefix, rule.check_prefix(prefix));
    }
    let name = text(metadata, "name");
    if name.is_empty() {
        found.required(&METADATA.child("name"), "name or generateName is required");
    } else {
        found.texts(&METADATA.child("name"), name, rule.check(name));
    }
    let namespace = text(metadata, "namespace");
    let at = METADATA.child("namespace");
    match (namespaced, namespace) {
        (true, "") => found.required(&at, ""),
        (true, namespace) => found.texts(&at, namespace, format::dns_label(namespace)),
        (false, "") => {}
        (false, _) => found.forbidden(&at, "not allowed on this type"),
    }
    if meta::generation(object) < 0 {
        found.invalid(&METADATA.child("generation"), meta::generation(object), NOT_NEGATIVE);
    }
    common(found, metadata);
    finalizers(found, metadata, strict_finalizers);
}

/// A change of metadata. What the server sets itself (uid, times) is compared as well.
pub fn update(found: &mut Found, new: &Value, old: &Value, strict_finalizers: bool) {
    let (now, before) = (&new["metadata"], &old["metadata"]);
    if member(before, "deletionTimestamp").is_some() {
        no_new_finalizers(found, new, old);
    }
    for key in
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        let (value, was) = (member(now, key), member(before, key));
        if value != was {
            found.invalid(&METADATA.child(key), value.cloned().unwrap_or_default(), IMMUTABLE);
        }
    }
    common(found, now);
    if strict_finalizers {
        standard_finalizers(found, now);
    }
}

fn common(found: &mut Found, metadata: &Value) {
    labels(found, metadata, "labels", &METADATA.child("labels"));
    annotations(found, metadata, &METADATA.child("annotations"));
    owner_references(found, metadata);
}

pub fn labels(found: &mut Found, holder: &Value, key: &str, at: &Path<'_>) {
    for (key, value) in entries(holder, key) {
        found.texts(at, key, format::qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        found.texts(at, value, format::label_value(value));
    }
}

pub fn annotations(found: &mut Found, metadata: &Value, at: &Path<'_>) {
    let mut size = 0;
    for (key, value) in entries(metadata, "annotations") {
        size += key.len() + value.as_str().map_or(0, str::len);
        let lower = key.bytes().any(|byte| byte.is_ascii_uppercase());
        let wrong =
            if lower { format::qualified_name(&key.to_lowercase()) } else { format::qualified_name(key) };
        found.texts(at, key, wrong);
    }
    if size > MAX_ANNOTATIONS {
        found.too_long(&at.to_string(), MAX_ANNOTATIONS);
    }
}

fn owner_references(found: &mut Found, metadata: &Value) {
    let at = METADATA.child("ownerReferences");
    let all = list(metadata, "ownerReferences");
    let mut controller: Option<String> = None;
    for reference in all {
        let api_version = text(reference, "apiVersion");
        let version = api_version.rsplit('/').next().unwrap_or_default();
        if version.is_empty() {
            found.invalid(&at.child("apiVersion"), api_version, "version must not be empty");
        }
        for key in ["kind", "name", "uid"] {
            if text(reference, key).is_empty() {
                found.invalid(&at.child(key), "", "must not be empty");
            }
        }
        if api_version == "v1" && text(reference, "kind") == "Event" {
            found.invalid(&at, reference.clone(), "/v1, Kind=Event is disallowed from being an owner");
        }
        if flag(reference, "controller") {
            let name = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
            match &controller {
                None => controller = Some(name),
                Some(first) => {
                    let why = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                    );
                    found.invalid(&at, all.to_vec(), why);
                }
            }
        }
    }
}

fn finalizers(found: &mut Found, metadata: &Value, strict: bool) {
    let at = METADATA.child("finalizers");
    let names: Vec<&str> = list(metadata, "finalizers").iter().filter_map(Value::as_str).collect();
    for name in &names {
        found.texts(&at, name, format::qualified_name(name));
    }
    if names.contains(&"orphan") && names.contains(&"foregroundDeletion") {
        let all: Vec<Value> = names.iter().map(|name| (*name).into()).collect();
        found.invalid(&at, all, "finalizer orphan and foregroundDeletion cannot be both set");
    }
    if strict {
        standard_finalizers(found, metadata);
    }
}

fn standard_finalizers(found: &mut Found, metadata: &Value) {
    let at = METADATA.child("finalizers");
    for (index, name) in list(metadata, "finalizers").iter().filter_map(Value::as_str).enumerate() {
        if !is_standard_finalizer(name) {
            found.invalid(&at.index(index), name, NOT_STANDARD);
        }
    }
}

pub const NOT_STANDARD: &str = "name is neither a standard finalizer name nor is it fully qualified";

pub fn is_standard_finalizer(name: &str) -> bool {
    name.contains('/') || matches!(name, "kubernetes" | "orphan" | "foregroundDeletion")
}

fn no_new_finalizers(found: &mut Found, new: &Value, old: &Value) {
    let before: BTreeSet<&str> = meta::finalizers(old).collect();
    let extra: BTreeSet<&str> = meta::finalizers(new).filter(|name| !before.contains(name)).collect();
    if !extra.is_empty() {
        let shown = extra.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
        );
        found.forbidden(&METADATA.child("finalizers"), &why);
    }
}
