//! Nonsense of every kind, thrown at a cluster in this process: it never panics and never blames itself.

use anyhow::{Context, Result, ensure};
use aro_fixtures::wait;
use aro_kube_apiserver::ClusterService;
use aro_kube_apiserver::identity::user::User;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use tower::Service as _;

use crate::support::variable;
use crate::watching::Inside;

#[derive(Debug, Clone)]
struct Call {
    method: String,
    path: String,
    query: String,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
}

const LIMIT: usize = 256 << 10;

fn service(inside: &Inside) -> Result<ClusterService> {
    let user = User::authenticated("tester".to_owned(), vec!["system:masters".to_owned()]);
    let mut service = ClusterService::in_process(inside.cluster()?, user);
    service.body.max = LIMIT;
    Ok(service)
}

/// Makes a call. `None`: HTTP itself does not allow it.
async fn send(service: &ClusterService, call: &Call) -> Option<(StatusCode, Bytes)> {
    let method = Method::from_bytes(call.method.as_bytes()).ok()?;
    let uri = if call.query.is_empty() { call.path.clone() } else { format!("{}?{}", call.path, call.query) };
    let mut request =
        Request::builder().method(method).uri(uri).body(Full::new(Bytes::from(call.body.clone()))).ok()?;
    for (name, value) in &call.headers {
        let Ok(value) = HeaderValue::from_bytes(value) else { continue };
        request.headers_mut().append(HeaderName::from_static(name), value);
    }
    let answer = match service.clone().call(request).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    };
    let (parts, mut body) = answer.into_parts();
    let mut bytes = Vec::new();
    // A watch goes on; what is there at once is enough.
    while let Ok(Some(Ok(frame))) =
        tokio::time::timeout(std::time::Duration::from_millis(20), body.frame()).await
    {
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > 1 << 20 {
            break;
        }
    }
    Some((parts.status, bytes.into()))
}

/// Mistakes of callers that a real server takes upon itself; clients know these answers.
const AS_UPSTREAM: [&str; 6] = [
    "unknown patch type",
    "does not contain declared merge key",
    "list element types are not identical",
    "resourceVersion should not be set on objects to be created",
    "failed to create typed patch object",
    "strconv.ParseUint: parsing",
];

fn acceptable(status: StatusCode, said: &[u8]) -> bool {
    let said = String::from_utf8_lossy(said);
    !status.is_server_error()
        || matches!(status.as_u16(), 501 | 503 | 504)
        || AS_UPSTREAM.iter().any(|known| said.contains(known))
}

fn escaped(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~,=()!".contains(byte) {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

fn path() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/configmaps/seed",
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/services",
        "/api/v1/namespaces/default/secrets/s",
        "/api/v1/namespaces/default/serviceaccounts/default/token",
        "/api/v1/namespaces",
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/default/finalize",
        "/api/v1/namespaces/default/status",
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/apps/v1/namespaces/default/deployments/seed",
        "/apis/apps/v1/namespaces/default/deployments/seed/scale",
        "/apis/apps/v1/namespaces/default/deployments/seed/status",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.test.aro.dev",
        "/apis/test.aro.dev/v1/namespaces/default/gadgets",
        "/apis/test.aro.dev/v1/namespaces/default/gadgets/seed",
        "/apis/test.aro.dev/v1/namespaces/default/gadgets/seed/status",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases/l",
        "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
        "/apis/events.k8s.io/v1/namespaces/default/events",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        "/apis/batch/v1/namespaces/default/cronjobs",
        "/openapi/v2",
        "/openapi/v3/apis/apps/v1",
        "/apis",
        "/api",
        "/",
    ]);
    let odd = prop::collection::vec(
        prop_oneof![
            Just("api".to_owned()),
            Just("apis".to_owned()),
            Just("v1".to_owned()),
            Just("namespaces".to_owned()),
            Just("watch".to_owned()),
            Just("..".to_owned()),
            Just(String::new()),
            Just("%2F".to_owned()),
            Just("%00".to_owned()),
            Just("%".to_owned()),
            Just("%zz".to_owned()),
            prop::collection::vec(any::<u8>(), 0..12).prop_map(|bytes| escaped(&bytes)),
            Just("a".repeat(5000)),
        ],
        0..9,
    )
    .prop_map(|parts| format!("/{}", parts.join("/")));
    prop_oneof![
        8 => known.clone().prop_map(str::to_owned),
        2 => odd.clone(),
        2 => (known, odd).prop_map(|(path, odd)| format!("{path}{odd}")),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "",
            "0",
            "1",
            "-1",
            "true",
            "false",
            "a=b",
            "a!=b",
            "a in (b,c)",
            "!a",
            "a in (",
            "a,,b",
            "metadata.name=x",
            "metadata.name",
            "=",
            "a==b=c",
            "Exact",
            "NotOlderThan",
            "99999999999999999999",
            "18446744073709551616",
            "Background",
            "All",
            "Strict",
            "Warn",
            "null",
            "1e9",
            "x/y=z",
            "a/b/c",
            "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0",
            "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vIn0",
            "bm9uc2Vuc2U",
        ])
        .prop_map(str::to_owned),
        prop::collection::vec(any::<u8>(), 0..24)
            .prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        (1..4000_usize)
            .prop_map(|count| (0..count).map(|index| format!("k{index}=v")).collect::<Vec<_>>().join(",")),
        (1..400_usize).prop_map(|count| "(".repeat(count)),
    ]
}

fn query() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "watch",
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "timeoutSeconds",
        "sendInitialEvents",
        "allowWatchBookmarks",
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
        "propagationPolicy",
        "gracePeriodSeconds",
        "orphanDependents",
        "pretty",
        "timeout",
        "nonsense",
    ]);
    let raw = prop::collection::vec(any::<u8>(), 0..16).prop_map(|bytes| escaped(&bytes));
    let pair = (name, prop_oneof![4 => text().prop_map(|text| escaped(text.as_bytes())), 1 => raw]);
    prop::collection::vec(pair.prop_map(|(name, value)| format!("{name}={value}")), 0..4)
        .prop_map(|pairs| pairs.join("&"))
}

fn headers() -> impl Strategy<Value = Vec<(&'static str, Vec<u8>)>> {
    let media = prop::sample::select(vec![
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/apply-patch+cbor",
        "application/cbor",
        "text/plain",
        "*/*",
        "",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "application/json; charset=utf-8",
        "application/json;as=Nothing;v=v9;g=x",
        ";;;",
        "application/json;q=0",
    ]);
    let value = prop_oneof![8 => media.prop_map(|media| media.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 0..30)];
    let name = prop::sample::select(vec![
        "content-type",
        "content-type",
        "content-type",
        "accept",
        "accept",
        "accept-encoding",
        "authorization",
        "impersonate-user",
        "user-agent",
        "if-none-match",
    ]);
    prop::collection::vec((name, value), 0..4)
}

fn junk() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(json!(1e300)),
        Just(json!(-0.5)),
        Just(json!(u64::MAX)),
        ".{0,20}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([[], {}, null])),
        Just(json!("x".repeat(70_000))),
        Just(json!("2020-01-01T00:00:00Z")),
        Just(json!({"a": {"b": {"c": [1, 2, {"d": null}]}}})),
        Just(json!("1Gi")),
        Just(json!("-1")),
        Just(json!(["a", "a", "a"])),
        Just(json!([{"name": "m"}, {"name": "m"}])),
        (1..300_usize).prop_map(|depth| (0..depth).fold(Value::Null, |inner, level| if level % 2 == 0 {
            json!([inner])
        } else {
            json!({"x": inner})
        })),
    ]
}

fn seeds() -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seed", "labels": {"a": "b"}, "annotations": {"n": "v"}, "finalizers": ["x/y"], "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}], "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:x": {}}}}], "resourceVersion": "1", "uid": "u", "generateName": "g-"}, "data": {"x": "1"}, "binaryData": {"b": "AAAA"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "seed"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}, "template": {"metadata": {"labels": {"a": "b", "k": "v"}}, "spec": {"containers": [{"name": "m", "image": "i", "ports": [{"containerPort": 80}], "env": [{"name": "E", "value": "1"}], "resources": {"limits": {"cpu": "1"}}}]}}}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "m", "image": "i"}], "tolerations": [{"key": "k"}], "volumes": [{"name": "v", "emptyDir": {}}]}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30_080, "targetPort": "x"}], "clusterIP": "10.0.0.9", "selector": {"a": "b"}}}),
        json!({"apiVersion": "test.aro.dev/v1", "kind": "Gadget", "metadata": {"name": "seed"}, "spec": {"size": 3, "tags": ["a"], "parts": {"x": {"n": 1}}}, "status": {"ready": true}}),
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "others.test.aro.dev"}, "spec": {"group": "test.aro.dev", "scope": "Namespaced", "names": {"plural": "others", "kind": "Other"}, "versions": [{"name": "v1", "served": true, "storage": true, "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}], "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a+$", "default": "a"}}, "x-kubernetes-validations": [{"rule": "self.a.size() > 0"}]}}}}}]}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}], "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}),
        json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "c"}, "spec": {"request": "bm9uc2Vuc2U=", "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}}),
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "a.b.c", "audiences": ["x"]}}),
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan", "preconditions": {"uid": "u", "resourceVersion": "1"}, "gracePeriodSeconds": 0}),
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "seed"}, "spec": {"replicas": 2}}),
        json!([{"op": "replace", "path": "/data/x", "value": "2"}, {"op": "move", "from": "/data/x", "path": "/data/y"}, {"op": "test", "path": "/a~1b/~0", "value": null}, {"op": "copy", "from": "/metadata", "path": "/metadata/labels"}]),
        json!({"metadata": {"$retainKeys": ["name"], "labels": {"$patch": "replace"}}, "spec": {"template": {"spec": {"containers": [{"name": "m", "$patch": "delete"}], "$setElementOrder/containers": [{"name": "x"}]}}}}),
        json!({"spec": {"ports": [{"$patch": "replace"}], "$deleteFromPrimitiveList/finalizers": ["x"]}, "$patch": "merge"}),
    ]
}

/// Puts something else at one place of a tree.
fn spoil(value: &mut Value, mut place: usize, junk: Value) {
    fn size(value: &Value) -> usize {
        1 + match value {
            Value::Object(members) => members.values().map(size).sum::<usize>(),
            Value::Array(items) => items.iter().map(size).sum(),
            _ => 0,
        }
    }
    fn at(value: &mut Value, place: &mut usize, junk: &Value) -> bool {
        if *place == 0 {
            *value = junk.clone();
            return true;
        }
        *place -= 1;
        match value {
            Value::Object(members) => members.values_mut().any(|member| at(member, place, junk)),
            Value::Array(items) => items.iter_mut().any(|item| at(item, place, junk)),
            _ => false,
        }
    }
    place %= size(value);
    at(value, &mut place, &junk);
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let tree = (prop::sample::select(seeds()), prop::collection::vec((any::<usize>(), junk()), 0..3))
        .prop_map(|(mut tree, spoils)| {
            for (place, junk) in spoils {
                spoil(&mut tree, place, junk);
            }
            serde_json::to_vec(&tree).unwrap_or_default()
        });
    let tree = tree.boxed();
    let broken = (
        tree.clone(),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        any::<prop::sample::Index>(),
    )
        .prop_map(|(mut bytes, flips, cut)| {
            for (at, byte) in flips {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            let keep = cut.index(bytes.len() + 1);
            if keep % 3 == 0 {
                bytes.truncate(keep);
            }
            bytes
        });
    let protobuf =
        prop::collection::vec(any::<u8>(), 0..200).prop_map(|bytes| [b"k8s\0".as_slice(), &bytes].concat());
    prop_oneof![
        8 => tree,
        4 => broken,
        1 => protobuf,
        1 => prop::collection::vec(any::<u8>(), 0..100),
        1 => (1000..60_000_usize).prop_map(|depth| "[".repeat(depth).into_bytes()),
        1 => (1000..30_000_usize).prop_map(|depth| "{\"a\":".repeat(depth).into_bytes()),
        1 => Just(b"a: &a [*a, *a]\nb: !!binary x\n<<: {c: d}\n".to_vec()),
    ]
}

/// A call that could be right, but for what was put into its body.
fn nearly_right() -> impl Strategy<Value = Call> {
    let collection = |index: usize| match index {
        0 => "/api/v1/namespaces/default/configmaps",
        1 => "/apis/apps/v1/namespaces/default/deployments",
        2 => "/api/v1/namespaces/default/pods",
        3 => "/api/v1/namespaces/default/services",
        4 => "/apis/test.aro.dev/v1/namespaces/default/gadgets",
        5 => "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        6 => "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        7 => "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        8 => "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        _ => "/apis/authentication.k8s.io/v1/tokenreviews",
    };
    let how = prop::sample::select(vec![
        ("POST", "application/json"),
        ("POST", "application/yaml"),
        ("PUT", "application/json"),
        ("PATCH", "application/merge-patch+json"),
        ("PATCH", "application/strategic-merge-patch+json"),
        ("PATCH", "application/apply-patch+yaml"),
        ("PATCH", "application/json-patch+json"),
        ("DELETE", "application/json"),
    ]);
    let spoils = prop::collection::vec((any::<usize>(), junk()), 0..3);
    (0..10_usize, how, spoils, any::<bool>(), prop_oneof![3 => Just(String::new()), 1 => query()]).prop_map(
        move |(index, (method, kind), spoils, force, query)| {
            let seeds = seeds();
            let mut tree = match kind {
                "application/json-patch+json" => seeds[12].clone(),
                "application/strategic-merge-patch+json" if force => seeds[13].clone(),
                _ if method == "DELETE" => seeds[10].clone(),
                _ => seeds[index].clone(),
            };
            if method == "POST" && force {
                // A name of its own, so that it may well be made.
                if let Some(metadata) = tree.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.retain(|name, _| name == "labels" || name == "annotations");
                    metadata.insert("generateName".to_owned(), json!("made-"));
                }
            }
            for (place, junk) in spoils {
                spoil(&mut tree, place, junk);
            }
            let path = if method == "POST" {
                collection(index).to_owned()
            } else {
                format!("{}/seed", collection(index))
            };
            let query = match kind {
                "application/apply-patch+yaml" => format!("fieldManager=f&force={force}&{query}"),
                _ => query,
            };
            let body = serde_json::to_vec(&tree).unwrap_or_default();
            Call {
                method: method.to_owned(),
                path,
                query,
                headers: vec![("content-type", kind.as_bytes().to_vec())],
                body,
            }
        },
    )
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![3 => nearly_right(), 2 => any_call()]
}

fn any_call() -> impl Strategy<Value = Call> {
    let method = prop::sample::select(vec![
        "GET", "POST", "POST", "POST", "PUT", "PUT", "PATCH", "PATCH", "PATCH", "PATCH", "DELETE", "HEAD",
        "OPTIONS", "BREW",
    ]);
    (method, path(), query(), headers(), body()).prop_map(|(method, path, query, headers, body)| Call {
        method: method.to_owned(),
        path,
        query,
        headers,
        body,
    })
}

const GADGETS: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.test.aro.dev"}, "spec": {
    "group": "test.aro.dev", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"}, "versions": [{"name": "v1", "served": true, "storage": true,
    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
    "schema": {"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "parts": {"type": "object", "additionalProperties": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}}},
            "x-kubernetes-validations": [{"rule": "!has(self.size) || self.size < 1000"}, {"rule": "!has(self.tags) || self.tags.all(t, t.size() < 100)"}]},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}}"#;

async fn prepared() -> Result<(Inside, ClusterService)> {
    let inside = Inside::start(&[]).await?;
    let service = service(&inside)?;
    let post = |path: &str, body: Vec<u8>| Call {
        method: "POST".to_owned(),
        path: path.to_owned(),
        query: String::new(),
        headers: vec![("content-type", b"application/json".to_vec())],
        body,
    };
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (status, said) = send(&service, &post(definitions, GADGETS.into())).await.context("a call")?;
    ensure!(status == 201, "{said:?}");
    let gadgets = "/apis/test.aro.dev/v1/namespaces/default/gadgets";
    let gadget = json!({"apiVersion": "test.aro.dev/v1", "kind": "Gadget", "metadata": {"name": "seed"}, "spec": {"size": 3}});
    wait::until("the type to be served", || async {
        let answer = send(&service, &post(gadgets, gadget.to_string().into())).await;
        Ok(answer.filter(|(status, _)| *status == 201))
    })
    .await?;
    let map = json!({"metadata": {"name": "seed"}, "data": {"x": "1"}});
    send(&service, &post("/api/v1/namespaces/default/configmaps", map.to_string().into()))
        .await
        .context("a call")?;
    let deployment = seeds()[1].to_string();
    send(&service, &post("/apis/apps/v1/namespaces/default/deployments", deployment.into()))
        .await
        .context("a call")?;
    Ok((inside, service))
}

/// How many calls; `make fuzz` makes more.
fn cases() -> usize {
    variable("PROPTEST_CASES").and_then(|cases| cases.parse().ok()).unwrap_or(3_000)
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_sent_the_server_never_blames_itself() -> Result<()> {
    let (inside, service) = prepared().await?;
    let cases = cases();
    let mut runner = TestRunner::deterministic();
    let strategy = call();
    let mut calls = Vec::with_capacity(cases);
    for _ in 0..cases {
        let tree = strategy.new_tree(&mut runner).map_err(|reason| anyhow::anyhow!("{reason}"))?;
        calls.push(tree.current());
    }
    let answers = stream::iter(calls).map(|call| {
        let service = service.clone();
        async move {
            #[allow(clippy::disallowed_methods, reason = "joined at once; a panic ends only this call")]
            let answered = tokio::spawn({
                let call = call.clone();
                async move { send(&service, &call).await }
            });
            (call, answered.await)
        }
    });
    let mut answers = Box::pin(answers.buffer_unordered(32));
    let mut wrong = Vec::new();
    let mut counts: std::collections::BTreeMap<u16, usize> = std::collections::BTreeMap::new();
    while let Some((mut call, answered)) = answers.next().await {
        call.body.truncate(600);
        call.query.truncate(300);
        call.path.truncate(300);
        match answered {
            Ok(Some((status, said))) if acceptable(status, &said) => {
                *counts.entry(status.as_u16()).or_default() += 1;
            }
            Ok(Some((status, said))) => wrong.push(format!(
                "{status}: {}\n  for {} {}?{} {:?}\n  {}",
                String::from_utf8_lossy(&said),
                call.method,
                call.path,
                call.query,
                call.headers,
                String::from_utf8_lossy(&call.body)
            )),
            Ok(None) => *counts.entry(0).or_default() += 1,
            Err(error) => wrong
                .push(format!("PANIC {error}\n  for {call:?}\n  {}", String::from_utf8_lossy(&call.body))),
        }
    }
    eprintln!("answers by code (0: HTTP itself refuses): {counts:?}");
    ensure!(
        wrong.is_empty(),
        "{} of {cases}:\n{}",
        wrong.len(),
        wrong.iter().take(12).cloned().collect::<Vec<_>>().join("\n")
    );
    // It still works.
    let (status, _) = send(
        &service,
        &Call {
            method: "GET".to_owned(),
            path: "/api/v1/namespaces/default".to_owned(),
            query: String::new(),
            headers: Vec::new(),
            body: Vec::new(),
        },
    )
    .await
    .context("a call")?;
    ensure!(status == 200, "{status}");
    inside.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_have_limits_and_say_so() -> Result<()> {
    let (inside, service) = prepared().await?;
    let call = |content_type: &str, body: Vec<u8>| Call {
        method: "POST".to_owned(),
        path: "/api/v1/namespaces/default/configmaps".to_owned(),
        query: String::new(),
        headers: vec![("content-type", content_type.as_bytes().to_vec())],
        body,
    };
    let large = json!({"metadata": {"name": "large"}, "data": {"x": "x".repeat(LIMIT)}}).to_string();
    let (status, said) = send(&service, &call("application/json", large.into())).await.context("a call")?;
    ensure!(
        status == 413 && String::from_utf8_lossy(&said).contains("RequestEntityTooLarge"),
        "{status} {said:?}"
    );
    for (kind, body, wanted) in [
        ("application/json", b"{\"metadata\":{\"name\":\"\xff\xfe\"}}".to_vec(), 400),
        ("application/json", b"".to_vec(), 400),
        ("application/json", "[".repeat(100_000).into_bytes(), 400),
        ("application/yaml", "[".repeat(100_000).into_bytes(), 400),
        ("application/yaml", b"\xff\xfe\x00".to_vec(), 400),
        ("application/vnd.kubernetes.protobuf", b"k8s\0\xff\xff\xff\xff\xff\xff".to_vec(), 400),
        ("text/plain", b"{}".to_vec(), 415),
    ] {
        let (status, said) = send(&service, &call(kind, body.clone())).await.context("a call")?;
        let body = String::from_utf8_lossy(&body).chars().take(60).collect::<String>();
        ensure!(status == wanted, "{kind} {body}: {status} {}", String::from_utf8_lossy(&said));
        let status: Value = serde_json::from_slice(&said)?;
        ensure!(status["kind"] == "Status" && status["status"] == "Failure", "{status}");
    }
    // Aliases that multiply must not multiply here.
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n";
    let (status, said) = send(&service, &call("application/yaml", bomb.into())).await.context("a call")?;
    ensure!(
        status == 400,
        "{status} {}",
        String::from_utf8_lossy(&said).chars().take(300).collect::<String>()
    );
    inside.stop().await
}
