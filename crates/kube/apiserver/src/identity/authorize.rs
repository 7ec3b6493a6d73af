//! What a caller may do: roles and their bindings.
//!
//! Bindings are indexed by subject. Roles and bindings are parsed once per version of each, so a change costs what changed.

use std::collections::HashMap;
use std::sync::Arc;

use aro_kube_apimachinery::meta;
use parking_lot::Mutex;
use serde_json::Value;

use super::nodes;
use super::rules::Rule;
use super::user::{MASTERS, User};
use crate::cluster::Cluster;
use crate::storage::{Stored, WatchCache};

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Attributes<'a> {
    pub verb: &'a str,
    /// For resources.
    pub group: &'a str,
    pub version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// The field selector of a collection, as it was sent.
    pub fields: &'a str,
    /// For everything else; empty for resources.
    pub path: &'a str,
}

/// Yes or no, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub allowed: bool,
    pub reason: String,
}

const RESOURCES: [&str; 4] = [
    "clusterroles.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
];

/// What a cluster's roles and bindings say, as of some versions of them.
#[derive(Debug, Default)]
pub struct Roles {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    versions: Option<[u64; 4]>,
    parsed: HashMap<(usize, Arc<str>), (u64, Parsed)>,
    compiled: Arc<Compiled>,
}

#[derive(Debug, Clone)]
enum Parsed {
    Role(Arc<Vec<Rule>>),
    Binding(Arc<Binding>),
}

#[derive(Debug)]
struct Binding {
    name: String,
    /// Empty for the whole cluster.
    namespace: String,
    role_kind: String,
    role: String,
    subjects: Vec<Subject>,
}

#[derive(Debug)]
struct Subject {
    kind: SubjectKind,
    name: String,
}

#[derive(Debug, Clone, Copy)]
enum SubjectKind {
    User,
    Group,
}

#[derive(Debug, Default)]
struct Compiled {
    of_users: HashMap<String, Vec<Arc<Binding>>>,
    of_groups: HashMap<String, Vec<Arc<Binding>>>,
    /// `name` of cluster roles, `namespace/name` of roles.
    roles: HashMap<String, Arc<Vec<Rule>>>,
}

fn parse(place: usize, object: &Value) -> Parsed {
    if place < 2 {
        let rules = object.get("rules").cloned().unwrap_or_default();
        return Parsed::Role(Arc::new(serde_json::from_value(rules).unwrap_or_default()));
    }
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let subjects = object.get("subjects").and_then(Value::as_array).into_iter().flatten();
    let subjects = subjects.map(|subject| match text(subject, "kind").as_str() {
        "Group" => Subject { kind: SubjectKind::Group, name: text(subject, "name") },
        "ServiceAccount" => {
            let mut namespace = text(subject, "namespace");
            if namespace.is_empty() {
                meta::namespace(object).clone_into(&mut namespace);
            }
            let name = format!("system:serviceaccount:{namespace}:{}", text(subject, "name"));
            Subject { kind: SubjectKind::User, name }
        }
        _ => Subject { kind: SubjectKind::User, name: text(subject, "name") },
    });
    let role = object.get("roleRef").cloned().unwrap_or_default();
    Parsed::Binding(Arc::new(Binding {
        name: meta::name(object).to_owned(),
        namespace: meta::namespace(object).to_owned(),
        role_kind: text(&role, "kind"),
        role: text(&role, "name"),
        subjects: subjects.collect(),
    }))
}

impl Roles {
    fn compiled(&self, cluster: &Cluster) -> Arc<Compiled> {
        let watch_caches: [Arc<WatchCache>; 4] = RESOURCES.map(|name| cluster.store.watch_cache(name));
        let versions = [0, 1, 2, 3]
            .map(|place: usize| watch_caches.get(place).map_or(0, |watch_cache| watch_cache.version()));
        let mut kept = self.kept.lock();
        if kept.versions == Some(versions) {
            return kept.compiled.clone();
        }
        let mut before = std::mem::take(&mut kept.parsed);
        let mut compiled = Compiled::default();
        for (place, watch_cache) in watch_caches.iter().enumerate() {
            for stored in watch_cache.all() {
                let key = (place, stored.key.clone());
                let parsed = match before.remove(&key) {
                    Some((version, parsed)) if version == stored.version => parsed,
                    _ => parse(place, &stored.value()),
                };
                compiled.add(&stored, &parsed);
                kept.parsed.insert(key, (stored.version, parsed));
            }
        }
        kept.compiled = Arc::new(compiled);
        kept.versions = Some(versions);
        kept.compiled.clone()
    }
}

impl Compiled {
    fn add(&mut self, stored: &Stored, parsed: &Parsed) {
        match parsed {
            Parsed::Role(rules) => {
                self.roles.insert(stored.key.to_string(), rules.clone());
            }
            Parsed::Binding(binding) => {
                for Subject { kind, name } in &binding.subjects {
                    let subjects = match kind {
                        SubjectKind::User => &mut self.of_users,
                        SubjectKind::Group => &mut self.of_groups,
                    };
                    subjects.entry(name.clone()).or_default().push(binding.clone());
                }
            }
        }
    }

    fn rules(&self, binding: &Binding) -> Option<&Arc<Vec<Rule>>> {
        if binding.role_kind == "ClusterRole" {
            self.roles.get(&binding.role)
        } else {
            self.roles.get(&format!("{}/{}", binding.namespace, binding.role))
        }
    }

    /// Bindings that concern a user in a namespace, each with the subject that matched.
    fn bindings<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<Binding>, SubjectKind, &'a str)> {
        let own = (SubjectKind::User, user.name.as_str(), self.of_users.get(&user.name));
        let groups = user.groups.iter();
        let groups = groups.map(|name| (SubjectKind::Group, name.as_str(), self.of_groups.get(name)));
        std::iter::once(own).chain(groups).flat_map(move |(kind, name, found)| {
            let here =
                move |binding: &&Arc<Binding>| binding.namespace.is_empty() || binding.namespace == namespace;
            found.into_iter().flatten().filter(here).map(move |binding| (binding, kind, name))
        })
    }
}

/// Decides, and says why.
pub fn authorize(cluster: &Arc<Cluster>, user: &User, asked: &Attributes<'_>) -> Decision {
    match decide(cluster, user, asked, allowed_by) {
        Ok(because) => Decision { allowed: true, reason: because.unwrap_or_default() },
        Err(reason) => Decision { allowed: false, reason },
    }
}

/// Decides. The error is the reason for a refusal; a grant carries no reason.
pub fn allow(cluster: &Arc<Cluster>, user: &User, asked: &Attributes<'_>) -> Result<(), String> {
    decide(cluster, user, asked, |_, _, _| ()).map(|_| ())
}

/// Decides. What allows it is `because` of its binding, kind of subject and subject; `None` needs no binding.
fn decide<T>(
    cluster: &Arc<Cluster>,
    user: &User,
    asked: &Attributes<'_>,
    because: impl FnOnce(&Binding, SubjectKind, &str) -> T,
) -> Result<Option<T>, String> {
    if user.is_in(MASTERS) {
        return Ok(None);
    }
    let node = nodes::node_of(user).map(|node| nodes::decide(cluster, node, asked));
    let node = match node {
        Some(Ok(())) => return Ok(None),
        Some(Err(why)) => why,
        None => String::new(),
    };
    let compiled = cluster.roles.compiled(cluster);
    let mut problems: Vec<String> = Vec::new();
    for (binding, kind, name) in compiled.bindings(user, asked.namespace) {
        let Some(rules) = compiled.rules(binding) else {
            let kind = if binding.role_kind == "ClusterRole" { "clusterrole" } else { "role" };
            problems.push(format!("{kind}.rbac.authorization.k8s.io {:?} not found", binding.role));
            continue;
        };
        if rules.iter().any(|rule| rule.allows(asked)) {
            return Ok(Some(because(binding, kind, name)));
        }
    }
    problems.sort();
    problems.dedup();
    let reason = match problems.as_slice() {
        [] => String::new(),
        [one] => format!("RBAC: {one}"),
        several => format!("RBAC: [{}]", several.join(", ")),
    };
    // Each of those who were asked says why.
    Err([node, reason].into_iter().filter(|why| !why.is_empty()).collect::<Vec<_>>().join("\n"))
}

fn allowed_by(binding: &Binding, subject_kind: SubjectKind, subject: &str) -> String {
    let (kind, name) = if binding.namespace.is_empty() {
        ("ClusterRoleBinding", binding.name.clone())
    } else {
        ("RoleBinding", format!("{}/{}", binding.name, binding.namespace))
    };
    let subject = match (subject_kind, subject.strip_prefix("system:serviceaccount:")) {
        (SubjectKind::Group, _) => format!("Group {subject:?}"),
        (SubjectKind::User, Some(account)) => {
            let (namespace, name) = account.split_once(':').unwrap_or(("", account));
            format!("ServiceAccount \"{name}/{namespace}\"")
        }
        (SubjectKind::User, None) => format!("User {subject:?}"),
    };
    format!("RBAC: allowed by {kind} {name:?} of {} {:?} to {subject}", binding.role_kind, binding.role)
}

/// All rules that hold for a user in a namespace.
pub fn rules_of(cluster: &Arc<Cluster>, user: &User, namespace: &str) -> Vec<Rule> {
    let compiled = cluster.roles.compiled(cluster);
    let mut rules: Vec<Rule> = Vec::new();
    if user.is_in(MASTERS) {
        let all = || vec!["*".to_owned()];
        rules.push(Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() });
        rules.push(Rule { verbs: all(), paths: all(), ..Rule::default() });
    }
    for (binding, ..) in compiled.bindings(user, namespace) {
        rules.extend(compiled.rules(binding).into_iter().flat_map(|rules| rules.iter().cloned()));
    }
    rules
}

/// The rules of a role, by reference.
pub fn rules_of_role(
    cluster: &Arc<Cluster>,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Option<Arc<Vec<Rule>>> {
    let compiled = cluster.roles.compiled(cluster);
    let key = if kind == "ClusterRole" { name.to_owned() } else { format!("{namespace}/{name}") };
    compiled.roles.get(&key).cloned()
}
