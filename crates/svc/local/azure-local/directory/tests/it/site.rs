//! A directory in a temporary store, and requests to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_azure_local_directory::{
    Application, ApplicationSpec, Directory, DirectorySettings, Endpoints, Fetch, FetchError, Tenant,
    graph_router, identity_router, login_router,
};
use aro_base::{ManualClock, Secret, SharedClock, SignedDuration, Timestamp};
use aro_store::{SharedStore, UnreadableDocuments};
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use aro_web::{BodyBudget, BodyLimits};
use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;
use url::Url;
use uuid::Uuid;

pub const TENANT: Uuid = Uuid::from_u128(0x1111);
pub const OTHER_TENANT: Uuid = Uuid::from_u128(0x2222);
pub const FIRST_PARTY: Uuid = Uuid::from_u128(0xf1dd);
pub const ARM: &str = "https://management.azure.com";
pub const ISSUER: &str = "https://oidc.example/c1";

/// Documents of issuers by URL.
#[derive(Default)]
pub struct Documents(pub parking_lot::Mutex<HashMap<String, Vec<u8>>>);

#[async_trait]
impl Fetch for Documents {
    async fn fetch(&self, url: &Url, _: usize) -> Result<Bytes, FetchError> {
        let found = self.0.lock().get(url.as_str()).cloned();
        found.map(Bytes::from).ok_or_else(|| FetchError("not found".to_owned()))
    }
}

pub struct Site {
    pub directory: Directory,
    pub clock: Arc<ManualClock>,
    pub documents: Arc<Documents>,
    pub endpoints: Arc<Endpoints>,
    store: Arc<SqliteStore>,
    folder: tempfile::TempDir,
}

pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

pub fn settings() -> DirectorySettings {
    DirectorySettings {
        identity_caller: Some(FIRST_PARTY),
        identity_audience: "https://msi.local".to_owned(),
        audiences: vec!["https://extra.local".to_owned()],
        ..DirectorySettings::default()
    }
}

async fn open(
    folder: &tempfile::TempDir,
    clock: SharedClock,
    settings: DirectorySettings,
) -> (Directory, Arc<SqliteStore>) {
    let store = SqliteStore::open(SqliteOptions::new(folder.path()), clock.clone()).unwrap();
    let shared: SharedStore = store.clone();
    (Directory::open(shared, settings, clock, &UnreadableDocuments::default()).await.unwrap(), store)
}

fn endpoints(directory: &Directory, documents: &Arc<Documents>) -> Arc<Endpoints> {
    let bodies = BodyLimits {
        max: 256 * 1024,
        discard: 0,
        timeout: Duration::from_secs(5),
        budget: BodyBudget::of_bytes(16 << 20),
    };
    Endpoints::new(directory.clone(), bodies, documents.clone())
}

impl Site {
    pub async fn new() -> Self {
        Self::with(settings()).await
    }

    pub async fn with(settings: DirectorySettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap());
        let (directory, store) = open(&folder, clock.clone(), settings).await;
        for (id, domain) in [(TENANT, "one.example"), (OTHER_TENANT, "two.example")] {
            let tenant = Tenant { id, display_name: domain.to_owned(), domains: vec![domain.to_owned()] };
            directory.ensure_tenant(tenant).await.unwrap();
        }
        let documents = Arc::new(Documents::default());
        let endpoints = endpoints(&directory, &documents);
        Self { directory, clock, documents, endpoints, store, folder }
    }

    /// The same store in a new directory, as after a restart.
    pub async fn restart(self) -> Self {
        let Self { directory, clock, documents, store, folder, .. } = self;
        let settings = directory.settings().clone();
        store.close();
        let (directory, store) = open(&folder, clock.clone(), settings).await;
        let endpoints = endpoints(&directory, &documents);
        Self { directory, clock, documents, endpoints, store, folder }
    }

    pub fn advance(&self, by: SignedDuration) {
        self.clock.advance(by);
    }

    pub async fn application(&self, name: &str, secret: &str) -> Arc<Application> {
        let spec = ApplicationSpec {
            secrets: vec![Secret::new(secret.to_owned())],
            ..ApplicationSpec::new(TENANT, name)
        };
        self.directory.ensure_application(spec).await.unwrap()
    }

    pub async fn send(&self, router: Router, request: Request<Body>) -> Reply {
        let response = router.oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Reply { status, headers, body }
    }

    pub async fn get(&self, path: &str) -> Reply {
        let request = Request::get(path).header("host", "login.local:8443").body(Body::empty()).unwrap();
        self.send(login_router(self.endpoints.clone()), request).await
    }

    /// Posts a form to the token endpoint.
    pub async fn token(&self, tenant: &str, form: &[(&str, &str)]) -> Reply {
        self.form(&format!("/{tenant}/oauth2/v2.0/token"), form).await
    }

    pub async fn form(&self, path: &str, form: &[(&str, &str)]) -> Reply {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = Request::post(path)
            .header("host", "login.local:8443")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Body::from(body))
            .unwrap();
        self.send(login_router(self.endpoints.clone()), request).await
    }

    /// A request with a secret.
    pub async fn secret_token(&self, client: &str, secret: &str, scope: &str) -> Reply {
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", client),
            ("client_secret", secret),
            ("scope", scope),
        ];
        self.token(&TENANT.to_string(), &form).await
    }

    /// A request with a client assertion.
    pub async fn assertion_token(&self, client: Uuid, assertion: &str, scope: &str) -> Reply {
        let client = client.to_string();
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", client.as_str()),
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
            ("client_assertion", assertion),
            ("scope", scope),
        ];
        self.token(&TENANT.to_string(), &form).await
    }

    pub async fn graph(&self, method: &str, path: &str, token: &str, body: Option<Value>) -> Reply {
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "graph.microsoft.com")
            .header("authorization", format!("Bearer {token}"))
            .body(body)
            .unwrap();
        self.send(graph_router(self.endpoints.clone()), request).await
    }

    pub async fn identity(&self, method: &str, url: &str, token: Option<&str>, body: Option<Value>) -> Reply {
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request = Request::builder().method(method).uri(url);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.send(identity_router(self.endpoints.clone()), request.body(body).unwrap()).await
    }
}

impl Reply {
    /// The number of Entra's error.
    pub fn code(&self) -> u64 {
        self.body["error_codes"][0]
            .as_u64()
            .unwrap_or_else(|| panic!("no code in {} {}", self.status, self.body))
    }

    pub fn access_token(&self) -> &str {
        self.body["access_token"]
            .as_str()
            .unwrap_or_else(|| panic!("no token in {} {}", self.status, self.body))
    }
}
