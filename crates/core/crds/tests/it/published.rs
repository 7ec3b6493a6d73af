//! Our definitions say what the published ones say; every difference is listed here with its reason.

use std::collections::BTreeMap;

use aro_crds::definitions;
use serde_json::{Map, Value};

/// Paths that differ, and why.
const DIFFERENCES: [(&str, &str); 4] = [
    (
        "spec.preserveUnknownFields",
        "false is the default, and the only value this version of definitions allows",
    ),
    ("status.", "the server writes a definition's status, and drops one it is sent"),
    (".anyOf", "x-kubernetes-int-or-string says that already; a server treats both alike"),
    (".x-kubernetes-validations.message", "our own words"),
];

/// Words about words: not part of what a definition means.
const IGNORED: [&str; 1] = ["description"];

/// The published definitions, by name. `None` without the documents.
fn published() -> Option<BTreeMap<String, Value>> {
    let folder = aro_prerequisites::specs("ocm-crds")?;
    let read = |entry: std::fs::DirEntry| -> Option<(String, Value)> {
        let path = entry.path();
        (path.extension()? == "yaml").then_some(())?;
        let crd: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        Some((crd["metadata"]["name"].as_str()?.to_owned(), crd))
    };
    Some(std::fs::read_dir(folder).unwrap().map(Result::unwrap).filter_map(read).collect())
}

/// Every leaf of a definition by its path. Lists whose order means nothing are told apart by their values.
fn leaves(value: &Value, path: &str, into: &mut BTreeMap<String, Value>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    // Members of an object may well be called `description`.
    let names = path.ends_with(".properties");
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in
                members.iter().filter(|(name, _)| names || !IGNORED.contains(&name.as_str()))
            {
                leaves(member, &below(name), into);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let unordered = ["required", "enum"].iter().any(|end| path.rsplit('.').next() == Some(end));
            for (index, item) in items.iter().enumerate() {
                match item {
                    Value::Object(_) => {
                        leaves(item, &item["name"].as_str().map_or_else(|| path.to_owned(), &below), into);
                    }
                    _ if unordered => {
                        into.insert(below(&item.to_string()), Value::Bool(true));
                    }
                    _ => leaves(item, &below(&index.to_string()), into),
                }
            }
        }
        leaf => {
            let number = leaf.as_f64().map(Value::from);
            into.insert(path.to_owned(), number.unwrap_or_else(|| leaf.clone()));
        }
    }
}

/// Whether a listed part covers a path: `status.` at the beginning, others at the end or in the middle.
fn covers(part: &str, path: &str) -> bool {
    match part.strip_suffix('.') {
        Some(_) => path.starts_with(part),
        None => path.ends_with(part) || path.contains(&format!("{part}.")),
    }
}

#[test]
fn definitions_say_what_the_published_ones_say() {
    let Some(published) = published() else { return };
    let mut complaints = Vec::new();
    let mut used = [false; DIFFERENCES.len()];
    for ours in definitions() {
        let name = ours.name();
        // Those of HyperShift and of the secrets store are typed in part.
        if ["hypershift.openshift.io", "secrets-store.csi.x-k8s.io", "secret-sync.x-k8s.io"]
            .iter()
            .any(|group| name.ends_with(group))
        {
            continue;
        }
        let mut mine = BTreeMap::new();
        leaves(&serde_json::to_value(ours.object()).unwrap(), "", &mut mine);
        let mut theirs = BTreeMap::new();
        leaves(&published[name], "", &mut theirs);
        let mut paths: Vec<&String> = mine.keys().chain(theirs.keys()).collect();
        paths.sort();
        paths.dedup();
        for path in paths.into_iter().filter(|path| mine.get(*path) != theirs.get(*path)) {
            if let Some(index) = DIFFERENCES.iter().position(|(part, _)| covers(part, path)) {
                used[index] = true;
                continue;
            }
            complaints.push(format!(
                "{name}: {path}: ours {:?}, theirs {:?}",
                mine.get(path),
                theirs.get(path)
            ));
        }
    }
    for ((part, _), _) in DIFFERENCES.iter().zip(used).filter(|(_, used)| !used) {
        complaints.push(format!("listed, but differs nowhere: {part}"));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn definitions_come_back_from_their_documents() {
    for definition in definitions() {
        let text = definition.yaml().unwrap();
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, serde_json::to_value(definition.object()).unwrap(), "{text}");
    }
}

#[test]
fn every_member_is_described_in_words() {
    fn walk(schema: &Map<String, Value>, path: &str, silent: &mut Vec<String>) {
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let path = format!("{path}.{name}");
            if property.get("description").is_none() {
                silent.push(path.clone());
            }
            let below = property.get("items").unwrap_or(property);
            walk(below.as_object().unwrap(), &path, silent);
        }
    }
    let mut silent = Vec::new();
    for definition in definitions() {
        let object = serde_json::to_value(definition.object()).unwrap();
        for part in ["spec", "status"] {
            let schema = &object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part];
            let Some(schema) = schema.as_object() else { continue };
            walk(schema, &format!("{} {part}", definition.name()), &mut silent);
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
}
