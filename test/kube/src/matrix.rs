//! The authorization matrix: every verb of every resource and subresource that discovery lists, at every scope, as each
//! of several callers.
//!
//! The requests are real ones, so the matrix covers how a path is read as well as what a role allows. None of them changes
//! anything: names do not exist, bodies are empty and selectors cannot be parsed. An answer counts as a refusal when the
//! authorizer gave it; every other one shows that the request came past it.
//!
//! Callers other than the anonymous one are impersonated by the administrator. Their rights come from the default roles.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use futures::future::try_join_all;
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::client::{Client, KeepAlive};

/// The namespace where some callers have a role.
const OWN: &str = "team";
/// A namespace where none has.
const OTHER: &str = "other";
const NODE: &str = "node-1";
const LEASES: &str = "kube-node-lease";
const ABSENT: &str = "absent";

const HEAD: &str = "\
# What each caller may do, as a real kube-apiserver answers. Written by `make golden` where one can be built; do not edit.
# u: anonymous, s: a service account without roles, a: `admin` in the namespace team, v: `view` in the namespace team,
# n: the node node-1, c: `cluster-admin` everywhere.
";

/// How long a change of roles or definitions may take to show.
const DEADLINE: Duration = Duration::from_mins(1);

struct Caller {
    letter: char,
    user: &'static str,
    groups: &'static [&'static str],
}

const CALLERS: [Caller; 6] = [
    Caller { letter: 'u', user: "", groups: &[] },
    Caller { letter: 's', user: "system:serviceaccount:team:idle", groups: &[] },
    Caller { letter: 'a', user: "owner", groups: &[] },
    Caller { letter: 'v', user: "viewer", groups: &[] },
    Caller { letter: 'n', user: "system:node:node-1", groups: &["system:nodes"] },
    Caller { letter: 'c', user: "boss", groups: &[] },
];

/// Paths that are no resources.
const PATHS: [&str; 15] = [
    "/",
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/apps",
    "/apis/apps/v1",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openid/v1/jwks",
    "/readyz",
    "/version",
];

/// One request of the matrix. The order is the table's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Route {
    path: String,
    verb: String,
}

impl Route {
    fn request(&self, caller: &Caller) -> Result<Request<Bytes>> {
        // A selector that cannot be parsed is refused after authorization and before anything is read or deleted.
        const NEVER: &str = "labelSelector=%21%21";
        let (method, query) = match self.verb.as_str() {
            "get" => ("GET", String::new()),
            "list" => ("GET", format!("?{NEVER}")),
            "watch" => ("GET", format!("?watch=1&timeoutSeconds=1&{NEVER}")),
            "create" => ("POST", String::new()),
            "update" => ("PUT", String::new()),
            "patch" => ("PATCH", String::new()),
            "delete" => ("DELETE", String::new()),
            "deletecollection" => ("DELETE", format!("?{NEVER}")),
            other => bail!("discovery lists the verb {other} at {}", self.path),
        };
        let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let mut request = Request::builder().method(method).uri(format!("{}{query}", self.path));
        request = request
            .header(http::header::HOST, "localhost")
            .header(http::header::ACCEPT, "application/json")
            .header(http::header::CONTENT_TYPE, content);
        if !caller.user.is_empty() {
            request = request.header("impersonate-user", caller.user);
        }
        for group in caller.groups {
            request = request.header("impersonate-group", *group);
        }
        Ok(request.header(http::header::CONTENT_LENGTH, 0).body(Bytes::new())?)
    }
}

/// Prepares a server and asks it everything: the table as text.
pub async fn table(client: &Client) -> Result<String> {
    prepare(client).await?;
    let routes = routes(client).await?;
    let columns = try_join_all(CALLERS.iter().map(|caller| column(client, caller, &routes))).await?;
    let mut text = HEAD.to_owned();
    for (place, route) in routes.iter().enumerate() {
        let flag = |(caller, column): (&Caller, &Vec<bool>)| {
            if column.get(place) == Some(&true) { caller.letter } else { '.' }
        };
        let flags: String = CALLERS.iter().zip(&columns).map(flag).collect();
        writeln!(text, "{flags} {} {}", route.verb, route.path)?;
    }
    Ok(text)
}

/// Lines of two tables that differ, each with where it is from. A route that only one has differs, too.
pub fn differences(expected: &str, found: &str) -> Vec<String> {
    fn lines(text: &str) -> BTreeMap<&str, &str> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.split_once(' ')).map(|(flags, route)| (route, flags)).collect()
    }
    let (expected, found) = (lines(expected), lines(found));
    let mut routes: Vec<&str> = expected.keys().chain(found.keys()).copied().collect();
    routes.sort_unstable();
    routes.dedup();
    let show = |flags: Option<&&str>| flags.map_or("no such route", |flags| *flags).to_owned();
    let differing = routes.into_iter().filter(|route| expected.get(route) != found.get(route));
    differing
        .map(|route| {
            format!("{route}: expected {}, got {}", show(expected.get(route)), show(found.get(route)))
        })
        .collect()
}

async fn column(client: &Client, caller: &Caller, routes: &[Route]) -> Result<Vec<bool>> {
    let client = if caller.user.is_empty() { client.without_certificate() } else { client.clone() };
    let mut connection = KeepAlive::new(client);
    let mut column = Vec::with_capacity(routes.len());
    for route in routes {
        column.push(allowed(&mut connection, caller, route).await?);
    }
    Ok(column)
}

async fn allowed(connection: &mut KeepAlive, caller: &Caller, route: &Route) -> Result<bool> {
    let what = || format!("{} {} as {:?}", route.verb, route.path, caller.user);
    let deadline = Instant::now() + DEADLINE;
    loop {
        let answer = connection.call(|| route.request(caller)).await.with_context(what)?;
        match answer.code {
            StatusCode::TOO_MANY_REQUESTS if Instant::now() < deadline => {
                // The server asks for a pause.
                sleep(Duration::from_millis(100)).await;
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::UNAUTHORIZED => bail!("{}: {answer:?}", what()),
            StatusCode::FORBIDDEN => {
                let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                let message = body["message"].as_str().unwrap_or_default();
                // Admission refuses in other words.
                return Ok(!(message.contains("User \"") && message.contains("\" cannot ")));
            }
            _ => return Ok(true),
        }
    }
}

async fn get(client: &Client, path: &str) -> Result<Value> {
    let request = Request::get(path)
        .header(http::header::HOST, "localhost")
        .header(http::header::ACCEPT, "application/json")
        .body(Bytes::new())?;
    let answer = client.call(request).await?;
    ensure!(answer.code.is_success(), "GET {path}: {answer:?}");
    Ok(serde_json::from_slice(&answer.body)?)
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Everything that discovery lists.
async fn routes(client: &Client) -> Result<Vec<Route>> {
    let mut versions = vec!["/api/v1".to_owned()];
    let groups = get(client, "/apis").await?;
    for group in list(&groups, "groups") {
        versions.extend(
            list(group, "versions").map(|version| format!("/apis/{}", text(version, "groupVersion"))),
        );
    }
    let mut routes: Vec<Route> =
        PATHS.iter().map(|path| Route { path: (*path).to_owned(), verb: "get".to_owned() }).collect();
    for version in versions {
        let document = get(client, &version).await?;
        for resource in list(&document, "resources") {
            add(&mut routes, &version, resource);
        }
    }
    routes.sort();
    routes.dedup();
    Ok(routes)
}

/// The routes of one resource or subresource.
fn add(routes: &mut Vec<Route>, version: &str, resource: &Value) {
    let (plural, subresource) = match text(resource, "name").split_once('/') {
        Some((plural, subresource)) => (plural, format!("/{subresource}")),
        None => (text(resource, "name"), String::new()),
    };
    let namespaced = resource["namespaced"] == true;
    let mut scopes = if namespaced { vec![OWN, OTHER] } else { vec![""] };
    if plural == "leases" {
        scopes.push(LEASES);
    }
    for verb in list(resource, "verbs").filter_map(Value::as_str) {
        let mut push = |path: String| routes.push(Route { path, verb: verb.to_owned() });
        let collection = |scope: &str| match scope {
            "" => format!("{version}/{plural}"),
            scope => format!("{version}/namespaces/{scope}/{plural}"),
        };
        let of_collection = matches!(verb, "list" | "watch" | "deletecollection" | "create");
        for scope in &scopes {
            if of_collection && subresource.is_empty() {
                push(collection(scope));
                continue;
            }
            for name in names(plural, scope, verb) {
                push(format!("{}/{name}{subresource}", collection(scope)));
            }
        }
        if namespaced && matches!(verb, "list" | "watch") && subresource.is_empty() {
            push(collection(""));
        }
    }
}

/// Names that make a difference to a caller.
fn names(plural: &str, scope: &str, verb: &str) -> Vec<&'static str> {
    match (plural, scope) {
        ("nodes" | "csinodes", _) | ("leases", LEASES) => vec![ABSENT, NODE],
        // The namespace is there, and stays.
        ("namespaces", _) if verb != "delete" => vec![ABSENT, OWN],
        _ => vec![ABSENT],
    }
}

async fn post(client: &Client, path: &str, body: &Value) -> Result<(StatusCode, Value)> {
    let body = body.to_string();
    let request = Request::post(path)
        .header(http::header::HOST, "localhost")
        .header(http::header::ACCEPT, "application/json")
        .header(http::header::CONTENT_TYPE, "application/json")
        .header(http::header::CONTENT_LENGTH, body.len())
        .body(body.into())?;
    let answer = client.call(request).await?;
    Ok((answer.code, serde_json::from_slice(&answer.body).unwrap_or_default()))
}

async fn create(client: &Client, path: &str, body: &Value) -> Result<()> {
    let (code, answer) = post(client, path, body).await?;
    ensure!(code.is_success() || code == StatusCode::CONFLICT, "POST {path}: {code} {answer}");
    Ok(())
}

const GROUP: &str = "matrix.aro.dev";

fn definition(plural: &str, kind: &str, scope: &str, subresources: &Value) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"metadata": {"name": format!("{plural}.{GROUP}")}, "spec": {"group": GROUP, "scope": scope,
        "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            "subresources": subresources}]}})
}

/// Namespaces, bindings of default roles, and types of our own.
async fn prepare(client: &Client) -> Result<()> {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    for name in [OWN, OTHER] {
        create(client, "/api/v1/namespaces", &json!({"metadata": {"name": name}})).await?;
    }
    let binding = |user: &str, role: &str| {
        json!({"metadata": {"name": format!("matrix-{user}")},
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}})
    };
    let own = format!("{RBAC}/namespaces/{OWN}/rolebindings");
    create(client, &own, &binding("owner", "admin")).await?;
    create(client, &own, &binding("viewer", "view")).await?;
    create(client, &format!("{RBAC}/clusterrolebindings"), &binding("boss", "cluster-admin")).await?;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    let widgets = definition("widgets", "Widget", "Namespaced", &json!({"status": {}, "scale": scale}));
    create(client, definitions, &widgets).await?;
    create(client, definitions, &definition("gauges", "Gauge", "Cluster", &json!({"status": {}}))).await?;
    // Roles and definitions take effect a moment after they are written.
    for (user, verb, resource) in
        [("owner", "create", "configmaps"), ("viewer", "get", "configmaps"), ("boss", "create", "nodes")]
    {
        let namespace = if resource == "nodes" { "" } else { OWN };
        let review = json!({"spec": {"user": user, "groups": ["system:authenticated"],
            "resourceAttributes": {"verb": verb, "resource": resource, "namespace": namespace}}});
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        until(&format!("a role of {user}"), || async {
            let (_, answer) = post(client, path, &review).await?;
            Ok(answer["status"]["allowed"] == true)
        })
        .await?;
    }
    for plural in ["widgets", "gauges"] {
        until(&format!("the type of {plural}"), || async {
            let listed = get(client, &format!("/apis/{GROUP}/v1/{plural}")).await.is_ok();
            let document = get(client, &format!("/apis/{GROUP}/v1")).await.unwrap_or_default();
            Ok(listed && list(&document, "resources").any(|resource| text(resource, "name") == plural))
        })
        .await?;
    }
    until("the group of the types in discovery", || async {
        let groups = get(client, "/apis").await?;
        Ok(list(&groups, "groups").any(|group| text(group, "name") == GROUP))
    })
    .await
}

async fn until<F: Future<Output = Result<bool>>>(what: &str, mut reached: impl FnMut() -> F) -> Result<()> {
    let deadline = Instant::now() + DEADLINE;
    while !reached().await? {
        ensure!(Instant::now() < deadline, "{what} did not show within {DEADLINE:?}");
        // A pause between two looks, not a guess at how long something takes.
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_without_an_expectation_is_a_difference() {
        let table = "# comment\n....nc get /api/v1/nodes/absent\nu.avnc get /version\n";
        assert!(differences(table, table).is_empty());
        let more = format!("{table}.....c get /api/v1/secrets/absent\n");
        assert_eq!(
            differences(table, &more),
            ["get /api/v1/secrets/absent: expected no such route, got .....c"]
        );
        assert_eq!(differences(&more, table).len(), 1);
        assert_eq!(
            differences(table, &table.replace("....nc", "u...nc")),
            ["get /api/v1/nodes/absent: expected ....nc, got u...nc"]
        );
    }
}
