//! What is served beside resources: what the server is, what it can do, and how it is.

use std::sync::Arc;

use aro_kube_apimachinery::{GroupVersion, ResourceType};
use aro_kube_types::registry::builtin;
use aro_kube_types::{discovery, openapi};
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::http::answer::{self, Answer};
use crate::http::media;
use crate::http::options::Query;
use crate::types::{Served, Types};

/// Documents that take long to render, for the types they were rendered from.
#[derive(Debug, Default)]
pub struct Rendered {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    types: Option<Arc<Types>>,
    documents: std::collections::HashMap<String, bytes::Bytes>,
}

impl Rendered {
    fn get(&self, types: &Arc<Types>, name: &str, render: impl FnOnce() -> Value) -> bytes::Bytes {
        self.get_bytes(types, name, || serde_json::to_vec(&render()).unwrap_or_default())
    }

    fn get_bytes(&self, types: &Arc<Types>, name: &str, render: impl FnOnce() -> Vec<u8>) -> bytes::Bytes {
        {
            let mut kept = self.kept.lock();
            if kept.types.as_ref().is_none_or(|known| !Arc::ptr_eq(known, types)) {
                *kept = Kept { types: Some(types.clone()), ..Kept::default() };
            }
            if let Some(known) = kept.documents.get(name) {
                return known.clone();
            }
        }
        // Rendering is slow: the lock is not held meanwhile.
        let bytes: bytes::Bytes = render().into();
        let mut kept = self.kept.lock();
        if kept.types.as_ref().is_some_and(|known| Arc::ptr_eq(known, types)) {
            kept.documents.insert(name.to_owned(), bytes.clone());
        }
        bytes
    }
}

/// The only form in which client-go reads `/openapi/v2`, as it asks for it.
const OPENAPI_V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// The same as a media type that Go can parse.
const OPENAPI_V2_PROTOBUF_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// What the server says it is: the release whose API it follows.
pub fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35", "gitVersion": "v1.36.4", "gitCommit": "unknown", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// Answers a request for something that is no resource.
pub fn answer(
    cluster: &Arc<Cluster>,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    query: &Query<'_>,
) -> Answer {
    // The list of groups does not look at the method, upstream.
    if method != Method::GET && path.trim_end_matches('/') != "/apis" {
        return answer::status(&crate::rest::method_not_allowed());
    }
    let accept = headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
    let aggregated = media::wants_aggregated(accept);
    let path = path.trim_end_matches('/');
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let types = cluster.types();
    let served: Vec<Arc<Served>> = types.all().collect();
    let resources = || served.iter().map(|served| &*served.resource);
    match parts.as_slice() {
        ["version"] => answer::json(200, &version()),
        ["healthz" | "livez" | "readyz", checks @ ..] => health(cluster, checks, query),
        ["metrics"] => answer::text(200, "text/plain; version=0.0.4", metrics(cluster)),
        [""] | [] => answer::json(200, &json!({"paths": paths(&served)})),
        ["api"] if aggregated => {
            discovery_answer(cluster.documents.get(&types, "api", || discovery::aggregated_core(resources())))
        }
        ["apis"] if aggregated => discovery_answer(
            cluster.documents.get(&types, "apis", || discovery::aggregated_groups(resources())),
        ),
        ["api"] => answer::json(200, &discovery::api_versions("127.0.0.1:6443")),
        ["apis"] => answer::json(200, &discovery::group_list(resources())),
        ["apis", group] => match discovery::group(group, resources()) {
            Some(document) => answer::json(200, &document),
            None => missing(),
        },
        ["api", version] => resource_list("", version, resources()),
        ["apis", group, version] => resource_list(group, version, resources()),
        ["openapi", "v2"] if accept.is_some_and(wants_protobuf) => {
            let document = cluster
                .documents
                .get_bytes(&types, "v2 protobuf", || openapi::v2_protobuf(described(&served)));
            answer::text(200, OPENAPI_V2_PROTOBUF_TYPE, document)
        }
        ["openapi", "v2"] => answer::json_bytes(
            200,
            cluster.documents.get(&types, "v2", || openapi::v2_document(described(&served))),
        ),
        ["openapi", "v3"] => {
            let index = cluster.documents.get(&types, "v3", || openapi::v3_index(described(&served)));
            // Upstream leaves it to Go to guess what this is.
            answer::text(200, "text/plain; charset=utf-8", index)
        }
        ["openapi", "v3", "api", version] => openapi_document(cluster, &types, &served, "", version),
        ["openapi", "v3", "apis", group, version] => {
            openapi_document(cluster, &types, &served, group, version)
        }
        [".well-known", "openid-configuration"] => crate::identity::tokens::openid_configuration(cluster),
        ["openid", "v1", "jwks"] => crate::identity::tokens::jwks(cluster),
        _ => missing(),
    }
}

fn wants_protobuf(accept: &str) -> bool {
    [OPENAPI_V2_PROTOBUF, OPENAPI_V2_PROTOBUF_TYPE].iter().any(|known| accept.contains(known))
}

fn discovery_answer(bytes: bytes::Bytes) -> Answer {
    let mut answer = answer::json_bytes(200, bytes);
    let kind = http::HeaderValue::from_static(
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    );
    answer.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    answer
}

fn missing() -> Answer {
    answer::text(404, "text/plain; charset=utf-8", "404 page not found\n")
}

fn resource_list<'a>(group: &str, version: &str, types: impl Iterator<Item = &'a ResourceType>) -> Answer {
    let wanted = GroupVersion::new(group, version);
    match discovery::resource_list(&wanted, types) {
        Some(document) => answer::json(200, &document),
        None if builtin().resources().iter().any(|resource| resource.gvk.group == group) => {
            answer::status(&crate::rest::page_not_found())
        }
        None => missing(),
    }
}

fn described(served: &[Arc<Served>]) -> impl Iterator<Item = openapi::Described<'_>> {
    served.iter().map(|served| openapi::Described {
        resource: &served.resource,
        custom: served.custom.as_ref().map(|custom| openapi::CustomDescription {
            schema: custom.schema.as_ref(),
            list_kind: &custom.list_kind,
        }),
    })
}

fn openapi_document(
    cluster: &Cluster,
    types: &Arc<Types>,
    served: &[Arc<Served>],
    group: &str,
    version: &str,
) -> Answer {
    if !types.group_version_exists(group, version) {
        return missing();
    }
    let wanted = GroupVersion::new(group, version);
    let name = format!("v3 {wanted}");
    let render = || openapi::v3_document(&wanted, described(served)).unwrap_or_default();
    answer::json_bytes(200, cluster.documents.get(types, &name, render))
}

fn health(cluster: &Cluster, checks: &[&str], query: &Query<'_>) -> Answer {
    let well = !cluster.closing.is_cancelled();
    let code = if well { 200 } else { 500 };
    let mark = if well { "+" } else { "-" };
    match checks {
        [] if query.flag("verbose") => {
            let lines = format!("[{mark}]ping ok\n[{mark}]log ok\n[{mark}]etcd ok\nhealthz check passed\n");
            answer::text(code, "text/plain; charset=utf-8", lines)
        }
        [] | ["ping" | "log" | "etcd"] => {
            answer::text(code, "text/plain; charset=utf-8", if well { "ok" } else { "stopping" })
        }
        _ => missing(),
    }
}

/// Objects by resource, in the names upstream uses.
fn metrics(cluster: &Cluster) -> String {
    use std::fmt::Write as _;
    let mut out = String::from(
        "# HELP apiserver_resource_objects Number of stored objects by resource.\n# TYPE apiserver_resource_objects gauge\n",
    );
    for watch_cache in cluster.store.watch_caches() {
        let (resource, group) = watch_cache.name.split_once('.').unwrap_or((&watch_cache.name, ""));
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "apiserver_resource_objects{{group=\"{group}\",resource=\"{resource}\"}} {}",
            watch_cache.len()
        );
    }
    let _ = writeln!(
        out,
        "# TYPE aro_kube_resource_version gauge\naro_kube_resource_version {}",
        cluster.store.version()
    );
    out
}

fn paths(served: &[Arc<Served>]) -> Vec<String> {
    let mut paths = vec![
        "/.well-known/openid-configuration".to_owned(),
        "/api".to_owned(),
        "/api/v1".to_owned(),
        "/apis".to_owned(),
    ];
    for served in served {
        let gvk = &served.resource.gvk;
        if !gvk.group.is_empty() {
            paths.push(format!("/apis/{}", gvk.group));
            paths.push(format!("/apis/{}/{}", gvk.group, gvk.version));
        }
    }
    paths.extend(
        [
            "/healthz",
            "/livez",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/openid/v1/jwks",
            "/readyz",
            "/version",
        ]
        .map(str::to_owned),
    );
    paths.sort();
    paths.dedup();
    paths
}
