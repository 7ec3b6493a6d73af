//! A cloud with one subscription, its owner and a principal without rights.
#![allow(clippy::unwrap_used, reason = "a fixture that cannot be built fails its test")]

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aro_arm_server::{ArmServer, Options as ServerOptions};
use aro_azure_local_engine::authorization::Assignment;
use aro_azure_local_engine::{
    Cloud, Directory, DirectoryError, FederatedCredential, IdentityFacts, NoFaults, Options, routes,
};
use aro_base::{ManualClock, Timestamp};
use aro_control::ReconcileMetrics;
use aro_runtime::{Metrics, Scope};
use aro_store::UnreadableDocuments;
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use aro_web::{BodyBudget, BodyLimits};
use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

pub const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000001";
pub const TENANT: &str = "00000000-0000-0000-0000-0000000000aa";
pub const OWNER: &str = "00000000-0000-0000-0000-0000000000b1";
pub const GUEST: &str = "00000000-0000-0000-0000-0000000000b2";
pub const NETWORK: &str = "2024-07-01";
pub const GROUPS: &str = "2024-11-01";

/// Principals by object id, identities by resource id.
#[derive(Default)]
pub struct Principals {
    identities: Mutex<HashMap<String, IdentityFacts>>,
    pub credentials: Mutex<HashMap<String, Vec<FederatedCredential>>>,
}

#[async_trait::async_trait]
impl Directory for Principals {
    async fn register_identity(&self, _: &str, id: &str, _: &str) -> Result<IdentityFacts, DirectoryError> {
        let mut identities = self.identities.lock().unwrap();
        let facts = || IdentityFacts {
            principal_id: uuid::Uuid::new_v4().to_string(),
            client_id: uuid::Uuid::new_v4().to_string(),
        };
        Ok(identities.entry(id.to_owned()).or_insert_with(facts).clone())
    }

    async fn remove_identity(&self, _: &str, id: &str) -> Result<(), DirectoryError> {
        self.identities.lock().unwrap().remove(id);
        Ok(())
    }

    async fn set_federated_credentials(
        &self,
        _: &str,
        id: &str,
        credentials: Vec<FederatedCredential>,
    ) -> Result<(), DirectoryError> {
        self.credentials.lock().unwrap().insert(id.to_owned(), credentials);
        Ok(())
    }

    async fn has_principal(&self, _: &str, object_id: &str) -> Result<bool, DirectoryError> {
        let identities = self.identities.lock().unwrap();
        Ok([OWNER, GUEST].contains(&object_id)
            || identities.values().any(|facts| facts.principal_id == object_id))
    }
}

pub struct World {
    pub cloud: Cloud,
    pub principals: Arc<Principals>,
    pub clock: Arc<ManualClock>,
    router: Router,
    scope: Scope,
    store: Arc<SqliteStore>,
    dir: Option<tempfile::TempDir>,
}

pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Reply {
    pub fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self
    }
}

impl World {
    pub async fn new() -> Self {
        Self::with_operation_time(Duration::ZERO).await
    }

    pub async fn with_operation_time(operation_time: Duration) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap());
        let mut world = Self::open(dir.path(), clock, Arc::default(), operation_time).await;
        world.dir = Some(dir);
        world
    }

    async fn open(
        dir: &Path,
        clock: Arc<ManualClock>,
        principals: Arc<Principals>,
        operation_time: Duration,
    ) -> Self {
        let store = SqliteStore::open(SqliteOptions::new(dir.join("store.db")), clock.clone()).unwrap();
        let metrics = Metrics::new();
        let faults = Arc::new(NoFaults);
        let options = Options { operation_time, mutation_log: 1 << 20, forwarded: &[], faults };
        let unreadable = UnreadableDocuments::new(&metrics);
        let cloud =
            Cloud::open(store.clone(), clock.clone(), principals.clone(), unreadable, options).await.unwrap();
        cloud.ensure_subscription(SUBSCRIPTION, "Test", TENANT).await.unwrap();
        cloud.grants().assign(Assignment {
            id: "owner".to_owned(),
            scope: format!("/subscriptions/{SUBSCRIPTION}"),
            role: "8e3af657-a8ff-443c-a75c-2fe8c4bcb635".to_owned(),
            principal: OWNER.to_owned(),
            effective: Timestamp::UNIX_EPOCH,
        });
        let scope = Scope::root("test");
        cloud.start(&ReconcileMetrics::new(&metrics), &scope);
        let body = BodyLimits {
            max: 1 << 20,
            discard: 0,
            timeout: Duration::from_secs(5),
            budget: BodyBudget::of_bytes(8 << 20),
        };
        let server = ArmServer::new(
            Arc::new(cloud.clone()),
            routes(),
            &metrics,
            &ServerOptions { name: "cloud", body },
        );
        Self { cloud, principals, clock, router: server.unwrap().into_router(), scope, store, dir: None }
    }

    /// Stops everything and opens the same data again.
    pub async fn restart(self, operation_time: Duration) -> Self {
        self.scope.close(Duration::from_secs(5)).await.unwrap();
        self.store.close();
        let dir = self.dir.unwrap();
        let mut world = Self::open(dir.path(), self.clock, self.principals, operation_time).await;
        world.dir = Some(dir);
        world
    }

    pub async fn call(&self, principal: &str, method: Method, path: &str, body: Option<&Value>) -> Reply {
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.send(principal, method, path, body, &[]).await
    }

    pub async fn send(
        &self,
        principal: &str,
        method: Method,
        path: &str,
        body: Body,
        headers: &[(&str, &str)],
    ) -> Reply {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "management.azure.com")
            .header("x-forwarded-proto", "https")
            .header("content-type", "application/json")
            .header("x-ms-client-object-id", principal)
            .header("x-ms-client-principal-name", principal)
            .header("x-ms-home-tenant-id", TENANT);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Reply { status: parts.status, headers: parts.headers, body }
    }

    pub async fn put(&self, path: &str, body: Value) -> Reply {
        self.call(OWNER, Method::PUT, path, Some(&body)).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.call(OWNER, Method::GET, path, None).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.call(OWNER, Method::DELETE, path, None).await
    }

    /// Makes a resource group and returns its path.
    pub async fn group(&self, name: &str) -> String {
        let path = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}");
        self.put(&format!("{path}?api-version={GROUPS}"), serde_json::json!({"location": "westus3"}))
            .await
            .expect(201);
        path
    }

    /// Waits until a path answers 404.
    pub async fn until_gone(&self, path: &str) {
        let gone = async {
            while self.get(path).await.status != StatusCode::NOT_FOUND {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the resource goes");
    }
}

/// The path of a network resource in a group.
pub fn network(group: &str, rest: &str) -> String {
    format!("{group}/providers/Microsoft.Network/{rest}?api-version={NETWORK}")
}
