//! Applications: tokens from the token endpoint for a secret, a certificate, or a federated token.
//!
//! The exchange is that of `azure_identity`, over our transport. Its own cache is not used, because it cannot be emptied
//! when a service refuses a token: each fetch makes a credential of its own, which costs some allocations. Nor does it read
//! refusals whose text has escaped characters, as those of Entra have; they are read here.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{Secret, SharedClock, Timestamp};
use async_trait::async_trait;
use azure_core::cloud::{CloudConfiguration, CustomConfiguration};
use azure_core::credentials::{AccessToken, Secret as SdkSecret, TokenCredential};
use azure_core::http::{ClientMethodOptions, ClientOptions, RetryOptions, Transport as SdkTransportOption};
use azure_identity::{
    ClientAssertion, ClientAssertionCredential, ClientAssertionCredentialOptions, ClientSecretCredential,
    ClientSecretCredentialOptions,
};
use bytes::Bytes;
use http::Response;
use serde::Deserialize;

use super::{CertificateAssertion, CredentialError, Fetch, Scope, Token};
use crate::error::ServiceError;
use crate::transport::{SdkTransport, Transport};

/// A token request takes at most this long.
const WITHIN: Duration = Duration::from_secs(15);

/// How an application proves its identity.
#[derive(Debug, Clone)]
pub enum Proof {
    /// A secret.
    Secret(Secret<String>),
    /// A certificate in memory.
    Certificate(Arc<CertificateAssertion>),
    /// A certificate and its key in files that are rotated.
    CertificateFiles {
        /// The certificate (PEM).
        certificate: PathBuf,
        /// Its key (PEM).
        key: PathBuf,
    },
    /// A token of another issuer, in a file that is rotated: workload identity.
    FederatedFile(PathBuf),
}

/// An application of a tenant.
pub struct EntraCredential {
    authority: String,
    tenant: String,
    client_id: String,
    proof: Proof,
    transport: Arc<dyn Transport>,
    clock: SharedClock,
}

impl std::fmt::Debug for EntraCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EntraCredential({} in {})", self.client_id, self.tenant)
    }
}

impl EntraCredential {
    /// An application that proves itself at this authority.
    pub fn new(
        authority: impl Into<String>,
        tenant: impl Into<String>,
        client_id: impl Into<String>,
        proof: Proof,
        transport: Arc<dyn Transport>,
        clock: SharedClock,
    ) -> Self {
        let (authority, tenant, client_id) = (authority.into(), tenant.into(), client_id.into());
        Self { authority, tenant, client_id, proof, transport, clock }
    }

    fn options(&self, transport: Arc<SdkTransport>) -> ClientOptions {
        let mut cloud = CustomConfiguration::default();
        cloud.authority_host.clone_from(&self.authority);
        ClientOptions {
            transport: Some(SdkTransportOption::new(transport)),
            retry: RetryOptions::none(),
            cloud: Some(Arc::new(CloudConfiguration::Custom(cloud))),
            ..ClientOptions::default()
        }
    }

    async fn assertion(&self, tenant: &str) -> Result<Option<String>, CredentialError> {
        let sign = |certificate: &CertificateAssertion| {
            let endpoint = format!("{}/{tenant}/oauth2/v2.0/token", self.authority.trim_end_matches('/'));
            let jti = uuid::Uuid::new_v4().to_string();
            let signed = certificate.sign(&self.client_id, &endpoint, &jti, self.clock.now());
            signed.map(Some).map_err(|error| CredentialError::Unusable(aro_base::chain(&error).to_string()))
        };
        match &self.proof {
            Proof::Secret(_) => Ok(None),
            Proof::Certificate(certificate) => sign(certificate),
            Proof::CertificateFiles { certificate, key } => {
                sign(&CertificateAssertion::from_files(certificate, key).await?)
            }
            Proof::FederatedFile(path) => super::read_small(path).await.map(Some),
        }
    }

    fn application(
        &self,
        tenant: &str,
        assertion: Option<String>,
        transport: Arc<SdkTransport>,
    ) -> azure_core::Result<Arc<dyn TokenCredential>> {
        let client_options = self.options(transport);
        Ok(match (&self.proof, assertion) {
            (Proof::Secret(secret), _) => {
                let secret = SdkSecret::new(secret.expose().clone());
                let options = ClientSecretCredentialOptions { client_options };
                ClientSecretCredential::new(tenant, self.client_id.clone(), secret, Some(options))?
            }
            (_, assertion) => {
                let assertion = Assertion(Secret::new(assertion.unwrap_or_default()));
                let options = ClientAssertionCredentialOptions { client_options };
                ClientAssertionCredential::new(
                    tenant.to_owned(),
                    self.client_id.clone(),
                    assertion,
                    Some(options),
                )?
            }
        })
    }
}

/// An assertion that was made before.
#[derive(Debug)]
struct Assertion(Secret<String>);

#[async_trait]
impl ClientAssertion for Assertion {
    async fn secret(&self, _: Option<ClientMethodOptions<'_>>) -> azure_core::Result<String> {
        Ok(self.0.expose().clone())
    }
}

#[async_trait]
impl Fetch for EntraCredential {
    async fn fetch(&self, scope: &Scope) -> Result<Token, CredentialError> {
        let tenant = scope.tenant.as_deref().unwrap_or(&self.tenant);
        let assertion = self.assertion(tenant).await?;
        let transport = Arc::new(SdkTransport::new(self.transport.clone(), WITHIN));
        let application = self.application(tenant, assertion, transport.clone());
        let application =
            application.map_err(|error| CredentialError::Unusable(short(&error.to_string())))?;
        let scopes = [scope.default_scope()];
        match application.get_token(&[scopes[0].as_str()], None).await {
            Ok(token) => Ok(convert(token)),
            Err(error) => {
                Err(transport.take_refusal().map_or_else(|| unavailable(&error), |reply| refused(&reply)))
            }
        }
    }
}

fn convert(token: AccessToken) -> Token {
    let expires_at =
        Timestamp::from_second(token.expires_on.unix_timestamp()).unwrap_or(Timestamp::UNIX_EPOCH);
    Token { secret: Secret::new(token.token.secret().to_owned()), expires_at }
}

/// There was no reply, or one that holds no token.
fn unavailable(error: &azure_core::Error) -> CredentialError {
    CredentialError::Unavailable(short(&aro_base::chain(error).to_string()))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    error_codes: Vec<u32>,
}

fn refused(reply: &Response<Bytes>) -> CredentialError {
    let status = reply.status();
    let message = short(&ServiceError::parse(status, reply.body()).to_string());
    if status.is_server_error() || matches!(status.as_u16(), 408 | 429) {
        return CredentialError::Unavailable(message);
    }
    let refusal: Refusal = serde_json::from_slice(reply.body()).unwrap_or_default();
    CredentialError::Refused { codes: refusal.error_codes, message }
}

/// One line of a bounded length.
fn short(text: &str) -> String {
    const MAX: usize = 500;
    text.lines().next().unwrap_or_default().chars().take(MAX).collect()
}
