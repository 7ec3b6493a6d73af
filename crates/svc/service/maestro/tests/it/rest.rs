//! The REST API, request by request.

use std::sync::{Arc, Mutex};

use aro_bundle::Action;
use aro_maestro::fault::Code;
use aro_maestro::rest::{self, Ledger};
use aro_maestro::rows::{Bundle, CONTAINER};
use aro_runtime::Metrics;
use aro_store::{Batch, DocId, NewDocument, Op, Page, PartitionKey, Raw};
use axum::Router;
use axum::body::Body;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::site::{Site, spec, status};

#[derive(Default)]
struct RecordingLedger(Mutex<Vec<String>>);

impl Ledger for RecordingLedger {
    fn entry(&self, bundle: &Bundle) -> Value {
        json!({ "id": bundle.id, "undelivered": bundle.is_undelivered() })
    }

    fn deletion_stored(&self, bundle: Bundle) {
        self.0.lock().unwrap().push(bundle.id);
    }
}

struct Api {
    site: Site,
    router: Router,
    metrics: Metrics,
    lines: Arc<RecordingLedger>,
}

struct Reply {
    status: StatusCode,
    headers: http::HeaderMap,
    text: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

impl Api {
    fn new() -> Self {
        let (site, metrics, lines) = (Site::sqlite(), Metrics::new(), Arc::new(RecordingLedger::default()));
        let router = rest::router(site.rows.clone(), lines.clone(), &metrics);
        Self { site, router, metrics, lines }
    }

    async fn request(&self, method: Method, path: &str, body: &str) -> Reply {
        let request = Request::builder().method(method).uri(path).header("x-operation-id", "op-1");
        let response =
            self.router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Reply {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    async fn get(&self, path: &str) -> Reply {
        self.request(Method::GET, path, "").await
    }

    /// An error response: its status, code and reason.
    async fn fails(&self, method: Method, path: &str, body: &str) -> (u16, String, String) {
        let reply = self.request(method, path, body).await;
        let error = reply.json();
        let number = error["code"].as_str().unwrap().trim_start_matches("maestro-");
        assert_eq!(error["id"], number);
        assert_eq!(error["kind"], "Error");
        assert_eq!(error["href"], format!("/api/maestro/v1/errors/{number}"));
        assert_eq!(error["operation_id"], "op-1");
        let text = |name: &str| error[name].as_str().unwrap().to_owned();
        (reply.status.as_u16(), text("code"), text("reason"))
    }
}

fn ids(list: &Value) -> Vec<String> {
    list["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

fn keys(value: &Value) -> Vec<String> {
    let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
    keys.sort();
    keys
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[tokio::test]
async fn bundle_has_only_the_keys_of_strict_clients() {
    let api = Api::new();
    api.site.consumer("c1").await;
    let event = spec(Action::Create, "b1", "c1", 0, "one").with_payload(&json!({
        "manifests": [crate::site::manifest("one")],
        "manifestConfigs": [{"resourceIdentifier": {"group": "", "resource": "configmaps", "name": "config", "namespace": "default"}}],
        "deleteOption": {"propagationPolicy": "Orphan"},
        "executer": {"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "a", "name": "b"}}},
    }));
    api.site.rows.create(&event.unwrap()).await.unwrap();
    let reply = api.get("/api/maestro/v1/resource-bundles/b1").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers["content-type"], "application/json");
    assert_eq!(reply.headers["vary"], "Authorization");
    assert_eq!(
        reply.json(),
        json!({
            "id": "b1", "kind": "ResourceBundle", "href": "/api/maestro/v1/resource-bundles/b1", "name": "b1",
            "consumer_name": "c1", "version": 1,
            "created_at": "2027-01-15T08:00:00.000000Z", "updated_at": "2027-01-15T08:00:00.000000Z",
            "metadata": {"name": "work-b1", "labels": {"app": "one"}, "creationTimestamp": "2027-01-15T08:00:00Z"},
            "manifests": [crate::site::manifest("one")],
            "manifest_configs": [{"resourceIdentifier": {"group": "", "resource": "configmaps", "name": "config", "namespace": "default"}}],
            "delete_option": {"propagationPolicy": "Orphan"},
        })
    );
    // Over MQTT numbers are strings.
    api.site.rows.record_status(&status("b1", "c1", 1, "2000808179721572352", "Applied")).await.unwrap();
    api.site.rows.delete("b1", None).await.unwrap();
    let bundle = api.get("/api/maestro/v1/resource-bundles/b1").await.json();
    assert_eq!(keys(&bundle["status"]), ["ObservedVersion", "SequenceID", "conditions", "resourceStatus"]);
    assert_eq!(bundle["status"]["ObservedVersion"], 1);
    assert_eq!(bundle["status"]["SequenceID"], "2000808179721572352");
    assert_eq!(bundle["status"]["conditions"][0]["type"], "Applied");
    assert_eq!(bundle["deleted_at"], "2027-01-15T08:00:00.000000Z");
    assert_eq!(bundle["metadata"]["deletionTimestamp"], "2027-01-15T08:00:00Z");
}

#[tokio::test]
async fn missing_parts_of_a_bundle_are_empty_and_not_absent() {
    let api = Api::new();
    api.site.consumer("c1").await;
    let event = spec(Action::Create, "b1", "c1", 0, "one");
    let bare =
        aro_bundle::Event { metadata: None, ..event.with_payload(&json!({"manifests": null})).unwrap() };
    api.site.rows.create(&bare).await.unwrap();
    let bundle = api.get("/api/maestro/v1/resource-bundles/b1").await.json();
    assert_eq!(bundle["manifests"], json!([]));
    assert_eq!(bundle["manifest_configs"], json!([]));
    assert_eq!(bundle["delete_option"], json!({}));
    assert!(
        bundle["metadata"].is_object()
            && bundle.get("status").is_none()
            && bundle.get("deleted_at").is_none()
    );
}

#[tokio::test]
async fn lists_are_paged_sorted_searched_and_projected() {
    let api = Api::new();
    api.site.consumer("c1").await;
    for number in 0..25 {
        let content = if number % 2 == 0 { "even" } else { "odd" };
        let event = spec(Action::Create, &format!("b{:02}", 24 - number), "c1", 0, content);
        api.site.rows.create(&event).await.unwrap();
        api.site.pass(1);
    }
    let list = api.get("/api/maestro/v1/resource-bundles").await.json();
    assert_eq!(keys(&list), ["items", "kind", "page", "size", "total"]);
    assert_eq!(
        (&list["kind"], &list["page"], &list["size"], &list["total"]),
        (&json!("ResourceBundleList"), &json!(1), &json!(25), &json!(25))
    );
    assert_eq!(ids(&list)[0], "b24", "oldest first");
    let mut walked = Vec::new();
    for page in 1..=4 {
        let list = api.get(&format!("/api/maestro/v1/resource-bundles?page={page}&size=8")).await.json();
        assert_eq!((&list["page"], &list["total"]), (&json!(page), &json!(25)));
        assert_eq!(list["size"], ids(&list).len());
        walked.extend(ids(&list));
    }
    assert_eq!(walked.len(), 25);
    assert_eq!(walked, ids(&list));
    let beyond = api.get("/api/maestro/v1/resource-bundles?page=9&size=8").await.json();
    assert_eq!((&beyond["size"], &beyond["total"], &beyond["page"]), (&json!(0), &json!(25), &json!(9)));
    let none = api.get("/api/maestro/v1/resource-bundles?size=0").await.json();
    assert_eq!((&none["size"], &none["total"], &none["items"]), (&json!(0), &json!(25), &json!([])));
    let sorted = api.get("/api/maestro/v1/resource-bundles?orderBy=id%20desc&size=2").await.json();
    assert_eq!(ids(&sorted), ["b24", "b23"]);
    let search = encoded("consumer_name='c1' and payload->'metadata'->'labels'@>'{\"app\":\"odd\"}'");
    let odd = api.get(&format!("/api/maestro/v1/resource-bundles?search={search}")).await.json();
    assert_eq!(odd["total"], 12);
    let fields = api.get("/api/maestro/v1/resource-bundles?fields=name,metadata.name&size=1").await.json();
    assert_eq!(fields["items"], json!([{"id": "b24", "name": "b24", "metadata": {"name": "work-b24"}}]));
}

#[tokio::test]
async fn invalid_parameters_are_rejected_with_the_original_messages() {
    let api = Api::new();
    for (query, code, reason) in [
        ("search=garbage", "maestro-21", "Failed to parse search query: garbage"),
        ("search=payload-%3E%27a%27-%3E%3E%27b%27", "maestro-21", "failed to parse the search query: "),
        ("orderBy=id%3B%20drop%20table%20x", "maestro-21", "bad order value 'id; drop table x'"),
        ("fields=nothing", "maestro-8", "there are no such fields: nothing"),
    ] {
        for collection in ["resource-bundles", "consumers"] {
            let path = format!("/api/maestro/v1/{collection}?{query}");
            let (status, found, told) = api.fails(Method::GET, &path, "").await;
            assert_eq!((status, found.as_str()), (400, code), "{path}");
            assert!(told.starts_with(reason), "{told}");
        }
    }
}

#[tokio::test]
async fn bundle_deletion_is_idempotent_and_published_once() {
    let api = Api::new();
    api.site.consumer("c1").await;
    api.site.bundle("b1", "c1").await;
    for id in ["b1", "b1", "none"] {
        let reply = api.request(Method::DELETE, &format!("/api/maestro/v1/resource-bundles/{id}"), "").await;
        assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
    }
    assert_eq!(*api.lines.0.lock().unwrap(), ["b1"]);
    let (status, code, reason) = api.fails(Method::GET, "/api/maestro/v1/resource-bundles/none", "").await;
    assert_eq!(
        (status, code.as_str(), reason.as_str()),
        (404, "maestro-7", "Resource with id='none' not found")
    );
}

#[tokio::test]
async fn consumers_are_created_labelled_and_removed() {
    let api = Api::new();
    let path = "/api/maestro/v1/consumers";
    let reply = api.request(Method::POST, path, r#"{"name":"c1","labels":{"a":"b"}}"#).await;
    assert_eq!(reply.status, 201);
    let made = reply.json();
    assert_eq!(keys(&made), ["created_at", "href", "id", "kind", "labels", "name", "updated_at"]);
    let id = made["id"].as_str().unwrap();
    let one = format!("{path}/{id}");
    assert_eq!(made["href"], one);
    assert_eq!(api.get(&one).await.json(), made);
    let (status, code, reason) = api.fails(Method::POST, path, r#"{"name":"c1"}"#).await;
    assert_eq!((status, code.as_str(), reason.as_str()), (409, "maestro-6", "This Consumer already exists"));
    let (status, code, reason) = api.fails(Method::POST, path, r#"{"id":"x","name":"c2"}"#).await;
    assert_eq!((status, code.as_str(), reason.as_str()), (400, "maestro-8", "id must be empty"));
    let (status, code, _) = api.fails(Method::POST, path, "{").await;
    assert_eq!((status, code.as_str()), (400, "maestro-17"));
    let patched = api.request(Method::PATCH, &one, r#"{"labels":{}}"#).await;
    assert_eq!(patched.status, 200);
    assert!(patched.json().get("labels").is_none());
    assert_eq!(
        api.request(Method::PATCH, &one, r#"{"labels":{"x":"y"},"name":"other"}"#).await.json()["name"],
        "c1"
    );
    let search = encoded("name = 'c1'");
    let list = api.get(&format!("{path}?search={search}")).await.json();
    assert_eq!((keys(&list).len(), &list["total"], &list["kind"]), (5, &json!(1), &json!("ConsumerList")));
    let search = encoded("labels->'x'->>'y'='z' or name='c1'");
    assert_eq!(api.get(&format!("{path}?search={search}")).await.json()["total"], 1);
    api.site.bundle("b1", "c1").await;
    let (status, code, reason) = api.fails(Method::DELETE, &one, "").await;
    assert_eq!((status, code.as_str()), (403, "maestro-4"));
    assert!(reason.starts_with("Unable to delete Consumer: "));
    let unnamed = api.request(Method::POST, path, "{}").await.json();
    assert_eq!(unnamed["name"], unnamed["id"]);
    let gone = format!("{path}/{}", unnamed["id"].as_str().unwrap());
    assert_eq!(api.request(Method::DELETE, &gone, "").await.status, 204);
    assert_eq!(api.fails(Method::GET, &gone, "").await.0, 404);
    assert_eq!(api.fails(Method::GET, &format!("{path}/c1"), "").await.0, 404, "a name is no id");
}

/// The original answers 500; a client error is 4xx here.
#[tokio::test]
async fn invalid_consumer_name_is_a_client_error() {
    let api = Api::new();
    let (status, code, reason) =
        api.fails(Method::POST, "/api/maestro/v1/consumers", r#"{"name":"Not_A_Label"}"#).await;
    assert_eq!((status, code.as_str()), (400, "maestro-8"));
    assert!(reason.starts_with("name must "), "{reason}");
}

#[tokio::test]
async fn the_api_describes_itself() {
    let api = Api::new();
    let root = api.get("/api/maestro/").await.json();
    assert_eq!(
        root,
        json!({"id": "maestro", "kind": "API", "href": "/api/maestro",
            "versions": [{"id": "v1", "href": "/api/maestro/v1", "kind": "", "collections": null}]})
    );
    let version = api.get("/api/maestro/v1").await.json();
    assert_eq!(version["collections"][0]["kind"], "ResourceList");
    let errors = api.get("/api/maestro/v1/errors").await.json();
    assert_eq!((&errors["kind"], &errors["total"]), (&json!("ErrorList"), &json!(13)));
    assert_eq!(api.get("/api/maestro/v1/errors/7").await.json()["code"], "maestro-7");
    assert_eq!(api.fails(Method::GET, "/api/maestro/v1/errors/77", "").await.0, 404);
    let document = api.get("/api/maestro/v1/openapi").await.json();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let reply = api.request(method.clone(), &path.replace("{id}", "x"), "{}").await;
            assert_ne!(reply.status, 405, "{method} {path} is described and not offered");
            assert!(!reply.text.contains("maestro-404"), "{method} {path} is described and not there");
        }
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_answered_like_the_original() {
    let api = Api::new();
    for path in ["/", "/nothing", "/api/maestro/v1/resources", "/api/maestro/v1/resource-bundles/a/b"] {
        let reply = api.get(path).await;
        assert_eq!(reply.status, 404);
        let body = reply.json();
        assert_eq!(keys(&body), ["code", "href", "id", "reason", "type"]);
        assert_eq!((&body["type"], &body["code"]), (&json!("Error"), &json!("maestro-404")));
    }
    for method in [Method::POST, Method::PATCH, Method::PUT] {
        let (status, code, _) = api.fails(method, "/api/maestro/v1/resource-bundles", "{}").await;
        assert_eq!((status, code.as_str()), (405, "maestro-10"));
    }
}

#[tokio::test]
async fn unparsable_request_is_answered_with_the_error_body() {
    let api = Api::new();
    for path in ["/api/maestro/v1/consumers/%ff", "/api/aro/maestro/v1/deliveries?size=many"] {
        let (status, code, _) = api.fails(Method::GET, path, "").await;
        assert_eq!((status, code.as_str()), (400, "maestro-21"), "{path}");
    }
}

#[tokio::test]
async fn operation_id_of_the_client_is_adopted() {
    let api = Api::new();
    assert_eq!(api.get("/nothing").await.headers["x-operation-id"], "op-1");
    let request = Request::builder().uri("/api/maestro/v1/errors/x").body(Body::empty()).unwrap();
    let response = api.router.clone().oneshot(request).await.unwrap();
    assert!(response.headers()["x-operation-id"].len() > 20);
}

#[tokio::test]
async fn requests_are_counted_by_template() {
    let api = Api::new();
    for id in ["a", "b", "c"] {
        api.get(&format!("/api/maestro/v1/consumers/{id}")).await;
        api.get(&format!("/{id}")).await;
    }
    let text = api.metrics.encode();
    let count = |labels: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with("rest_api_inbound_request_count{") && line.contains(labels));
        line.and_then(|line| line.rsplit(' ').next()).map(str::to_owned)
    };
    assert_eq!(count(r#"path="/api/maestro/v1/consumers/-",code="404""#).as_deref(), Some("3"), "{text}");
    assert_eq!(count(r#"path="other",code="404""#).as_deref(), Some("3"));
    assert!(text.contains("rest_api_inbound_request_duration"));
}

#[tokio::test]
async fn additional_paths_list_deliveries_and_abandon_a_consumer() {
    let api = Api::new();
    let consumer = api.site.consumer("c1").await;
    for id in ["b1", "b2", "b3"] {
        api.site.bundle(id, "c1").await;
    }
    api.site.rows.record_status(&status("b1", "c1", 1, "10", "Applied")).await.unwrap();
    let own = "/api/aro/maestro/v1";
    let list = api.get(&format!("{own}/deliveries?state=undelivered&consumer=c1&size=1")).await.json();
    assert_eq!(list["items"], json!([{"id": "b2", "undelivered": true}]));
    let next = list["next"].as_str().unwrap();
    let list =
        api.get(&format!("{own}/deliveries?state=undelivered&consumer=c1&size=1&after={next}")).await.json();
    assert_eq!((ids(&list), &list["next"]), (vec!["b3".to_owned()], &Value::Null));
    assert_eq!(ids(&api.get(&format!("{own}/deliveries")).await.json()).len(), 3);
    assert_eq!(api.get(&format!("{own}/deliveries/b1")).await.json()["undelivered"], false);
    assert_eq!(api.fails(Method::GET, &format!("{own}/deliveries/none"), "").await.0, 404);
    assert_eq!(api.fails(Method::GET, &format!("{own}/deliveries?state=odd"), "").await.0, 400);
    assert_eq!(api.fails(Method::GET, &format!("{own}/deliveries?after=junk"), "").await.0, 400);
    assert_eq!(api.fails(Method::GET, &format!("{own}/deliveries?consumer=unknown"), "").await.0, 404);
    api.site.rows.delete("b3", None).await.unwrap();
    let path = format!("{own}/consumers/{consumer}/abandon");
    assert_eq!(api.request(Method::POST, &path, "").await.json(), json!({"consumer": "c1", "removed": 1}));
    assert_eq!(api.fails(Method::POST, &format!("{own}/consumers/c1/abandon"), "").await.0, 404);
    let path = format!("{own}/consumers/{consumer}/trust");
    assert_eq!(api.request(Method::POST, &path, "").await.json(), json!({"consumer": "c1"}));
    assert_eq!(api.fails(Method::POST, &format!("{own}/consumers/c1/trust"), "").await.0, 404);
}

#[tokio::test]
async fn undecodable_row_hides_no_other() {
    let api = Api::new();
    api.site.consumer("c1").await;
    for id in ["b1", "b3"] {
        api.site.bundle(id, "c1").await;
    }
    let broken = NewDocument {
        id: DocId::new("b2"),
        resource_type: "bundle".to_owned(),
        resource_id: "/consumers/c1/bundles/b2".to_owned(),
        ttl: None,
        body: Raw::of(&json!({"id": "b2", "version": "many"})).unwrap(),
    };
    let batch = Batch::new(CONTAINER, PartitionKey::new("b2")).with(Op::Create(broken));
    api.site.rows.store().write(batch).await.unwrap();
    let list = api.get("/api/maestro/v1/resource-bundles").await.json();
    assert_eq!((ids(&list), &list["size"]), (vec!["b1".to_owned(), "b3".to_owned()], &json!(2)));
    let (rows, _) = api.site.rows.of_consumer("c1", Page::first(10)).await.unwrap();
    assert_eq!(rows.len(), 2, "agents get the others");
    let fault = api.site.rows.record_status(&status("b2", "c1", 1, "1", "Applied")).await.unwrap_err();
    assert_eq!(fault.code, Code::Unreadable, "it is not retried");
    assert_eq!(api.get("/api/maestro/v1/resource-bundles/b2").await.status, 500);
}

/// maestro#543: a slow store must not get live processes killed.
#[tokio::test]
async fn process_without_its_store_is_live_and_not_ready() {
    let site = Site::sqlite();
    let (store, faults) = aro_store::fault::FaultStore::wrap(site.rows.store().clone(), 1);
    let health = rest::health(store);
    let ask = |path: &'static str| {
        let health = health.clone();
        async move {
            let reply =
                health.oneshot(Request::builder().uri(path).body(Body::empty()).unwrap()).await.unwrap();
            let status = reply.status().as_u16();
            (
                status,
                String::from_utf8(reply.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap(),
            )
        }
    };
    assert_eq!(ask("/healthcheck").await, (200, r#"{"status": "ok"}"#.to_owned()));
    use aro_store::fault::{Call, Fault};
    faults.script(Call::Ping, [Fault::FailBefore]);
    assert_eq!(ask("/healthcheck").await, (500, r#"{"status": "error"}"#.to_owned()));
    faults.script(Call::Ping, [Fault::FailBefore]);
    assert_eq!(ask("/livez").await, (200, r#"{"status": "ok"}"#.to_owned()));
}
