//! An API with a store of its own, and the requests of tests.

use std::sync::Arc;

use aro_base::{ManualClock, SignedDuration};
use aro_decisions::Decisions;
use aro_ocm::{ClusterId, ClusterState, NodePoolId, NodePoolStateValue};
use aro_runtime::{Metrics, Section as _};
use axum::Router;
use axum::body::Body;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::bodies;
use crate::config::ClustersServiceConfig;
use crate::events::EventHub;
use crate::placement::Placement;
use crate::records::{Records, cluster_key, node_pool_key};
use crate::shared::Shared;
use crate::versions::Versions;

pub(super) const ARO: &str = "/api/aro_hcp/v1alpha1";
pub(super) const V1: &str = "/api/clusters_mgmt/v1";

pub(super) struct Fixture {
    router: Router,
    pub(super) shared: Arc<Shared>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) events: Arc<EventHub>,
    _dir: tempfile::TempDir,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: http::HeaderMap,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The body of an answer with this status.
    #[track_caller]
    pub(super) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    /// The reason of an error with this status.
    #[track_caller]
    pub(super) fn reason(self, status: u16) -> String {
        self.expect(status)["reason"].as_str().expect("a reason").to_owned()
    }

    /// The fields of all problems, sorted.
    #[track_caller]
    pub(super) fn fields(self, status: u16) -> Vec<String> {
        let body = self.expect(status);
        let details = body["details"].as_array().expect("details");
        let mut fields: Vec<String> =
            details.iter().map(|one| one["field"].as_str().unwrap_or_default().to_owned()).collect();
        fields.sort_unstable();
        fields
    }
}

impl Fixture {
    pub(super) async fn new() -> Self {
        Self::configured(ClustersServiceConfig::default()).await
    }

    pub(super) async fn configured(config: ClustersServiceConfig) -> Self {
        let (store, dir) = crate::testing::store().await;
        let clock = ManualClock::at("2026-08-01T10:00:00Z".parse().unwrap());
        let metrics = Metrics::new();
        let config = config.check().expect("a good configuration");
        let records = Records::new(store.clone(), &metrics);
        let shared = Arc::new(Shared {
            environment: config.environment().unwrap(),
            placement: Placement::new(records.clone(), clock.clone(), config.shard_capacity),
            records,
            versions: Versions::default(),
            clock: clock.clone(),
            metrics: metrics.clone(),
            resolve: Arc::new(aro_net::SystemResolve),
            cloud: None,
            maestro: config.maestro().unwrap(),
            decisions: Decisions::new(&store, "clusters-service", clock.clone(), &metrics),
            config,
        });
        let events = EventHub::new(&shared.records, shared.environment.clone());
        let router = crate::api::router(shared.clone(), events.clone(), &metrics);
        Self { router, shared, clock, events, _dir: dir }
    }

    /// With an active shard.
    pub(super) async fn with_shard() -> Self {
        let fixture = Self::new().await;
        fixture.active_shard(1).await;
        fixture
    }

    pub(super) async fn active_shard(&self, number: u32) -> String {
        let shard = self.post(&format!("{ARO}/provision_shards"), bodies::shard(number)).await.expect(201);
        let id = shard["id"].as_str().unwrap().to_owned();
        let active = json!({"kind": "ProvisionShard", "status": "active"});
        self.patch(&format!("{ARO}/provision_shards/{id}"), active).await.expect(200);
        id
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    async fn with_body(&self, method: Method, path: &str, body: &Value) -> Answer {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// A list with parameters.
    pub(super) async fn list(&self, path: &str, query: &[(&str, &str)]) -> Answer {
        let encoded: String =
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        self.get(&format!("{path}?{encoded}")).await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Answer {
        self.with_body(Method::POST, path, &body).await
    }

    pub(super) async fn patch(&self, path: &str, body: Value) -> Answer {
        self.with_body(Method::PATCH, path, &body).await
    }

    pub(super) async fn delete(&self, path: &str) -> Answer {
        self.send(Request::delete(path).body(Body::empty()).unwrap()).await
    }

    /// A cluster with this name. Returns its address.
    pub(super) async fn cluster(&self, name: &str) -> String {
        let cluster = self.post(&format!("{ARO}/clusters"), bodies::cluster(name)).await.expect(202);
        // Creation times differ.
        self.clock.advance(SignedDuration::from_secs(1));
        cluster["href"].as_str().unwrap().to_owned()
    }

    /// A cluster that the pipelines made ready.
    pub(super) async fn ready_cluster(&self, name: &str) -> String {
        let href = self.cluster(name).await;
        self.set_state(&href, ClusterState::Ready).await;
        href
    }

    /// What a pipeline does.
    pub(super) async fn set_state(&self, href: &str, state: ClusterState) {
        let key = cluster_key(&cluster_id(href));
        let set = self.shared.records.clusters.update(&key, |record| {
            record.set_state(state, "");
            true
        });
        set.await.unwrap().expect("the cluster");
    }

    /// What a pipeline does.
    pub(super) async fn set_pool_state(&self, href: &str, state: NodePoolStateValue) {
        let pool = NodePoolId::parse(href.rsplit('/').next().unwrap()).unwrap();
        let key = node_pool_key(&cluster_id(href), &pool);
        let set = self.shared.records.pools.update(&key, |record| {
            record.set_state(state, "", self.shared.clock.now().into());
            true
        });
        set.await.unwrap().expect("the node pool");
    }
}

/// The cluster that an address is of or in.
pub(super) fn cluster_id(href: &str) -> ClusterId {
    ClusterId::parse(href.split('/').nth(5).unwrap()).unwrap()
}
