//! What OpenAPI does not say about Kubernetes' types: which members keep an explicit zero, and which are always there.
//!
//! Upstream's types are Go structs, and what a server answers with went through one. A member that is no pointer cannot
//! tell "absent" from zero, so an explicit `false` or `""` disappears; one that is never left out shows up as `null` or
//! zero. Both follow from the declarations, read here line by line: only their shape is used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Map, Value, json};

/// Modules with types, as folders in a Go module cache's `k8s.io`, and the name their definitions begin with.
const MODULES: [(&str, &str, &str); 4] = [
    ("api@", "", "io.k8s.api"),
    ("apimachinery@", "pkg/apis/meta", "io.k8s.apimachinery.pkg.apis.meta"),
    (
        "apiextensions-apiserver@",
        "pkg/apis/apiextensions",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    ),
    ("kube-aggregator@", "pkg/apis/apiregistration", "io.k8s.kube-aggregator.pkg.apis.apiregistration"),
];

/// One member of a struct.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    json: String,
    kind: String,
    omit_empty: bool,
    omit_zero: bool,
}

/// A struct: its own members, and the structs whose members it takes over.
#[derive(Debug, Default, Clone)]
struct Struct {
    fields: Vec<Field>,
    inlined: Vec<String>,
}

/// One object for each definition that has something to say: `keep` lists members that keep an explicit zero, `null`
/// those that are null when absent, `zero` those of special types that show their zero, and `drop` those that do not
/// show the zero their schema names as default.
pub fn table(go: &Path, schemas: &BTreeMap<String, Value>) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut structs = BTreeMap::new();
    for (module, below, prefix) in MODULES {
        let root = newest(go, module)?.join(below);
        for (folder, files) in type_files(&root)? {
            let prefix = format!("{prefix}.{}", folder.replace('/', "."));
            for file in files {
                let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
                parse(&text, &prefix, &mut structs);
            }
        }
    }
    let mut table = BTreeMap::new();
    for (name, schema) in schemas {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { continue };
        let shape = shape(&fields(name, &structs, 0), properties);
        if !shape.is_empty() {
            table.insert(name.clone(), Value::Object(shape));
        }
    }
    Ok(table)
}

/// The folder of a module; the last one when there are several versions.
fn newest(go: &Path, module: &str) -> anyhow::Result<PathBuf> {
    let entries = std::fs::read_dir(go).with_context(|| format!("list {}", go.display()))?;
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let matching =
        paths.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(module)));
    matching.max().with_context(|| format!("{module} is not in {}", go.display()))
}

/// `types*.go` by folder, one and two levels deep (`v1`, `core/v1`).
fn type_files(root: &Path) -> anyhow::Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let mut folders = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && depth < 2 {
                folders.push((path, depth + 1));
            } else if name.starts_with("types") && path.extension().is_some_and(|end| end == "go") {
                let below = folder.strip_prefix(root).unwrap_or(&folder).to_string_lossy().into_owned();
                found.entry(below).or_default().push(path);
            }
        }
    }
    Ok(found)
}

fn parse(text: &str, prefix: &str, structs: &mut BTreeMap<String, Struct>) {
    let mut current: Option<(String, Struct)> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("type ")
            && let Some(name) = rest.strip_suffix(" struct {")
        {
            current = Some((format!("{prefix}.{name}"), Struct::default()));
        } else if line == "}" {
            structs.extend(current.take());
        } else if let Some((_, of)) = &mut current {
            read_field(line.trim(), prefix, of);
        }
    }
}

fn read_field(line: &str, prefix: &str, of: &mut Struct) {
    let Some((declared, tag)) = line.split_once('`').filter(|_| !line.starts_with("//")) else { return };
    let Some(tag) = tag.split_once("json:\"").and_then(|(_, rest)| rest.split_once('"')) else { return };
    let mut options = tag.0.split(',');
    let json = options.next().unwrap_or_default();
    let options: BTreeSet<&str> = options.collect();
    let mut words = declared.split_whitespace();
    let (first, kind) = (words.next().unwrap_or_default(), words.collect::<String>());
    if options.contains("inline") || (json.is_empty() && kind.is_empty()) {
        // Embedded types of other packages (TypeMeta) are strings only and need no care.
        let name = if kind.is_empty() { first } else { &kind };
        of.inlined.push(format!("{prefix}.{name}"));
    } else if json != "-" {
        of.fields.push(Field {
            json: json.to_owned(),
            kind,
            omit_empty: options.contains("omitempty"),
            omit_zero: options.contains("omitzero"),
        });
    }
}

fn fields(name: &str, structs: &BTreeMap<String, Struct>, depth: usize) -> Vec<Field> {
    let Some(of) = structs.get(name).filter(|_| depth < 4) else { return Vec::new() };
    let inlined = of.inlined.iter().flat_map(|name| fields(name, structs, depth + 1));
    of.fields.iter().cloned().chain(inlined).collect()
}

fn shape(fields: &[Field], properties: &Map<String, Value>) -> Map<String, Value> {
    let [mut drop, mut keep, mut null, mut zero] = [const { BTreeSet::new() }; 4];
    for field in fields {
        let Some(property) = properties.get(&field.json) else { continue };
        let pointer = field.kind.starts_with('*');
        let listed = field.kind.starts_with('[') || field.kind.starts_with("map[");
        let collection = listed || matches!(property["type"].as_str(), Some("array" | "object"));
        let special = ["Quantity", "IntOrString", "Time", "MicroTime"]
            .iter()
            .any(|name| field.kind.rsplit('.').next() == Some(name) && !pointer && !listed);
        if special && !field.omit_zero {
            zero.insert(&field.json);
        } else if pointer && field.omit_empty && property.get("type").is_some() {
            keep.insert(&field.json);
        } else if !field.omit_empty && !field.omit_zero && (pointer || collection) {
            null.insert(&field.json);
        } else if field.omit_empty
            && !pointer
            && [json!(0), json!(""), json!(false)].contains(&property["default"])
        {
            drop.insert(&field.json);
        }
    }
    let lists = [("drop", drop), ("keep", keep), ("null", null), ("zero", zero)];
    lists
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(key, list)| (key.to_owned(), json!(list)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: &str = "
// A is documented `json:\"not,omitempty\"`
type A struct {
	metav1.TypeMeta `json:\",inline\"`
	B               `json:\",inline\" protobuf:\"x\"`
	// Replicas: `json:\"replicas\"`
	Replicas *int32 `json:\"replicas,omitempty\"`
	Paused   bool   `json:\"paused,omitempty\"`
	Rules    []Rule `json:\"rules\"`
	When     metav1.Time `json:\"when,omitempty\"`
	Made     metav1.Time `json:\"made,omitempty,omitzero\"`
}
type B struct {
	Mode *string `json:\"mode,omitempty\"`
}
";

    #[test]
    fn pointers_keep_zero_and_required_lists_are_null() {
        let mut structs = BTreeMap::new();
        parse(TYPES, "p.v1", &mut structs);
        let text = json!({"type": "string"});
        let properties = json!({"replicas": {"type": "integer"}, "paused": {"type": "boolean"},
            "rules": {"type": "array"}, "when": text, "made": text, "mode": text});
        let shape = shape(&fields("p.v1.A", &structs, 0), properties.as_object().unwrap());
        assert_eq!(json!(shape), json!({"keep": ["mode", "replicas"], "null": ["rules"], "zero": ["when"]}));
    }
}
