//! One local cloud with a store of its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aro_azure_local::{
    AdminAccess, AdminClient, AzureLocal, AzureLocalConfig, AzureLocalPorts, CustomerAccount, Rule,
    RuleStatus,
};
use aro_base::Secret;
use aro_cloud::{Cloud, CloudConfig, HyperTransport, SharedCredential, Transport, client_config};
use aro_net::{Backoff, Resolve, SystemResolve};
use aro_runtime::{Checked, Listener, Metrics, Period, Readiness, Scope, Section as _, SystemClock, launch};
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde_json::Value;
use tempfile::TempDir;

/// How long the cloud may take to start or stop.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long one request may take.
const WITHIN: Duration = Duration::from_secs(20);

/// A running cloud.
pub struct Site {
    pub account: CustomerAccount,
    config: Checked<CloudConfig>,
    key: String,
    scope: Scope,
    store: Arc<SqliteStore>,
    dir: TempDir,
}

impl Site {
    /// Starts a cloud wherever there is room.
    pub async fn start() -> Result<Self> {
        Self::start_with(AzureLocalConfig::default()).await
    }

    /// The same with settings of the test's own.
    pub async fn start_with(config: AzureLocalConfig) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let files = dir.path().join("azure-local");
        let clock = SystemClock::shared();
        let store = SqliteStore::open(SqliteOptions::new(dir.path().join("store")), clock.clone())?;
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), "azure_local.listen").await?;
        let address = listener.local_addr();
        let (scope, readiness) = (Scope::root("azure-local"), Readiness::new());
        let ports = AzureLocalPorts {
            listener,
            store: store.clone(),
            resolve: Arc::new(SystemResolve),
            clock,
            metrics: Metrics::new(),
            readiness: readiness.clone(),
            dir: files.clone(),
        };
        launch::<AzureLocal>(&scope, config.check()?, ports)?;
        tokio::time::timeout(DEADLINE, readiness.ready()).await.context("the local cloud is never ready")?;
        let config = CloudConfig {
            connect_to: Some(address),
            ca_file: Some(files.join("ca.pem")),
            deadline: Period::secs(30),
            operation_deadline: Period::secs(60),
            retry_budget: 100,
            requests_per_second: 1_000_000,
            ..CloudConfig::default()
        };
        Ok(Self {
            account: CustomerAccount::read(&files)?,
            config: config.check()?,
            key: AdminAccess::read(&files)?.key,
            scope,
            store,
            dir,
        })
    }

    /// The cloud's own directory.
    pub fn files(&self) -> PathBuf {
        self.dir.path().join("azure-local")
    }

    /// Connections of their own.
    pub fn transport(&self) -> Result<Arc<HyperTransport>> {
        transport(&self.config)
    }

    /// A client with tiny delays over a transport.
    pub fn cloud(&self, transport: Arc<dyn Transport>) -> Result<Cloud> {
        let cloud = Cloud::with_transport(&self.config, transport, SystemClock::shared())?;
        Ok(small_delays(cloud))
    }

    /// The customer, which owns the subscription.
    pub fn customer(&self, cloud: &Cloud) -> SharedCredential {
        let secret = Secret::new(self.account.client_secret.clone());
        cloud.client_secret(&self.account.tenant_id.to_string(), &self.account.client_id.to_string(), secret)
    }

    /// The subscription that the customer owns.
    pub fn subscription(&self) -> String {
        self.account.subscription_id.to_string()
    }

    /// The administration over a transport that keeps connections.
    pub fn administration(&self, transport: Arc<dyn Transport>) -> Administration {
        Administration { transport, key: self.key.clone() }
    }

    /// The administration as the command line calls it.
    pub fn admin_client(&self) -> Result<AdminClient> {
        Ok(AdminClient::open(&self.files())?)
    }

    /// Stops the cloud; fails if anything of it is late.
    pub async fn stop(self) -> Result<()> {
        let closed = self.scope.close(DEADLINE).await;
        ensure!(closed.is_ok(), "the local cloud does not stop: {closed:?}");
        self.store.close();
        Ok(())
    }
}

fn transport(config: &Checked<CloudConfig>) -> Result<Arc<HyperTransport>> {
    let tls = client_config(config.ca_file.as_deref(), false)?;
    let address = config.connect_to.context("the cloud has an address")?;
    Ok(Arc::new(HyperTransport::new(Arc::new(OneAddress(address)), tls)))
}

/// Delays of milliseconds, where Azure's clients wait for seconds.
pub fn small_delays(cloud: Cloud) -> Cloud {
    let millis = |first, max| Backoff::new(Duration::from_millis(first), Duration::from_millis(max));
    cloud.with_delays(millis(1, 10), millis(10, 50)).with_role_delays(millis(3, 20))
}

/// Leads every host to one address.
#[derive(Debug)]
struct OneAddress(SocketAddr);

#[async_trait]
impl Resolve for OneAddress {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<SocketAddr> {
        Ok(self.0)
    }
}

/// Calls the administration of the cloud.
#[derive(Clone)]
pub struct Administration {
    transport: Arc<dyn Transport>,
    key: String,
}

impl Administration {
    /// Any call.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value)> {
        let request = Request::builder()
            .method(method)
            .uri(format!("https://localhost/_aro/cloud/{path}"))
            .header("authorization", format!("Bearer {}", self.key))
            .header("content-type", "application/json")
            .body(Bytes::from(body.map(Value::to_string).unwrap_or_default()))?;
        let reply = self.transport.send(request, WITHIN).await?;
        Ok((reply.status(), serde_json::from_slice(reply.body())?))
    }

    /// Adds a rule.
    pub async fn add(&self, rule: &Rule) -> Result<RuleStatus> {
        let (status, body) = self.call(Method::POST, "faults", Some(&serde_json::to_value(rule)?)).await?;
        ensure!(status == StatusCode::CREATED, "{status}: {body}");
        Ok(serde_json::from_value(body)?)
    }

    /// Removes a rule and returns what it has done.
    pub async fn clear(&self, id: u64) -> Result<RuleStatus> {
        let (status, mut body) = self.call(Method::DELETE, &format!("faults/{id}"), None).await?;
        ensure!(status == StatusCode::OK, "{status}: {body}");
        Ok(serde_json::from_value(body["rules"][0].take())?)
    }
}

/// The client of a cloud that another process runs.
pub fn client_of(files: &Path, address: SocketAddr) -> Result<(Cloud, SharedCredential, CustomerAccount)> {
    let config = CloudConfig {
        connect_to: Some(address),
        ca_file: Some(files.join("ca.pem")),
        requests_per_second: 1_000_000,
        ..CloudConfig::default()
    };
    let config = config.check()?;
    let cloud = small_delays(Cloud::with_transport(&config, transport(&config)?, SystemClock::shared())?);
    let account = CustomerAccount::read(files)?;
    let secret = Secret::new(account.client_secret.clone());
    let credential =
        cloud.client_secret(&account.tenant_id.to_string(), &account.client_id.to_string(), secret);
    Ok((cloud, credential, account))
}
