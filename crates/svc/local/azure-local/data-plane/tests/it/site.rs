//! A vault and an account in a temporary store, and requests to them.

use std::sync::Arc;
use std::time::Duration;

use aro_azure_local_data_plane::{
    AccessPolicy, Accounts, Action, BlobStore, Guard, KeyVaultStore, Principal, Refusal, Storage, Vault,
    blob_router, keyvault_router, website_router,
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
use parking_lot::Mutex;
use serde_json::Value;
use tower::ServiceExt as _;
use uuid::Uuid;

pub const TENANT: Uuid = Uuid::from_u128(0x1111);
pub const CALLER: Uuid = Uuid::from_u128(0xca11);
pub const VAULT_ID: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.KeyVault/vaults/kv";
pub const STORAGE_ID: &str =
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/acct";
/// Base64 of a key.
pub const ACCOUNT_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// Tokens are `<audience>`; the actions that were asked for are recorded, and those in `denied` are refused.
#[derive(Default)]
pub struct TestGuard {
    pub asked: Mutex<Vec<(String, Action)>>,
    pub denied: Mutex<Vec<&'static str>>,
}

#[async_trait]
impl Guard for TestGuard {
    async fn authenticate(&self, bearer: &str, audience: &str) -> Result<Principal, Refusal> {
        let (tenant_id, token) = match bearer.strip_prefix("foreign ") {
            Some(token) => (Uuid::from_u128(9), token),
            None => (TENANT, bearer),
        };
        if token != audience {
            return Err(Refusal::Unauthenticated);
        }
        Ok(Principal { tenant_id, object_id: CALLER, app_id: CALLER })
    }

    async fn authorize(&self, _: &Principal, scope: &str, action: Action) -> Result<(), Refusal> {
        self.asked.lock().push((scope.to_owned(), action));
        if self.denied.lock().contains(&action.name) {
            return Err(Refusal::Forbidden { message: "no role".to_owned() });
        }
        Ok(())
    }
}

pub struct TestAccounts {
    pub vault: Mutex<Vault>,
    pub storage: Mutex<Storage>,
}

#[async_trait]
impl Accounts for TestAccounts {
    async fn vault(&self, name: &str) -> Option<Vault> {
        (name == "kv").then(|| self.vault.lock().clone())
    }

    async fn storage(&self, name: &str) -> Option<Storage> {
        (name == "acct").then(|| self.storage.lock().clone())
    }
}

pub struct Site {
    pub guard: Arc<TestGuard>,
    pub accounts: Arc<TestAccounts>,
    pub clock: Arc<ManualClock>,
    pub blobs: BlobStore,
    pub vaults: KeyVaultStore,
    store: Arc<SqliteStore>,
    folder: tempfile::TempDir,
}

pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Bytes,
    pub body: Value,
}

impl Reply {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub fn code(&self) -> &str {
        self.body["error"]["code"]
            .as_str()
            .unwrap_or_else(|| panic!("no code in {} {}", self.status, self.text()))
    }

    /// The code of a storage error.
    pub fn storage_code(&self) -> &str {
        self.headers["x-ms-error-code"].to_str().unwrap()
    }
}

pub const BUDGET: u64 = 200 << 20;

impl Site {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap());
        let vault = Vault {
            resource_id: VAULT_ID.to_owned(),
            tenant_id: TENANT,
            soft_delete_days: 7,
            purge_protection: false,
            access_policies: vec![],
            rbac: true,
        };
        let storage = Storage {
            resource_id: STORAGE_ID.to_owned(),
            tenant_id: TENANT,
            keys: vec![Secret::new(ACCOUNT_KEY.to_owned())],
            delegation: Some(Secret::new(ACCOUNT_KEY.to_owned())),
            static_website: false,
            allow_shared_key: true,
        };
        let accounts = Arc::new(TestAccounts { vault: Mutex::new(vault), storage: Mutex::new(storage) });
        Self::open(folder, clock, accounts, BUDGET)
    }

    fn open(
        folder: tempfile::TempDir,
        clock: Arc<ManualClock>,
        accounts: Arc<TestAccounts>,
        budget: u64,
    ) -> Self {
        let shared: SharedClock = clock.clone();
        let store = SqliteStore::open(SqliteOptions::new(folder.path()), shared.clone()).unwrap();
        let documents: SharedStore = store.clone();
        let unreadable = UnreadableDocuments::default();
        Self {
            guard: Arc::default(),
            accounts,
            clock,
            blobs: BlobStore::new(&documents, shared, budget, &unreadable),
            vaults: KeyVaultStore::new(&documents, &unreadable),
            store,
            folder,
        }
    }

    /// The same store opened again.
    pub fn restart(self) -> Self {
        self.restart_with(BUDGET)
    }

    pub fn restart_with(self, budget: u64) -> Self {
        let Self { accounts, clock, store, folder, .. } = self;
        store.close();
        Self::open(folder, clock, accounts, budget)
    }

    pub fn advance(&self, by: SignedDuration) {
        self.clock.advance(by);
    }

    pub fn set_policy(&self, policy: AccessPolicy) {
        let mut vault = self.accounts.vault.lock();
        vault.rbac = false;
        vault.access_policies = vec![policy];
    }

    fn limits() -> BodyLimits {
        BodyLimits {
            max: 70 << 20,
            discard: 0,
            timeout: Duration::from_secs(10),
            budget: BodyBudget::of_bytes(256 << 20),
        }
    }

    pub async fn send(&self, router: Router, request: Request<Body>) -> Reply {
        let response = router.oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Reply { status, headers, bytes, body }
    }

    pub fn keyvault(&self) -> Router {
        let (guard, accounts) = (self.guard.clone(), self.accounts.clone());
        let login = "login.microsoftonline.com".to_owned();
        keyvault_router(self.vaults.clone(), accounts, guard, Self::limits(), self.clock.clone(), login)
    }

    pub fn blob(&self) -> Router {
        let (guard, accounts) = (self.guard.clone(), self.accounts.clone());
        let login = "login.microsoftonline.com".to_owned();
        blob_router(self.blobs.clone(), accounts, guard, Self::limits(), self.clock.clone(), login)
    }

    pub async fn kv(&self, method: &str, path: &str, body: Option<Value>) -> Reply {
        let separator = if path.contains('?') { '&' } else { '?' };
        let request = Request::builder()
            .method(method)
            .uri(format!("/{path}{separator}api-version=7.6"))
            .header("host", "kv.vault.azure.net")
            .header("authorization", "Bearer https://vault.azure.net")
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))
            .unwrap();
        self.send(self.keyvault(), request).await
    }

    pub async fn storage(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Reply {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/{path}"))
            .header("host", "acct.blob.core.windows.net")
            .header("x-ms-version", "2021-08-06");
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            request = request.header("authorization", "Bearer https://storage.azure.com");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(self.blob(), request.body(body.into()).unwrap()).await
    }

    pub async fn put_blob(&self, path: &str, body: impl Into<Body>) -> Reply {
        self.storage("PUT", path, &[("x-ms-blob-type", "BlockBlob")], body).await
    }

    pub async fn website(&self, method: &str, path: &str) -> Reply {
        let request = Request::builder()
            .method(method)
            .uri(format!("/{path}"))
            .header("host", "acct.z33.web.core.windows.net")
            .body(Body::empty())
            .unwrap();
        self.send(website_router(self.blobs.clone(), self.accounts.clone(), self.clock.clone()), request)
            .await
    }
}
