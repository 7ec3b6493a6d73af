//! Tables of Kubernetes' built-in types, made from what a real API server answered about itself.
//!
//! Only names and rules are kept: descriptions come at run time from a crate that ships them. One definition, group
//! version or role per line, sorted, so that a new release reads well as a diff.

mod shapes;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Map, Value, json};

/// Where the tables live.
const OUT: &str = "crates/kube/types/gen";
/// Where the recorded answers are, as seen from the workspace.
pub const SPECS: &str = "../shared/specs/kube";

const KINDS: &str = "x-kubernetes-group-version-kind";

/// Writes the tables; with `check` only tells which ones differ.
pub fn run(root: &Path, specs: Option<&Path>, go: Option<&Path>, check: bool) -> anyhow::Result<Vec<String>> {
    let specs = specs.map_or_else(|| root.join(SPECS), Path::to_owned);
    if check && !specs.is_dir() {
        // The tables stand on their own; comparing them needs the recordings.
        let _ =
            writeln!(std::io::stderr(), "note: {} is absent, its tables are not compared", specs.display());
        return Ok(Vec::new());
    }
    let mut complaints = Vec::new();
    for (file, new) in tables(&specs, go)? {
        let path = root.join(OUT).join(file);
        let old = std::fs::read_to_string(&path).unwrap_or_default();
        if old == new {
        } else if check {
            complaints.push(format!("{OUT}/{file} is out of date; run `cargo xtask gen-kube-types`"));
        } else {
            std::fs::write(&path, new).with_context(|| format!("write {}", path.display()))?;
        }
    }
    Ok(complaints)
}

/// The files and what belongs into them. Shapes only with Go's declarations at hand: nothing recorded has them.
fn tables(specs: &Path, go: Option<&Path>) -> anyhow::Result<Vec<(&'static str, String)>> {
    let schemas = schemas(&documents(specs)?)?;
    check_list_semantics(&schemas, &read(&specs.join("list-semantics.json"))?)?;
    let (core, groups) =
        (read(&specs.join("discovery-api.json"))?, read(&specs.join("discovery-apis.json"))?);
    let lines = |table: &BTreeMap<String, Value>| object_lines(table.iter().map(|(name, of)| (&**name, of)));
    let mut tables = vec![
        ("schemas.json", lines(&schemas)),
        ("resources.json", array_lines(resources(&core, &groups)?.iter())),
        ("tables.json", columns(&read(&specs.join("tables.json"))?)?),
        ("rbac.json", array_lines(roles(&read(&specs.join("rbac-bootstrap.json"))?)?.iter())),
    ];
    if let Some(go) = go {
        tables.push(("shapes.json", lines(&shapes::table(go, &schemas)?)));
    }
    Ok(tables)
}

fn read(path: &Path) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("parse {}", path.display()))
}

/// The documents of all group versions.
fn documents(specs: &Path) -> anyhow::Result<Vec<Value>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(specs.join("openapi-v3"))
        .context("list openapi-v3")?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    files.iter().map(|path| read(path)).collect()
}

/// The union of all definitions. The same name must mean the same thing everywhere, but for the list of kinds: options
/// belong to every group, and each server knows only its own groups.
fn schemas(documents: &[Value]) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut all: BTreeMap<String, (Value, Vec<Value>)> = BTreeMap::new();
    for document in documents {
        let members = document.pointer("/components/schemas").and_then(Value::as_object);
        for (name, schema) in members.into_iter().flatten() {
            let mut schema = schema.clone();
            strip(&mut schema);
            let kinds = schema.as_object_mut().and_then(|schema| schema.remove(KINDS));
            let (known, all_kinds): &mut (Value, Vec<Value>) =
                all.entry(name.clone()).or_insert_with(|| (schema.clone(), Vec::new()));
            ensure!(*known == schema, "{name} differs between documents");
            for kind in kinds.iter().filter_map(Value::as_array).flatten() {
                if !all_kinds.contains(kind) {
                    all_kinds.push(kind.clone());
                }
            }
        }
    }
    let with_kinds = |(name, (mut schema, mut kinds)): (String, (Value, Vec<Value>))| {
        if !kinds.is_empty() {
            kinds.sort_by_key(|kind| [&kind["group"], &kind["version"], &kind["kind"]].map(Value::to_string));
            schema[KINDS] = Value::Array(kinds);
        }
        (name, schema)
    };
    Ok(all.into_iter().map(with_kinds).collect())
}

/// Takes the descriptions out of a schema. A property may be *called* description, so this follows the structure.
fn strip(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    members.retain(|key, _| key != "description");
    for (key, below) in members.iter_mut() {
        match (key.as_str(), below) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(strip),
            ("allOf" | "oneOf" | "anyOf", Value::Array(all)) => all.iter_mut().for_each(strip),
            ("items" | "additionalProperties" | "not", below) => strip(below),
            _ => {}
        }
    }
}

/// The separately recorded list semantics must say what the schemas say.
fn check_list_semantics(schemas: &BTreeMap<String, Value>, recorded: &Value) -> anyhow::Result<()> {
    for (name, fields) in recorded.as_object().context("list-semantics.json is an object")? {
        let schema = schemas.get(name).with_context(|| format!("{name} has no schema"))?;
        for (field, hints) in fields.as_object().into_iter().flatten() {
            let own = &schema["properties"][field];
            for (hint, value) in hints.as_object().into_iter().flatten() {
                ensure!(
                    own[hint] == *value,
                    "{name}.{field}: {hint} is {} but {value} was recorded",
                    own[hint]
                );
            }
        }
    }
    Ok(())
}

/// One line for each group version: the core group first, then as discovery orders them.
fn resources(core: &Value, groups: &Value) -> anyhow::Result<Vec<Value>> {
    let items = |document: &Value| document["items"].as_array().cloned().unwrap_or_default();
    let mut lines = Vec::new();
    for group in items(core).into_iter().chain(items(groups)) {
        let name = group.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        for version in group["versions"].as_array().into_iter().flatten() {
            let resources = version["resources"].as_array().into_iter().flatten().map(resource);
            lines.push(json!({"group": name, "version": version["version"],
                "resources": resources.collect::<anyhow::Result<Vec<_>>>()?}));
        }
    }
    Ok(lines)
}

fn resource(found: &Value) -> anyhow::Result<Value> {
    let mut line = json!({
        "name": found["resource"], "singular": found["singularResource"], "kind": found["responseKind"]["kind"],
        "namespaced": found["scope"] == "Namespaced", "verbs": found["verbs"],
    });
    for (from, to) in [("shortNames", "short"), ("categories", "categories")] {
        if let Some(names) = found.get(from) {
            line[to] = names.clone();
        }
    }
    let subresources = found.get("subresources").and_then(Value::as_array);
    let subresource = |sub: &Value| {
        let kind = &sub["responseKind"];
        let (group, version) = (kind["group"].as_str(), kind["version"].as_str());
        let (group, version) = group.zip(version).context("a response kind names its group and version")?;
        let mut line = json!({"name": sub["subresource"], "kind": kind["kind"], "verbs": sub["verbs"]});
        if !version.is_empty() {
            line["apiVersion"] = json!(format!("{group}/{version}"));
        }
        anyhow::Ok(line)
    };
    if let Some(subresources) = subresources {
        line["subresources"] = subresources.iter().map(subresource).collect::<anyhow::Result<Value>>()?;
    }
    Ok(line)
}

/// One line for each resource: columns as `[name, type, format, priority]`.
fn columns(recorded: &Value) -> anyhow::Result<String> {
    let mut lines = BTreeMap::new();
    for (resource, columns) in recorded.as_object().context("tables.json is an object")? {
        let (version, resource) =
            resource.rsplit_once('/').context("a resource is named with its version")?;
        let version = version.strip_prefix("core/").unwrap_or(version);
        let column = |of: &Value| json!([of["name"], of["type"], of["format"], of["priority"]]);
        let columns: Value = columns.as_array().into_iter().flatten().map(column).collect();
        lines.insert(format!("{version}/{resource}"), columns);
    }
    Ok(object_lines(lines.iter().map(|(name, columns)| (&**name, columns))))
}

/// Roles and bindings without what a server sets itself and without empty members.
fn roles(recorded: &Value) -> anyhow::Result<Vec<Value>> {
    let mut all = Vec::new();
    for object in recorded.as_array().context("rbac-bootstrap.json is a list")? {
        let Value::Object(members) = object else { bail!("a role is an object") };
        let present = |value: &Value| !value.is_null();
        let mut role: Map<String, Value> =
            members.iter().filter(|(_, value)| present(value)).map(|(k, v)| (k.clone(), v.clone())).collect();
        if let Some(Value::Object(metadata)) = role.get_mut("metadata") {
            metadata.retain(|_, value| present(value));
        }
        all.push(Value::Object(role));
    }
    let key = |role: &Value| {
        let text = |path| role.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        (text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
    };
    all.sort_by_key(key);
    Ok(all)
}

fn object_lines<'a>(members: impl Iterator<Item = (&'a str, &'a Value)>) -> String {
    let lines = members.map(|(name, value)| format!("{}:{value}", json!(name)));
    enclose("{", lines, "}")
}

fn array_lines<'a>(items: impl Iterator<Item = &'a Value>) -> String {
    enclose("[", items.map(Value::to_string), "]")
}

fn enclose(open: &str, lines: impl Iterator<Item = String>, close: &str) -> String {
    let mut text = open.to_owned();
    for (index, line) in lines.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(text, "{comma}\n{line}");
    }
    text.push('\n');
    text.push_str(close);
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_go_but_a_property_of_that_name_stays() {
        let mut schema = json!({"description": "x", "properties": {"description": {"type": "string", "description": "y"}}});
        strip(&mut schema);
        assert_eq!(schema, json!({"properties": {"description": {"type": "string"}}}));
    }

    #[test]
    fn the_same_name_must_mean_the_same_thing() {
        let document =
            |kind: &str| json!({"components": {"schemas": {"a": {"type": kind, "description": kind}}}});
        assert!(schemas(&[document("string"), document("string")]).is_ok());
        assert!(schemas(&[document("string"), document("object")]).is_err());
    }

    #[test]
    fn lines_are_valid_json() {
        let (one, two) = (json!({"x": 1}), json!([]));
        let text = object_lines([("a", &one), ("b", &two)].into_iter());
        assert_eq!(text, "{\n\"a\":{\"x\":1},\n\"b\":[]\n}\n");
        assert_eq!(array_lines(std::iter::empty()), "[\n]\n");
    }
}
