//! Tokens: the trait, and the kinds of credentials.
//!
//! A kind only fetches ([`Fetch`]); [`CachedCredential`] around it remembers, refreshes early and lets one caller fetch for
//! all. Secrets, keys and assertions are read again at each fetch where they are files, so that rotation needs no restart.

mod assertion;
mod cache;
mod entra;
mod managed_identity;

use std::sync::Arc;

use aro_base::{Class, Classify, Secret, Timestamp};
use async_trait::async_trait;

pub use assertion::{CertificateAssertion, CertificateError};
pub use cache::CachedCredential;
pub use entra::{EntraCredential, Proof};
pub use managed_identity::{IMDS, ManagedIdentity, ManagedIdentityCredential};

/// A credential as it is passed around.
pub type SharedCredential = Arc<dyn Credential>;

/// What a token is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The service, e.g. `https://management.azure.com/`.
    pub audience: String,
    /// The tenant, if it is not the credential's own.
    pub tenant: Option<String>,
}

impl Scope {
    /// A service, in the credential's own tenant.
    pub fn new(audience: impl Into<String>) -> Self {
        Self { audience: audience.into(), tenant: None }
    }

    /// The same in another tenant.
    pub fn in_tenant(self, tenant: impl Into<String>) -> Self {
        Self { tenant: Some(tenant.into()), ..self }
    }

    /// As the token endpoint takes it. An audience keeps its trailing slash: `https://management.azure.com//.default`.
    pub fn default_scope(&self) -> String {
        format!("{}/.default", self.audience)
    }
}

/// An access token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The bearer token.
    pub secret: Secret<String>,
    /// When it stops being valid.
    pub expires_at: Timestamp,
}

/// Why there is no token.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CredentialError {
    /// The issuer refused: a wrong secret, an unknown application, a missing identity.
    #[error("the token endpoint refused: {message}")]
    Refused {
        /// The issuer's error numbers (`AADSTS…`), without the prefix.
        codes: Vec<u32>,
        /// Its message, cut to a bounded length.
        message: String,
    },
    /// The issuer did not answer, or answered with a fault of its own.
    #[error("the token endpoint is not available: {0}")]
    Unavailable(String),
    /// The secret, key or assertion cannot be used.
    #[error("the credential cannot be used: {0}")]
    Unusable(String),
    /// This kind of credential has no tokens for other tenants.
    #[error("the credential serves its own tenant only")]
    OtherTenant,
}

impl CredentialError {
    /// The application or its secret is new and not known everywhere yet: AADSTS700016, 7000215, 7000216, 700213 (a new
    /// federated credential).
    pub fn may_propagate(&self) -> bool {
        const PROPAGATING: [u32; 4] = [700_016, 7_000_215, 7_000_216, 700_213];
        matches!(self, Self::Refused { codes, .. } if codes.iter().any(|code| PROPAGATING.contains(code)))
    }
}

impl CredentialError {
    /// The tenant does not exist (any more): AADSTS90002.
    pub fn is_unknown_tenant(&self) -> bool {
        const UNKNOWN_TENANT: u32 = 90_002;
        matches!(self, Self::Refused { codes, .. } if codes.contains(&UNKNOWN_TENANT))
    }
}

impl Classify for CredentialError {
    fn class(&self) -> Class {
        match self {
            // A rotated secret or key is read at the next attempt.
            Self::Unavailable(_) | Self::Unusable(_) => Class::Retry,
            Self::Refused { .. } if self.may_propagate() => Class::Retry,
            Self::Refused { .. } | Self::OtherTenant => Class::Terminal,
        }
    }
}

/// Gives out tokens.
#[async_trait]
pub trait Credential: std::fmt::Debug + Send + Sync + 'static {
    /// A token for a service.
    async fn token(&self, scope: &Scope) -> Result<Token, CredentialError>;

    /// The service refused this token: it must not be given out again.
    fn reject(&self, _scope: &Scope, _token: &Token) {}
}

/// Fetches a new token each time.
#[async_trait]
pub trait Fetch: std::fmt::Debug + Send + Sync + 'static {
    /// A new token for a service.
    async fn fetch(&self, scope: &Scope) -> Result<Token, CredentialError>;
}

/// Reads a file of a bounded size, off the runtime's threads.
async fn read_small(path: &std::path::Path) -> Result<String, CredentialError> {
    use tokio::io::AsyncReadExt as _;
    const MAX: u64 = 64 << 10;
    let unusable = |error: std::io::Error| {
        CredentialError::Unusable(format!("read `{}`: {}", path.display(), error.kind()))
    };
    let file = tokio::fs::File::open(path).await.map_err(unusable)?;
    let mut text = String::new();
    file.take(MAX).read_to_string(&mut text).await.map_err(unusable)?;
    match text.trim() {
        "" => Err(CredentialError::Unusable(format!("`{}` is empty", path.display()))),
        text => Ok(text.to_owned()),
    }
}
