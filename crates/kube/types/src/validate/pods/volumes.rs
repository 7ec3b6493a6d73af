//! Volumes of a Pod.

use std::collections::HashSet;

use serde_json::Value;

use super::containers::{descending, no_backsteps};
use crate::quantity::Quantity;
use crate::validate::format;
use crate::validate::path::{Found, Path, list, member, number, text};

/// The names mounts can refer to.
pub fn volumes<'a>(found: &mut Found, volumes: &'a [Value], at: &Path<'_>) -> HashSet<&'a str> {
    let mut names = HashSet::new();
    for (index, volume) in volumes.iter().enumerate() {
        let at = at.index(index);
        let before = found.0.len();
        source(found, volume, &at);
        let name = text(volume, "name");
        if name.is_empty() {
            found.required(&at.child("name"), "");
        } else {
            found.texts(&at.child("name"), name, format::dns_label(name));
            if names.contains(name) {
                found.duplicate(&at.child("name"), name);
            }
        }
        if found.0.len() == before {
            names.insert(name);
        }
    }
    names
}

const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

/// Exactly one source, and a sound one.
pub fn source(found: &mut Found, volume: &Value, at: &Path<'_>) {
    let mut sources = 0;
    for (kind, source) in volume.as_object().into_iter().flatten() {
        if kind == "name" || !source.is_object() {
            continue;
        }
        sources += 1;
        let own = at.child(kind);
        if sources > 1 {
            found.forbidden(&own, "may not specify more than 1 volume type");
            continue;
        }
        match kind.as_str() {
            "emptyDir" => {
                let limit = text(source, "sizeLimit");
                if Quantity::parse(limit).is_some_and(|limit| limit.is_negative()) {
                    found.forbidden(
                        &own.child("sizeLimit"),
                        "SizeLimit field must be a valid resource quantity",
                    );
                }
            }
            "hostPath" => host_path(found, source, &own),
            "secret" => {
                required(found, source, "secretName", &own);
                files(found, source, &own);
            }
            "configMap" => {
                required(found, source, "name", &own);
                files(found, source, &own);
            }
            "downwardAPI" => mode(found, source, "defaultMode", &own),
            "projected" => projected(found, source, &own),
            "persistentVolumeClaim" => required(found, source, "claimName", &own),
            "csi" => required(found, source, "driver", &own),
            "nfs" => nfs(found, source, &own),
            _ => {}
        }
    }
    if sources == 0 {
        found.required(at, "must specify a volume type");
    }
}

fn required(found: &mut Found, source: &Value, key: &str, at: &Path<'_>) {
    if text(source, key).is_empty() {
        found.required(&at.child(key), "");
    }
}

pub fn host_path(found: &mut Found, source: &Value, at: &Path<'_>) {
    let path = text(source, "path");
    if path.is_empty() {
        found.required(&at.child("path"), "");
        return;
    }
    no_backsteps(found, path, &at.child("path"));
    if let Some(kind) = member(source, "type").and_then(Value::as_str) {
        found.one_of(&at.child("type"), kind, &HOST_PATH_TYPES);
    }
}

pub fn nfs(found: &mut Found, source: &Value, at: &Path<'_>) {
    required(found, source, "server", at);
    let path = text(source, "path");
    if path.is_empty() {
        found.required(&at.child("path"), "");
    } else if !path.starts_with('/') {
        found.invalid(&at.child("path"), path, "must be an absolute path");
    }
}

fn mode(found: &mut Found, holder: &Value, key: &str, at: &Path<'_>) {
    if let Some(mode) = number(holder, key).filter(|mode| !(0..=0o777).contains(mode)) {
        found.invalid(&at.child(key), mode, "must be a number between 0 and 0777 (octal), both inclusive");
    }
}

fn files(found: &mut Found, source: &Value, at: &Path<'_>) {
    mode(found, source, "defaultMode", at);
    items(found, source, at);
}

fn items(found: &mut Found, source: &Value, at: &Path<'_>) {
    for (index, item) in list(source, "items").iter().enumerate() {
        let all = at.child("items");
        let at = all.index(index);
        required(found, item, "key", &at);
        match text(item, "path") {
            "" => found.required(&at.child("path"), ""),
            path => descending(found, path, &at.child("path")),
        }
        mode(found, item, "mode", &at);
    }
}

fn projected(found: &mut Found, source: &Value, at: &Path<'_>) {
    mode(found, source, "defaultMode", at);
    for (index, part) in list(source, "sources").iter().enumerate() {
        let all = at.child("sources");
        let at = all.index(index);
        for kind in ["secret", "configMap"] {
            if let Some(reference) = member(part, kind) {
                let at = at.child(kind);
                required(found, reference, "name", &at);
                items(found, reference, &at);
            }
        }
        if let Some(token) = member(part, "serviceAccountToken") {
            let at = at.child("serviceAccountToken");
            if number(token, "expirationSeconds").is_some_and(|seconds| seconds < 600) {
                let seconds = number(token, "expirationSeconds").unwrap_or_default();
                found.invalid(
                    &at.child("expirationSeconds"),
                    seconds,
                    "may not specify a duration less than 10 minutes",
                );
            }
            required(found, token, "path", &at);
        }
    }
}
