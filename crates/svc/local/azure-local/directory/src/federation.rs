//! Keys of other issuers, fetched when a client presents their token.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_pki::jws::{JwsError, KeySet};
use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

/// How long a document of an issuer may take, and how large it may be.
const DEADLINE: Duration = Duration::from_secs(10);
const MOST_BYTES: usize = 256 * 1024;

/// Keys are fetched again after this long, and earlier for a token with an unknown key.
const FRESH: Duration = Duration::from_hours(1);
const REFETCH: Duration = Duration::from_secs(30);

const MOST_ISSUERS: usize = 1000;

/// A document could not be fetched.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct FetchError(pub String);

/// Fetches public documents of token issuers.
#[async_trait]
pub trait Fetch: Send + Sync + 'static {
    /// The body of the answer to a GET, if it has status 200 and at most `most_bytes`. The caller sets the deadline.
    async fn fetch(&self, url: &Url, most_bytes: usize) -> Result<Bytes, FetchError>;
}

/// Fetches nothing: a directory without federation.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFetch;

#[async_trait]
impl Fetch for NoFetch {
    async fn fetch(&self, _: &Url, _: usize) -> Result<Bytes, FetchError> {
        Err(FetchError("this directory fetches nothing".to_owned()))
    }
}

/// Why a token of an issuer is not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FederationError {
    /// The issuer's documents cannot be had.
    #[error("{0}")]
    Issuer(String),
    /// The token is not the issuer's.
    #[error("the token is not signed by its issuer")]
    Token(#[source] JwsError),
}

struct Fetched {
    keys: Arc<KeySet>,
    at: Instant,
}

/// The keys of issuers, cached.
pub(crate) struct IssuerKeys {
    fetch: Arc<dyn Fetch>,
    cached: Mutex<HashMap<String, Fetched>>,
}

impl IssuerKeys {
    pub(crate) fn new(fetch: Arc<dyn Fetch>) -> Self {
        Self { fetch, cached: Mutex::new(HashMap::new()) }
    }

    /// The payload of a token of this issuer. Call it for issuers that an application names only.
    pub(crate) async fn verify(&self, issuer: &str, token: &str) -> Result<Vec<u8>, FederationError> {
        if let Some((keys, age)) = self.cached(issuer) {
            match keys.verify(token) {
                Err(JwsError::UnknownKey) if age >= REFETCH => {}
                verified if age < FRESH => return verified.map_err(FederationError::Token),
                _ => {}
            }
        }
        let keys = Arc::new(self.fetch_keys(issuer).await?);
        let mut cached = self.cached.lock();
        if cached.len() >= MOST_ISSUERS {
            cached.clear();
        }
        cached.insert(issuer.to_owned(), Fetched { keys: keys.clone(), at: Instant::now() });
        drop(cached);
        keys.verify(token).map_err(FederationError::Token)
    }

    fn cached(&self, issuer: &str) -> Option<(Arc<KeySet>, Duration)> {
        self.cached.lock().get(issuer).map(|fetched| (fetched.keys.clone(), fetched.at.elapsed()))
    }

    async fn fetch_keys(&self, issuer: &str) -> Result<KeySet, FederationError> {
        #[derive(Deserialize)]
        struct Metadata {
            issuer: String,
            jwks_uri: String,
        }
        let document = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let metadata = self.fetch(&document).await?;
        let metadata: Metadata = serde_json::from_slice(&metadata)
            .map_err(|_| FederationError::Issuer("the issuer's metadata is malformed".to_owned()))?;
        if metadata.issuer != issuer {
            return Err(FederationError::Issuer("the issuer's metadata names another issuer".to_owned()));
        }
        let keys = self.fetch(&metadata.jwks_uri).await?;
        KeySet::from_json(&keys)
            .ok_or_else(|| FederationError::Issuer("the issuer's keys are malformed".to_owned()))
    }

    async fn fetch(&self, url: &str) -> Result<Bytes, FederationError> {
        let problem = |text: &str| FederationError::Issuer(text.to_owned());
        let url = Url::parse(url).ok().filter(|url| url.scheme() == "https" && url.host().is_some());
        let url = url.ok_or_else(|| problem("the issuer's documents are not at https URLs"))?;
        let fetched = tokio::time::timeout(DEADLINE, self.fetch.fetch(&url, MOST_BYTES)).await;
        let body = fetched
            .map_err(|_| problem("the issuer did not answer in time"))?
            .map_err(|error| FederationError::Issuer(error.to_string()))?;
        if body.len() > MOST_BYTES {
            return Err(problem("the issuer's document is too large"));
        }
        Ok(body)
    }
}
