//! What the real client trips over.

use aro_ocm::Root;
use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use super::bodies;
use super::fixture::{ARO, Fixture, V1};
use crate::api::openapi::describe;
use crate::api::routes::ROUTES;

#[tokio::test]
async fn liveness_and_metadata_answer_on_both_roots_with_doubled_slashes_too() {
    let fixture = Fixture::new().await;
    for path in [ARO, V1, "//api//clusters_mgmt/v1/", "/api/aro_hcp//v1alpha1"] {
        let body = fixture.get(path).await.expect(200);
        assert!(body["server_version"].is_string(), "{path}");
    }
    assert_eq!(fixture.get("/api/clusters_mgmt").await.expect(200)["versions"][0]["id"], "v1");
}

#[tokio::test]
async fn every_error_has_json_a_string_id_and_a_body() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.cluster("one").await;
    let requests = [
        ("GET", "/nothing".to_owned(), None, 404),
        ("GET", format!("{ARO}/clusters/none"), None, 404),
        ("GET", format!("{ARO}/clusters/UPPER"), None, 404),
        ("PUT", href.clone(), Some("{}"), 405),
        ("POST", format!("{ARO}/clusters"), Some("{"), 400),
        ("POST", format!("{ARO}/clusters"), Some(""), 400),
        ("PATCH", href.clone(), Some("[]"), 400),
        ("GET", format!("{ARO}/clusters?search=garbage"), None, 400),
        ("GET", format!("{ARO}/clusters?page=x&order=none&fields=&search=x"), None, 400),
        ("DELETE", format!("{V1}/clusters/one"), None, 400),
        ("GET", format!("{href}/credentials").replace(ARO, V1), None, 404),
        ("GET", "/api/aro/v1/events?after=unknown".to_owned(), None, 410),
    ];
    for (method, path, body, status) in requests {
        let request = Request::builder().method(method).uri(&path);
        let answer = fixture.send(request.body(body.map_or_else(Body::empty, Body::from)).unwrap()).await;
        assert_eq!(answer.headers["content-type"], "application/json", "{method} {path}");
        assert!(answer.headers.contains_key("x-operation-id"));
        let error = answer.expect(status);
        assert_eq!(error["kind"], "Error");
        assert_eq!(error["id"], status.to_string(), "{method} {path}");
        assert!(error["code"].as_str().unwrap().ends_with(&format!("-{status}")));
        for member in ["reason", "operation_id", "timestamp", "href"] {
            assert!(error[member].as_str().is_some_and(|text| !text.is_empty()), "{method} {path}: {member}");
        }
        assert!(error["details"].as_array().is_some_and(|all| all.iter().all(|one| one["code"].is_string())));
    }
}

#[tokio::test]
async fn accepted_deletions_have_the_content_type_of_json_and_204_has_none() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.cluster("one").await;
    let dry = fixture.delete(&format!("{href}?dry_run=true")).await;
    assert_eq!((dry.status.as_u16(), dry.headers.get("content-type")), (204, None));
    let answer = fixture.delete(&href).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (202, ""));
    assert_eq!(answer.headers["content-type"], "application/json");
}

/// The place of a null, if there is one.
fn null(value: &Value, at: &str) -> Option<String> {
    match value {
        Value::Null => Some(at.to_owned()),
        Value::Array(items) => items.iter().find_map(|inner| null(inner, at)),
        Value::Object(members) => {
            members.iter().find_map(|(name, inner)| null(inner, &format!("{at}.{name}")))
        }
        _ => None,
    }
}

#[tokio::test]
async fn no_answer_has_a_null_and_every_object_has_kind_id_and_href_below_its_root() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.ready_cluster("one").await;
    fixture.post(&format!("{href}/node_pools"), bodies::node_pool("np1")).await.expect(202);
    fixture
        .post(&format!("{href}/external_auth_config/external_auths"), bodies::external_auth("e"))
        .await
        .expect(202);
    fixture
        .post(&format!("{href}/control_plane_upgrade_policies"), json!({"version": "4.20.10"}))
        .await
        .expect(201);
    for root in [ARO, V1] {
        let at = href.replace(ARO, root);
        for (path, kind) in [
            (at.clone(), "Cluster"),
            (format!("{at}/status"), "ClusterStatus"),
            (format!("{at}/provision_shard"), "ProvisionShard"),
            (format!("{at}/resources"), "ClusterResources"),
            (format!("{at}/node_pools/np1"), "NodePool"),
            (format!("{at}/node_pools/np1/status"), "NodePoolStatus"),
            (format!("{at}/external_auth_config"), "ExternalAuthConfig"),
            (format!("{at}/external_auth_config/external_auths/e"), "ExternalAuth"),
            (format!("{root}/versions/4.20.8"), "Version"),
        ] {
            let object = fixture.get(&path).await.expect(200);
            assert_eq!(null(&object, ""), None, "{path}");
            assert_eq!(object["kind"], kind, "{path}");
            assert!(object["id"].is_string(), "{path}");
            let expected = if kind == "ProvisionShard" { ARO } else { root };
            assert!(object["href"].as_str().unwrap().starts_with(expected), "{path}: {}", object["href"]);
        }
    }
}

#[tokio::test]
async fn mutations_of_clusters_through_the_generic_root_are_refused() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.cluster("one").await.replace(ARO, V1);
    for answer in [
        fixture.post(&format!("{V1}/clusters"), bodies::cluster("two")).await,
        fixture.patch(&href, json!({})).await,
        fixture.delete(&href).await,
        fixture.post(&format!("{href}/node_pools"), bodies::node_pool("np1")).await,
        fixture.delete(&format!("{href}/node_pools/np1")).await,
    ] {
        assert!(answer.reason(400).contains("ARO-HCP cluster operations must use the ARO-HCP endpoint"));
    }
    fixture.get(&href).await.expect(200);
}

#[tokio::test]
async fn the_openapi_document_lists_every_route_and_every_type_it_refers_to() {
    let fixture = Fixture::new().await;
    for root in Root::ALL {
        let document = fixture.get(&format!("{}/openapi", root.path())).await.expect(200);
        assert_eq!(document, describe(root));
        let served = ROUTES.iter().filter(|route| route.roots.contains(&root));
        for route in served.filter(|route| route.status != 400) {
            let path = format!("{}{}", root.path(), route.path);
            assert!(document["paths"][&path][route.verb.lower()].is_object(), "{path}");
        }
        let text = document.to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }
    let cluster = &describe(Root::AroHcp)["components"]["schemas"]["Cluster"]["properties"];
    assert_eq!(cluster["fips"]["type"], "boolean");
    assert_eq!(cluster["azure"]["$ref"], "#/components/schemas/Azure");
}

#[tokio::test]
async fn requests_are_counted_by_template_and_code_with_the_buckets_of_the_alerts() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.cluster("one").await;
    fixture.get(&href).await.expect(200);
    fixture.get(&format!("{ARO}/clusters/none")).await.expect(404);
    let text = fixture.shared.metrics.encode();
    let line = r#"api_inbound_request_count{method="GET",path="/clusters/{cluster_id}",code="200"} 1"#;
    assert!(text.contains(line), "{text}");
    for bucket in [r#"le="0.1""#, r#"le="1.0""#, r#"le="+Inf""#] {
        let found = text
            .lines()
            .any(|line| line.starts_with("api_inbound_request_duration_bucket{") && line.contains(bucket));
        assert!(found, "{bucket}");
    }
}

#[tokio::test]
async fn the_trace_of_a_request_is_stored_with_what_it_changed() {
    let fixture = Fixture::with_shard().await;
    let request = Request::post(format!("{ARO}/clusters"))
        .header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        .header("baggage", "aro.correlation_id=corr-1,aro.client.request_id=req-1")
        .header("x-request-id", "rp-1");
    let body = Body::from(bodies::cluster("one").to_string());
    let cluster = fixture.send(request.body(body).unwrap()).await.expect(202);
    let key = crate::records::cluster_key(&super::fixture::cluster_id(cluster["href"].as_str().unwrap()));
    let trace = fixture.shared.records.clusters.find(&key).await.unwrap().unwrap().value.trace;
    assert_eq!(trace.correlation_id.as_deref(), Some("corr-1"));
    assert_eq!(trace.client_request_id.as_deref(), Some("req-1"));
    assert_eq!(trace.request_id.as_deref(), Some("rp-1"));
    assert!(trace.traceparent.unwrap().contains("4bf92f3577b34da6a3ce929d0e0e4736"));
}
