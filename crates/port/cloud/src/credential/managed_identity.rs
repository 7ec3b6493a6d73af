//! Managed identities of a virtual machine: tokens from its instance metadata service.
//!
//! `azure_identity` fixes the service's address and reads the environment; here the address is configuration, so that the
//! local emulation can serve it.

use std::sync::Arc;
use std::time::Duration;

use aro_base::{Secret, SharedClock, SignedDuration, Timestamp};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde::Deserialize;
use url::Url;

use super::{CredentialError, Fetch, Scope, Token};
use crate::error::ServiceError;
use crate::transport::Transport;

/// The instance metadata service of every virtual machine in Azure.
pub const IMDS: &str = "http://169.254.169.254";

const API_VERSION: &str = "2018-02-01";
const WITHIN: Duration = Duration::from_secs(10);

/// Which identity of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManagedIdentity {
    /// Its own.
    System,
    /// A user-assigned one, by its client id.
    ClientId(String),
    /// A user-assigned one, by its resource id.
    ResourceId(String),
}

/// A managed identity of the machine that this process runs on.
pub struct ManagedIdentityCredential {
    host: Url,
    identity: ManagedIdentity,
    transport: Arc<dyn Transport>,
    clock: SharedClock,
}

impl std::fmt::Debug for ManagedIdentityCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ManagedIdentityCredential({:?})", self.identity)
    }
}

impl ManagedIdentityCredential {
    /// An identity served at this host; [`IMDS`] in Azure.
    pub fn new(
        host: Url,
        identity: ManagedIdentity,
        transport: Arc<dyn Transport>,
        clock: SharedClock,
    ) -> Self {
        Self { host, identity, transport, clock }
    }

    fn request(&self, scope: &Scope) -> Result<Request<Bytes>, CredentialError> {
        let mut url = self.host.clone();
        url.set_path("/metadata/identity/oauth2/token");
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("api-version", API_VERSION).append_pair("resource", &scope.audience);
            match &self.identity {
                ManagedIdentity::System => {}
                ManagedIdentity::ClientId(id) => {
                    query.append_pair("client_id", id);
                }
                ManagedIdentity::ResourceId(id) => {
                    query.append_pair("msi_res_id", id);
                }
            }
        }
        let request = Request::builder().method(Method::GET).uri(url.as_str()).header("metadata", "true");
        let unusable = |_| CredentialError::Unusable("the metadata service's address".to_owned());
        request.body(Bytes::new()).map_err(unusable)
    }
}

#[derive(Deserialize)]
struct Reply {
    access_token: Secret<String>,
    /// Seconds, as text.
    expires_in: Number,
}

/// The service sends numbers as text; some implementations as numbers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Plain(i64),
}

impl Reply {
    fn into_token(self, now: Timestamp) -> Option<Token> {
        let seconds = match self.expires_in {
            Number::Text(text) => text.parse().ok()?,
            Number::Plain(seconds) => seconds,
        };
        let expires_at = now.checked_add(SignedDuration::from_secs(seconds)).ok()?;
        Some(Token { secret: self.access_token, expires_at })
    }
}

#[async_trait]
impl Fetch for ManagedIdentityCredential {
    async fn fetch(&self, scope: &Scope) -> Result<Token, CredentialError> {
        if scope.tenant.is_some() {
            return Err(CredentialError::OtherTenant);
        }
        let sent = self.transport.send(self.request(scope)?, WITHIN).await;
        let reply =
            sent.map_err(|error| CredentialError::Unavailable(aro_base::chain(&error).to_string()))?;
        let status = reply.status();
        if status != StatusCode::OK {
            let message = ServiceError::parse(status, reply.body()).to_string();
            // 404 and 410: the service is updated, or the identity is being attached.
            let transient = status.is_server_error() || matches!(status.as_u16(), 404 | 408 | 410 | 429);
            return Err(match transient {
                true => CredentialError::Unavailable(message),
                false => CredentialError::Refused { codes: Vec::new(), message },
            });
        }
        let token = serde_json::from_slice::<Reply>(reply.body()).ok();
        let token = token.and_then(|reply| reply.into_token(self.clock.now()));
        token.ok_or_else(|| CredentialError::Unavailable("the reply holds no token".to_owned()))
    }
}
