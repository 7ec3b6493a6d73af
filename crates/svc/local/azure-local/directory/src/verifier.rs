//! Verifies tokens that this directory issued.

use std::sync::Arc;

use aro_base::{SignedDuration, Timestamp};
use aro_pki::jws::JwsError;
use aws_lc_rs::digest::{SHA256, digest};
use quick_cache::sync::Cache;
use serde::Deserialize;
use uuid::Uuid;

use crate::Directory;
use crate::resources::normal;

/// Tokens remembered as verified.
const CACHED: usize = 10_000;

/// Parts of one process share a clock; other processes on the machine nearly do.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// What kind of principal a token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrincipalKind {
    /// An application.
    Application,
    /// A managed identity.
    ManagedIdentity {
        /// The resource whose identity it is.
        resource_id: String,
    },
}

/// Who a token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The tenant that the token is of.
    pub tenant: Uuid,
    /// The service principal in that tenant.
    pub object_id: Uuid,
    /// The client id.
    pub app_id: Uuid,
    /// A name for people.
    pub name: String,
    /// Its kind.
    pub kind: PrincipalKind,
}

/// Why a token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not a token of this directory.
    #[error("the token is not signed by this directory")]
    Signature(#[source] JwsError),
    /// Signed, but not an access token.
    #[error("the token's claims are malformed")]
    Claims,
    /// Expired, or not valid yet.
    #[error("the token has expired or is not valid yet")]
    Time,
    /// For another resource.
    #[error("the token is for another audience")]
    Audience,
    /// Not of the tenant that it names.
    #[error("the token's issuer does not fit its tenant")]
    Issuer,
}

#[derive(Deserialize)]
struct Claims {
    aud: String,
    iss: String,
    exp: i64,
    nbf: i64,
    oid: Uuid,
    tid: Uuid,
    #[serde(alias = "azp")]
    appid: Uuid,
    #[serde(default)]
    app_displayname: String,
    xms_mirid: Option<String>,
}

struct Verified {
    principal: Principal,
    audience: String,
    starts: Timestamp,
    expires: Timestamp,
}

/// Verifies tokens; remembers those that it has verified. Cloning shares the memory.
#[derive(Clone)]
pub struct Verifier {
    directory: Directory,
    verified: Arc<Cache<[u8; 32], Arc<Verified>>>,
}

impl Verifier {
    pub(crate) fn new(directory: Directory) -> Self {
        Self { directory, verified: Arc::new(Cache::new(CACHED)) }
    }

    /// The principal of a token that is valid now, for one of these audiences (compared without case and final slash).
    pub fn verify(&self, token: &str, audiences: &[&str]) -> Result<Principal, TokenError> {
        let verified = self.verified(token)?;
        let now = self.directory.now();
        if now >= verified.expires || now.saturating_add(SKEW).unwrap_or(now) < verified.starts {
            return Err(TokenError::Time);
        }
        if !audiences.iter().any(|audience| normal(audience) == verified.audience) {
            return Err(TokenError::Audience);
        }
        Ok(verified.principal.clone())
    }

    /// Checks what does not change with time.
    fn verified(&self, token: &str) -> Result<Arc<Verified>, TokenError> {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        if let Some(known) = self.verified.get(&hash) {
            return Ok(known);
        }
        let keys = self.directory.0.keys.read().clone();
        let payload = keys.set.verify(token).map_err(TokenError::Signature)?;
        let claims: Claims = serde_json::from_slice(&payload).map_err(|_| TokenError::Claims)?;
        let login_host = &self.directory.settings().login_host;
        let issuers = [
            format!("https://sts.windows.net/{}/", claims.tid),
            format!("https://{login_host}/{}/v2.0", claims.tid),
        ];
        if !issuers.contains(&claims.iss) {
            return Err(TokenError::Issuer);
        }
        let moment = |seconds: i64| Timestamp::from_second(seconds).map_err(|_| TokenError::Claims);
        let kind = match claims.xms_mirid {
            Some(resource_id) => PrincipalKind::ManagedIdentity { resource_id },
            None => PrincipalKind::Application,
        };
        let verified = Arc::new(Verified {
            principal: Principal {
                tenant: claims.tid,
                object_id: claims.oid,
                app_id: claims.appid,
                name: claims.app_displayname,
                kind,
            },
            audience: normal(&claims.aud),
            starts: moment(claims.nbf)?,
            expires: moment(claims.exp)?,
        });
        self.verified.insert(hash, verified.clone());
        Ok(verified)
    }
}
