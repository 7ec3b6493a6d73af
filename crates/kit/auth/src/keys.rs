//! Where the issuer's keys come from.

use std::collections::HashSet;
use std::sync::Arc;

use aro_pki::jws::{Jwk, KeySet};
use async_trait::async_trait;
use serde::Deserialize;

/// No set of keys is known and none can be had now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no keys of the issuer are available")]
pub struct KeysUnavailable;

/// Supplies the keys whose signatures are accepted.
#[async_trait]
pub trait KeySource: Send + Sync + 'static {
    /// The keys to verify a token with that names this key. A source that caches looks for newer keys when it does not know
    /// the name; whether the returned set holds it is for the caller to see.
    async fn keys(&self, kid: Option<&str>) -> Result<Arc<KeySet>, KeysUnavailable>;
}

/// Keys that never change.
#[derive(Debug, Clone)]
pub struct StaticKeys(Arc<KeySet>);

impl StaticKeys {
    /// These keys.
    pub fn new(keys: KeySet) -> Self {
        Self(Arc::new(keys))
    }
}

#[async_trait]
impl KeySource for StaticKeys {
    async fn keys(&self, _: Option<&str>) -> Result<Arc<KeySet>, KeysUnavailable> {
        Ok(self.0.clone())
    }
}

/// A published set of keys (`jwks_uri`) and the names of all its keys, usable ones and others.
#[derive(Debug, Clone)]
pub struct PublishedKeys {
    pub(crate) keys: Arc<KeySet>,
    pub(crate) names: HashSet<String>,
}

/// Names that are remembered of one set; a set has at most 64 usable keys.
const MOST_NAMES: usize = 256;

impl PublishedKeys {
    /// Reads a published set. `None`: it is not one.
    pub fn from_json(json: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Named {
            keys: Vec<Name>,
        }
        #[derive(Deserialize)]
        struct Name {
            kid: Option<String>,
        }
        let keys = KeySet::from_json(json)?;
        let named: Named = serde_json::from_slice(json).ok()?;
        let names = named.keys.into_iter().filter_map(|key| key.kid).take(MOST_NAMES).collect();
        Some(Self { keys: Arc::new(keys), names })
    }

    /// A set out of keys in this process.
    pub fn from_keys(keys: &[Jwk]) -> Self {
        let usable = keys.iter().filter_map(aro_pki::jws::VerifyingKey::from_jwk);
        let names = keys.iter().filter_map(|key| key.kid.clone()).take(MOST_NAMES).collect();
        Self { keys: Arc::new(KeySet::new(usable)), names }
    }

    /// Whether a token that names this key can be looked up; a token that names none can always.
    pub(crate) fn knows(&self, kid: Option<&str>) -> bool {
        kid.is_none_or(|kid| self.names.contains(kid))
    }
}
