//! The data plane of managed identities: credentials of the identities that a resource uses.
//!
//! The URL comes from Resource Manager with the resource's creation and is a capability: it never reaches a log or an error.

use aro_arm::ResourceId;
use aro_base::{Secret, Timestamp};
use http::header::WWW_AUTHENTICATE;
use http::{Method, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use super::decode;
use crate::api_version::MSI_DATA_PLANE;
use crate::credential::Scope;
use crate::error::{CloudError, Failure};
use crate::pipeline::{Outgoing, Pipeline};
use crate::retry::Repeat;

/// What errors name instead of the URL.
const TARGET: &str = "managed identity data plane";

/// The URL of a resource's identities; `X-Ms-Identity-Url` of its creation.
pub type IdentityUrl = Secret<Url>;

/// A client of the data plane. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct MsiDataPlane {
    pipeline: Pipeline,
    audience: String,
}

/// Credentials of a system-assigned identity, or of several user-assigned ones.
#[derive(Debug, Clone, Deserialize)]
pub struct IdentityCredentials {
    /// The system-assigned identity, if it was asked for.
    #[serde(flatten)]
    pub system: ExplicitIdentity,
    /// The user-assigned identities.
    #[serde(default)]
    pub explicit_identities: Vec<ExplicitIdentity>,
}

/// The credential of one identity.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ExplicitIdentity {
    /// The identity.
    pub resource_id: Option<ResourceId>,
    /// The id that it signs in with.
    pub client_id: Option<String>,
    /// Certificate and key: PKCS #12 in base64.
    pub client_secret: Option<Secret<String>>,
    /// Where it is renewed: a capability, too.
    pub client_secret_url: Option<Secret<String>>,
    /// Its tenant.
    pub tenant_id: Option<String>,
    /// The id that roles are assigned to.
    pub object_id: Option<String>,
    /// Where it gets tokens.
    pub authentication_endpoint: Option<String>,
    /// Valid from.
    pub not_before: Option<Timestamp>,
    /// Valid until.
    pub not_after: Option<Timestamp>,
    /// When it should be renewed.
    pub renew_after: Option<Timestamp>,
    /// When it cannot be renewed any more.
    pub cannot_renew_after: Option<Timestamp>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UserAssigned<'a> {
    identity_ids: &'a [ResourceId],
}

impl MsiDataPlane {
    pub(crate) fn new(pipeline: Pipeline, audience: &str) -> Self {
        Self { pipeline, audience: audience.to_owned() }
    }

    /// Credentials of the system-assigned identity.
    pub async fn system_credentials(&self, url: &IdentityUrl) -> Result<IdentityCredentials, CloudError> {
        let out = request(Method::GET, url);
        self.call(out).await
    }

    /// Credentials of user-assigned identities. Asking again gives other valid credentials: it may be repeated.
    pub async fn user_credentials(
        &self,
        url: &IdentityUrl,
        identities: &[ResourceId],
    ) -> Result<IdentityCredentials, CloudError> {
        let out = request(Method::POST, url);
        let body = json!(UserAssigned { identity_ids: identities });
        let mut out = out.with_json(&body).map_err(|_| {
            CloudError::new(&Method::POST, TARGET, "", Failure::Protocol("the ids cannot be JSON"))
        })?;
        out.repeat = Repeat::Always;
        self.call(out).await
    }

    /// The first request has no token; the refusal names the tenant whose token is needed.
    async fn call(&self, mut out: Outgoing) -> Result<IdentityCredentials, CloudError> {
        let mut progress = self.pipeline.progress();
        let mut reply = self.pipeline.exchange(&out, &mut progress).await?;
        if reply.status() == StatusCode::UNAUTHORIZED {
            let tenant = challenged_tenant(&reply)
                .ok_or_else(|| progress.error(&out, Failure::Protocol("the challenge names no tenant")))?;
            out.scope = Some(Scope::new(&self.audience).in_tenant(tenant));
            reply = self.pipeline.exchange(&out, &mut progress).await?;
        }
        let reply = self.pipeline.accept(&out, &progress, reply)?;
        decode(&out, &progress, &reply)
    }
}

fn request(method: Method, url: &IdentityUrl) -> Outgoing {
    let mut url = url.expose().clone();
    url.query_pairs_mut().append_pair("api-version", MSI_DATA_PLANE);
    Outgoing::new(method, url, TARGET)
}

/// The tenant of `Bearer authorization="https://<host>/<tenant>"`. Only the tenant is used: the host stays the configured
/// one, so that a challenge cannot lead a secret elsewhere.
fn challenged_tenant<B>(reply: &Response<B>) -> Option<String> {
    let challenge = reply.headers().get(WWW_AUTHENTICATE)?.to_str().ok()?;
    let (_, rest) = challenge.split_once("authorization")?;
    let rest = rest.strip_prefix("_uri").unwrap_or(rest);
    let url = rest.strip_prefix("=\"")?.split('"').next()?;
    let url = Url::parse(url).ok()?;
    let tenant = url.path_segments()?.find(|segment| !segment.is_empty())?;
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    tenant.chars().all(valid).then(|| tenant.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(challenge: &str) -> Option<String> {
        let reply = Response::builder().header(WWW_AUTHENTICATE, challenge).body(()).unwrap();
        challenged_tenant(&reply)
    }

    #[test]
    fn a_challenge_names_the_tenant_and_nothing_else() {
        let expected = Some("7b79-tenant".to_owned());
        assert_eq!(
            tenant(r#"Bearer authorization="https://login.microsoftonline.com/7b79-tenant""#),
            expected
        );
        assert_eq!(tenant(r#"Bearer authorization_uri="https://l/7b79-tenant/", error="x""#), expected);
        for odd in [
            r#"Bearer realm="x""#,
            r#"Bearer authorization="https://l""#,
            r#"Bearer authorization="https://l/a%20b""#,
            "authorization",
        ] {
            assert_eq!(tenant(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_url_of_an_identity_is_not_printed() {
        let url: IdentityUrl = Secret::new(Url::parse("https://identity.test/secret-path?k=v").unwrap());
        let out = request(Method::GET, &url);
        assert_eq!(out.target, TARGET);
        assert_eq!(out.url.query(), Some("k=v&api-version=2024-01-01"));
        assert_eq!(format!("{url:?}"), "<secret>");
    }
}
