//! Access tokens: what they claim, and what the token endpoint answers.

mod credential;
mod grant;
mod refusal;

pub(crate) use grant::answer;
pub(crate) use refusal::Refusal;

use aro_base::{SignedDuration, Timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::model::Application;
use crate::resources::Resource;
use crate::{Directory, DirectoryError, secrets};

/// How an application proved who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    Secret,
    Certificate,
}

/// A signed token.
pub(crate) struct AccessToken {
    pub token: String,
    pub expires_in: i64,
}

/// The lifetime of a token: a day for managed identities; for others between 60 and 90 minutes, so that clients do not
/// renew at the same time.
fn lifetime(application: &Application, random: u8) -> SignedDuration {
    match application.resource_id() {
        Some(_) => SignedDuration::from_hours(24),
        None => SignedDuration::from_mins(60) + SignedDuration::from_secs(30 * 60 * i64::from(random) / 255),
    }
}

/// What a token is about.
struct Subject<'a> {
    application: &'a Application,
    principal: Uuid,
    tenant: Uuid,
    resource: &'a Resource,
    proof: Proof,
}

/// The claims, in Entra's names.
fn claims(
    Subject { application, principal, tenant, resource, proof }: &Subject<'_>,
    (now, expires): (Timestamp, Timestamp),
    token_id: &str,
    login_host: &str,
) -> Value {
    let method = match proof {
        Proof::Secret => "1",
        Proof::Certificate => "2",
    };
    let issuer = match resource.version {
        2 => format!("https://{login_host}/{tenant}/v2.0"),
        _ => format!("https://sts.windows.net/{tenant}/"),
    };
    let mut claims = json!({
        "aud": resource.audience,
        "iss": issuer,
        "iat": now.as_second(),
        "nbf": now.as_second(),
        "exp": expires.as_second(),
        "idtyp": "app",
        "oid": principal,
        "sub": principal,
        "tid": tenant,
        "uti": token_id,
        "app_displayname": application.display_name,
    });
    let (id, how, version) = match resource.version {
        2 => ("azp", "azpacr", "2.0"),
        _ => ("appid", "appidacr", "1.0"),
    };
    claims[id] = json!(application.app_id);
    claims[how] = json!(method);
    claims["ver"] = json!(version);
    if resource.version != 2 {
        claims["idp"] = json!(issuer);
    }
    if let Some(resource_id) = application.resource_id() {
        claims["xms_mirid"] = json!(resource_id);
    }
    claims
}

impl Directory {
    /// A token for an application that has proved who it is.
    pub(crate) fn sign_token(
        &self,
        application: &Application,
        principal: Uuid,
        tenant: Uuid,
        resource: &Resource,
        proof: Proof,
    ) -> Result<AccessToken, DirectoryError> {
        let now = self.now();
        let random = secrets::random::<17>()?;
        let (spread, token_id) =
            (random.first().copied().unwrap_or_default(), random.get(1..).unwrap_or_default());
        let lifetime = lifetime(application, spread);
        let expires = now.saturating_add(lifetime).unwrap_or(Timestamp::MAX);
        let subject = Subject { application, principal, tenant, resource, proof };
        let token_id = URL_SAFE_NO_PAD.encode(token_id);
        let claims = claims(&subject, (now, expires), &token_id, &self.0.settings.login_host);
        let signing = self.0.keys.read().signing.clone();
        Ok(AccessToken { token: signing.sign_jwt(&claims, None)?, expires_in: lifetime.as_secs() })
    }

    /// A token for a part of this process that acts as an application, without a request.
    pub fn issue_token(&self, app_id: Uuid, tenant: Uuid, audience: &str) -> Result<String, DirectoryError> {
        let application = self.find_application(app_id).ok_or(DirectoryError::UnknownApplication(app_id))?;
        let principal = application.principal_in(tenant).ok_or(DirectoryError::UnknownApplication(app_id))?;
        let resource = crate::resources::find(audience, &self.0.settings, &self.0.model.read())
            .ok_or(DirectoryError::Invalid("the audience is not known"))?;
        Ok(self.sign_token(&application, principal, tenant, &resource, Proof::Certificate)?.token)
    }
}
