//! A local cloud on a free port, and its customer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_azure_local::{AzureLocal, AzureLocalConfig, AzureLocalPorts, CustomerAccount};
use aro_base::Secret;
use aro_cloud::resources::{GroupSpec, PrincipalType, Tags};
use aro_cloud::{ArmClient, Cloud, CloudConfig, SharedCredential};
use aro_net::SystemResolve;
use aro_runtime::{Listener, Metrics, Readiness, Scope, Section as _, SystemClock, launch};
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use uuid::Uuid;

pub struct World {
    pub account: CustomerAccount,
    pub cloud: Cloud,
    pub credential: SharedCredential,
    pub arm: ArmClient,
    scope: Scope,
    store: Arc<SqliteStore>,
    _dir: tempfile::TempDir,
}

impl World {
    pub async fn start() -> Self {
        Self::with(AzureLocalConfig::default()).await
    }

    pub async fn with(config: AzureLocalConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = SystemClock::shared();
        let store = SqliteStore::open(SqliteOptions::new(dir.path().join("store")), clock.clone()).unwrap();
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), "azure_local.listen").await.unwrap();
        let address = listener.local_addr();
        let scope = Scope::root("azure-local");
        let readiness = Readiness::default();
        let ports = AzureLocalPorts {
            listener,
            store: store.clone(),
            resolve: Arc::new(SystemResolve),
            clock: clock.clone(),
            metrics: Metrics::new(),
            readiness: readiness.clone(),
            dir: dir.path().join("cloud"),
        };
        launch::<AzureLocal>(&scope, config.check().unwrap(), ports).unwrap();
        let ready = async {
            while !readiness.is_ready() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), ready).await.expect("the cloud is ready");
        let account = CustomerAccount::read(&dir.path().join("cloud")).unwrap();
        let cloud = client(address, &dir.path().join("cloud/ca.pem"));
        let secret = Secret::new(account.client_secret.clone());
        let credential =
            cloud.client_secret(&account.tenant_id.to_string(), &account.client_id.to_string(), secret);
        let arm = cloud.arm(credential.clone());
        Self { account, cloud, credential, arm, scope, store, _dir: dir }
    }

    pub fn subscription(&self) -> String {
        self.account.subscription_id.to_string()
    }

    /// A resource group, and its id.
    pub async fn group(&self, name: &str) -> ResourceId {
        let spec = GroupSpec { location: "westus3".to_owned(), managed_by: None, tags: Tags::default() };
        self.arm.ensure_resource_group(&self.subscription(), name, &spec).await.unwrap();
        ResourceId::parse(&format!("/subscriptions/{}/resourceGroups/{name}", self.subscription())).unwrap()
    }

    /// The principal of the customer.
    pub async fn principal(&self) -> Uuid {
        let token = self.credential.token(&aro_cloud::Scope::new("https://management.azure.com/")).await;
        let token = token.unwrap().secret.expose().clone();
        let payload = aro_pki::jws::Unverified::of(&token).unwrap().payload;
        let claims: serde_json::Value = serde_json::from_slice(&payload).unwrap();
        claims["oid"].as_str().unwrap().parse().unwrap()
    }

    /// Assigns a role, by its name, at a scope.
    pub async fn assign(&self, scope: &ResourceId, principal: Uuid, role: &str) {
        let role = self.arm.find_role_definition(scope, role).await.unwrap().unwrap();
        let role: Uuid = role.name.parse().unwrap();
        self.arm
            .ensure_role_assignment(scope, &principal, PrincipalType::ServicePrincipal, &role)
            .await
            .unwrap();
    }

    pub async fn stop(self) {
        self.scope.close(Duration::from_secs(5)).await.unwrap();
        self.store.close();
    }
}

/// A client that reaches every host at one address.
fn client(address: SocketAddr, ca: &std::path::Path) -> Cloud {
    let config =
        CloudConfig { connect_to: Some(address), ca_file: Some(ca.to_owned()), ..CloudConfig::default() };
    Cloud::new(&config.check().unwrap(), Arc::new(SystemResolve), SystemClock::shared()).unwrap()
}
