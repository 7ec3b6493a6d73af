//! The way in: transport, credentials and clients from one configuration.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{Secret, SharedClock};
use aro_net::{Backoff, Resolve};
use aro_runtime::Checked;
use async_trait::async_trait;
use rustls::ClientConfig;
use url::Url;

use crate::arm::ArmClient;
use crate::config::CloudConfig;
use crate::credential::{
    CachedCredential, CertificateAssertion, EntraCredential, Fetch, ManagedIdentity,
    ManagedIdentityCredential, Proof, SharedCredential,
};
use crate::data_plane::{Blobs, Certificates, CheckAccess, MsiDataPlane, Secrets};
use crate::pipeline::{Core, Pipeline};
use crate::retry::RetryBudget;
use crate::throttle::Throttle;
use crate::transport::{HyperTransport, Transport, TrustError, client_config};

/// Between attempts.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10)).with_jitter(50);
/// Between attempts while a role that was just assigned is not known everywhere.
const ROLE_BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(30));
/// Between polls of an operation in Azure, where one takes seconds to minutes.
const AZURE_POLLS: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));
/// Between polls of an operation in the local emulation.
const LOCAL_POLLS: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));

/// Why there is no connection to the cloud.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The trusted authorities cannot be loaded.
    #[error("load the authorities of the cloud")]
    Trust(#[from] TrustError),
    /// A URL of the configuration. A checked section has none of these.
    #[error("parse cloud.{0}")]
    Url(&'static str, #[source] url::ParseError),
}

/// A cloud: Azure or its local emulation. Cloning is cheap; clones share connections, quotas and the retry budget.
#[derive(Clone)]
pub struct Cloud {
    core: Core,
    endpoint: Url,
    authority: String,
    audience: String,
    polls: Backoff,
    operation_deadline: Duration,
}

impl std::fmt::Debug for Cloud {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cloud({})", self.endpoint)
    }
}

/// Leads every host to one address.
#[derive(Debug, Clone, Copy)]
struct OneAddress(SocketAddr);

#[async_trait]
impl Resolve for OneAddress {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<SocketAddr> {
        Ok(self.0)
    }
}

impl Cloud {
    /// Connects as configured; reads the authorities' files. `connect_to` replaces the resolver.
    pub fn new(
        config: &Checked<CloudConfig>,
        resolve: Arc<dyn Resolve>,
        clock: SharedClock,
    ) -> Result<Self, SetupError> {
        let tls = client_config(config.ca_file.as_deref(), config.connect_to.is_none())?;
        Self::with_tls(config, resolve, tls, clock)
    }

    /// Connects with a TLS configuration of the caller.
    pub fn with_tls(
        config: &Checked<CloudConfig>,
        resolve: Arc<dyn Resolve>,
        tls: Arc<ClientConfig>,
        clock: SharedClock,
    ) -> Result<Self, SetupError> {
        let resolve = config.connect_to.map_or(resolve, |address| Arc::new(OneAddress(address)));
        Self::with_transport(config, Arc::new(HyperTransport::new(resolve, tls)), clock)
    }

    /// Sends everything through a transport of the caller.
    pub fn with_transport(
        config: &Checked<CloudConfig>,
        transport: Arc<dyn Transport>,
        clock: SharedClock,
    ) -> Result<Self, SetupError> {
        let core = Core {
            transport,
            clock,
            throttle: Arc::new(Throttle::new(config.requests_per_second)),
            budget: Arc::new(RetryBudget::new(config.retry_budget)),
            backoff: BACKOFF,
            role_backoff: ROLE_BACKOFF,
            deadline: config.deadline.get(),
        };
        Ok(Self {
            core,
            endpoint: Url::parse(&config.endpoint).map_err(|error| SetupError::Url("endpoint", error))?,
            authority: config.authority.trim_end_matches('/').to_owned(),
            audience: config.audience.clone(),
            polls: if config.connect_to.is_some() { LOCAL_POLLS } else { AZURE_POLLS },
            operation_deadline: config.operation_deadline.get(),
        })
    }

    /// Other delays between attempts and between polls, e.g. for tests.
    pub fn with_delays(mut self, attempts: Backoff, polls: Backoff) -> Self {
        self.core.backoff = attempts;
        self.polls = polls;
        self
    }

    /// The same connections with another deadline of calls and of the operations that they start, e.g. of the step of a
    /// pipeline that makes them.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        let mut cloud = self.clone();
        cloud.core.deadline = deadline.min(self.core.deadline);
        cloud.operation_deadline = deadline.min(self.operation_deadline);
        cloud
    }

    /// Other delays between attempts while a role is missing, e.g. for tests.
    pub fn with_role_delays(mut self, attempts: Backoff) -> Self {
        self.core.role_backoff = attempts;
        self
    }

    /// An application with a secret.
    pub fn client_secret(&self, tenant: &str, client_id: &str, secret: Secret<String>) -> SharedCredential {
        self.application(tenant, client_id, Proof::Secret(secret))
    }

    /// An application with a certificate.
    pub fn client_certificate(
        &self,
        tenant: &str,
        client_id: &str,
        certificate: CertificateAssertion,
    ) -> SharedCredential {
        self.application(tenant, client_id, Proof::Certificate(Arc::new(certificate)))
    }

    /// An application with a certificate in files that are rotated.
    pub fn client_certificate_files(
        &self,
        tenant: &str,
        client_id: &str,
        certificate: PathBuf,
        key: PathBuf,
    ) -> SharedCredential {
        self.application(tenant, client_id, Proof::CertificateFiles { certificate, key })
    }

    /// A workload identity: the token of a service account in a file, exchanged for one of the cloud.
    pub fn workload_identity(&self, tenant: &str, client_id: &str, token_file: PathBuf) -> SharedCredential {
        self.application(tenant, client_id, Proof::FederatedFile(token_file))
    }

    /// A managed identity of this machine, from its metadata service ([`crate::IMDS`] in Azure).
    pub fn managed_identity(&self, host: Url, identity: ManagedIdentity) -> SharedCredential {
        let (transport, clock) = (self.core.transport.clone(), self.core.clock.clone());
        self.cached(ManagedIdentityCredential::new(host, identity, transport, clock))
    }

    /// An application, with any proof.
    pub fn application(&self, tenant: &str, client_id: &str, proof: Proof) -> SharedCredential {
        let (transport, clock) = (self.core.transport.clone(), self.core.clock.clone());
        self.cached(EntraCredential::new(&self.authority, tenant, client_id, proof, transport, clock))
    }

    fn cached(&self, fetch: impl Fetch) -> SharedCredential {
        Arc::new(CachedCredential::new(fetch, self.core.clock.clone()))
    }

    fn pipeline(&self, credential: SharedCredential) -> Pipeline {
        Pipeline { core: self.core.clone(), credential }
    }

    /// Resource Manager.
    pub fn arm(&self, credential: SharedCredential) -> ArmClient {
        ArmClient::new(
            self.pipeline(credential),
            self.endpoint.clone(),
            self.audience.clone(),
            self.polls,
            self.operation_deadline,
        )
    }

    /// The secrets of a Key Vault (`https://<vault>.vault.azure.net`).
    pub fn secrets(&self, credential: SharedCredential, vault: Url) -> Secrets {
        Secrets::new(self.pipeline(credential), vault)
    }

    /// The certificates of a Key Vault.
    pub fn certificates(&self, credential: SharedCredential, vault: Url) -> Certificates {
        Certificates::new(self.pipeline(credential), vault)
    }

    /// The blobs of a storage account (`https://<account>.blob.core.windows.net`).
    pub fn blobs(&self, credential: SharedCredential, account: Url) -> Blobs {
        Blobs::new(self.pipeline(credential), account)
    }

    /// The data plane of managed identities, with the audience of its tokens. Tokens are requested only for tenants of
    /// this cloud's authority.
    pub fn msi_data_plane(&self, credential: SharedCredential, audience: &str) -> MsiDataPlane {
        MsiDataPlane::new(self.pipeline(credential), audience)
    }

    /// Permission checks of a region (`https://<region>.authorization.azure.net`).
    pub fn check_access(&self, credential: SharedCredential, endpoint: Url) -> CheckAccess {
        CheckAccess::new(self.pipeline(credential), endpoint)
    }
}
