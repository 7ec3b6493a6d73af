//! The paths of a document: what can be done with each resource, and where.

use aro_kube_apimachinery::{GroupVersion, GroupVersionKind, ResourceType, Subresource};
use serde_json::{Map, Value, json};

use super::Described;
use super::components::{META, reference, resource_schema, schema_name};
use super::custom;

const ALL_TYPES: [&str; 3] = ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
const CUSTOM_TYPES: [&str; 2] = ["application/json", "application/yaml"];

const LIST: [(&str, &str); 11] = [
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("shardSelector", "string"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const WRITE: [(&str, &str); 3] =
    [("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const DELETE: [(&str, &str); 5] = [
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

pub fn of(version: &GroupVersion, types: &[Described<'_>]) -> Map<String, Value> {
    let base = format!("/{}", super::document_path(version));
    let mut paths = Map::new();
    if types.iter().any(|of| of.custom.is_none()) {
        paths.insert(format!("{base}/"), discovery(version));
    }
    for of in types {
        Writer { base: &base, version, resource: of.resource, list_kind: list_kind(of) }.write(&mut paths);
    }
    paths
}

fn list_kind(of: &Described<'_>) -> String {
    of.custom.map_or_else(|| format!("{}List", of.resource.gvk.kind), |custom| custom.list_kind.to_owned())
}

fn discovery(version: &GroupVersion) -> Value {
    let responses = answers(&[("200", "OK", &format!("{META}APIResourceList"))], &ALL_TYPES);
    json!({"get": {"tags": [tag(version)], "description": "get available resources",
        "operationId": format!("get{}APIResources", camel(version)), "responses": responses}})
}

/// Names and types.
type Parameters<'a> = &'a [(&'a str, &'a str)];
/// Codes, texts and schemas.
type Answers<'a> = &'a [(&'a str, &'a str, &'a str)];

struct Writer<'a> {
    base: &'a str,
    version: &'a GroupVersion,
    resource: &'a ResourceType,
    list_kind: String,
}

impl Writer<'_> {
    fn write(&self, paths: &mut Map<String, Value>) {
        let plural = &self.resource.plural;
        let scope = if self.resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("{}{scope}/{plural}", self.base);
        put(paths, collection.clone(), &self.collection(), false);
        if self.resource.namespaced && self.resource.allows("list") {
            let everywhere = self.operation("list", "", "ForAllNamespaces");
            put(paths, format!("{}/{plural}", self.base), &[("get", everywhere)], false);
        }
        let item = format!("{collection}/{{name}}");
        let verbs = [("get", "get"), ("put", "update"), ("patch", "patch"), ("delete", "delete")];
        let own: Vec<(&str, Value)> = verbs
            .iter()
            .filter(|(_, verb)| self.resource.allows(verb))
            .map(|(method, verb)| (*method, self.operation(verb, self.scope(), "")))
            .collect();
        put(paths, item.clone(), &own, true);
        for sub in &self.resource.subresources {
            let own = self.subresource(sub);
            put(paths, format!("{item}/{}", sub.name), &own, true);
        }
    }

    fn scope(&self) -> &'static str {
        if self.resource.namespaced { "Namespaced" } else { "" }
    }

    fn collection(&self) -> Vec<(&'static str, Value)> {
        let verbs = [("get", "list"), ("post", "create"), ("delete", "deletecollection")];
        let allowed = verbs.into_iter().filter(|(_, verb)| self.resource.allows(verb));
        allowed.map(|(method, verb)| (method, self.operation(verb, self.scope(), ""))).collect()
    }

    fn operation(&self, verb: &str, scope: &str, suffix: &str) -> Value {
        let kind = &self.resource.gvk.kind;
        let schema = resource_schema(self.resource);
        let list = if self.resource.custom {
            let gvk = &self.resource.gvk;
            custom::name(&GroupVersionKind::new(&*gvk.group, &*gvk.version, &*self.list_kind))
        } else {
            format!("{schema}List")
        };
        let status = format!("{META}Status");
        let group = camel(self.version);
        let (id, action, parameters, answer): (String, &str, Parameters<'_>, Answers<'_>) = match verb {
            "list" => (format!("list{group}{scope}{kind}{suffix}"), "list", &LIST, &[("200", "OK", &list)]),
            "create" => (
                format!("create{group}{scope}{kind}"),
                "post",
                &WRITE,
                &[("200", "OK", &schema), ("201", "Created", &schema), ("202", "Accepted", &schema)],
            ),
            "deletecollection" => (
                format!("delete{group}Collection{scope}{kind}"),
                "deletecollection",
                &LIST,
                &[("200", "OK", &status)],
            ),
            "get" => (format!("read{group}{scope}{kind}"), "get", &[], &[("200", "OK", &schema)]),
            "update" => (
                format!("replace{group}{scope}{kind}"),
                "put",
                &WRITE,
                &[("200", "OK", &schema), ("201", "Created", &schema)],
            ),
            "patch" => (
                format!("patch{group}{scope}{kind}"),
                "patch",
                &WRITE,
                &[("200", "OK", &schema), ("201", "Created", &schema)],
            ),
            _ => (
                format!("delete{group}{scope}{kind}"),
                "delete",
                &DELETE,
                &[("200", "OK", &status), ("202", "Accepted", &status)],
            ),
        };
        self.finish(id, action, verb, parameters, answer, &schema, &self.resource.gvk)
    }

    fn subresource(&self, sub: &Subresource) -> Vec<(&'static str, Value)> {
        let kind = &self.resource.gvk.kind;
        let schema = if sub.gvk == self.resource.gvk {
            resource_schema(self.resource)
        } else {
            // Connections (exec, log, proxy) answer with text.
            schema_name(&sub.gvk).unwrap_or_default()
        };
        let (group, scope) = (camel(self.version), self.scope());
        let name = upper_first(&sub.name);
        let verbs = [
            ("get", "get", "read", "get"),
            ("put", "update", "replace", "put"),
            ("patch", "patch", "patch", "patch"),
            ("post", "create", "create", "post"),
        ];
        let allowed = verbs.into_iter().filter(|(_, verb, ..)| sub.verbs.iter().any(|of| of == verb));
        allowed
            .map(|(method, verb, word, action)| {
                let id = format!("{word}{group}{scope}{kind}{name}");
                let parameters: Parameters<'_> = if verb == "get" { &[] } else { &WRITE };
                let both = [("200", "OK", &*schema), ("201", "Created", &*schema)];
                let answer = if verb == "get" { &both[..1] } else { &both[..] };
                (method, self.finish(id, action, verb, parameters, answer, &schema, &sub.gvk))
            })
            .collect()
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "an operation has that many parts, and only this file makes them"
    )]
    fn finish(
        &self,
        id: String,
        action: &str,
        verb: &str,
        parameters: Parameters<'_>,
        answer: Answers<'_>,
        schema: &str,
        gvk: &GroupVersionKind,
    ) -> Value {
        let types: &[&str] = if self.resource.custom { &CUSTOM_TYPES } else { &ALL_TYPES };
        let mut parameters: Vec<Value> = parameters.iter().map(|(name, kind)| query(name, kind)).collect();
        if verb == "patch" {
            parameters.push(query("force", "boolean"));
        }
        let mut operation = json!({
            "tags": [tag(self.version)],
            "operationId": id,
            "responses": answers(answer, types),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": gvk.group, "version": gvk.version, "kind": gvk.kind},
        });
        if !parameters.is_empty() {
            operation["parameters"] = Value::Array(parameters);
        }
        match verb {
            "create" | "update" => {
                operation["requestBody"] = json!({"content": content(schema, &["*/*"]), "required": true});
            }
            "delete" | "deletecollection" => {
                operation["requestBody"] =
                    json!({"content": content(&format!("{META}DeleteOptions"), &["*/*"])});
            }
            "patch" => {
                let mut kinds = vec![
                    "application/apply-patch+yaml",
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ];
                if !self.resource.custom {
                    kinds.push("application/strategic-merge-patch+json");
                }
                let body = content(&format!("{META}Patch"), &kinds);
                operation["requestBody"] = json!({"content": body, "required": true});
            }
            _ => {}
        }
        operation
    }
}

/// Adds the operations of a path, when there are any, with what all of them take.
fn put(paths: &mut Map<String, Value>, path: String, own: &[(&str, Value)], named: bool) {
    if own.is_empty() {
        return;
    }
    let mut item: Map<String, Value> =
        own.iter().map(|(method, of)| ((*method).to_owned(), of.clone())).collect();
    let mut parameters = Vec::new();
    let in_path = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}});
    if named {
        parameters.push(in_path("name"));
    }
    if path.contains("{namespace}") {
        parameters.push(in_path("namespace"));
    }
    parameters.push(query("pretty", "string"));
    item.insert("parameters".to_owned(), Value::Array(parameters));
    paths.insert(path, Value::Object(item));
}

fn query(name: &str, kind: &str) -> Value {
    json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
}

fn content(schema: &str, types: &[&str]) -> Value {
    let schema = if schema.is_empty() { json!({"type": "string"}) } else { reference(schema) };
    types.iter().map(|kind| ((*kind).to_owned(), json!({"schema": schema}))).collect::<Map<_, _>>().into()
}

fn answers(answers: Answers<'_>, types: &[&str]) -> Value {
    let answer = |(code, text, schema): &(&str, &str, &str)| {
        ((*code).to_owned(), json!({"description": text, "content": content(schema, types)}))
    };
    let mut all: Map<String, Value> = answers.iter().map(answer).collect();
    all.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    Value::Object(all)
}

fn upper_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A group as part of a name: without upstream's own domain, its parts run together.
fn group_words(group: &str) -> Vec<String> {
    let short = group.strip_suffix(".k8s.io").unwrap_or(group);
    if short.is_empty() {
        vec!["core".to_owned()]
    } else {
        short.split(['.', '-']).map(str::to_owned).collect()
    }
}

/// `AppsV1`, `RbacAuthorizationV1`
fn camel(version: &GroupVersion) -> String {
    let group: String = group_words(&version.group).iter().map(|word| upper_first(word)).collect();
    format!("{group}{}", upper_first(&version.version))
}

/// `apps_v1`, `rbacAuthorization_v1`
fn tag(version: &GroupVersion) -> String {
    let words = group_words(&version.group);
    let rest: String = words.iter().skip(1).map(|word| upper_first(word)).collect();
    format!("{}{rest}_{}", words.first().map_or("", String::as_str), version.version)
}
