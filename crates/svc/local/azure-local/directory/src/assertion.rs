//! Client assertions: a token that the client signed with the key of a registered certificate, or a token of an issuer that the
//! application trusts.

use aro_base::{SignedDuration, Timestamp};
use aro_pki::Bearer;
use aro_pki::jws::{Unverified, VerifyingKey};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::Deserialize;
use url::Url;
use uuid::Uuid;

use crate::Directory;
use crate::federation::{FederationError, IssuerKeys};
use crate::model::{Application, Tenant};
use crate::tokens::Refusal;

/// Clocks differ by this much at most.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// Assertions live for minutes, tokens of service accounts up to a year.
const LONGEST: SignedDuration = SignedDuration::from_hours(366 * 24);

/// What an assertion is checked against.
pub(crate) struct Context<'a> {
    pub tenant: &'a Tenant,
    /// The host that the client used.
    pub host: &'a str,
    pub issuers: &'a IssuerKeys,
    pub now: Timestamp,
}

#[derive(Deserialize)]
struct Claims {
    #[serde(default)]
    iss: String,
    #[serde(default)]
    sub: String,
    #[serde(default)]
    aud: Audiences,
    exp: Option<f64>,
    nbf: Option<f64>,
    jti: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(untagged)]
enum Audiences {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

impl Audiences {
    fn all(&self) -> &[String] {
        match self {
            Self::None => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

fn parse(payload: &[u8]) -> Result<Claims, Refusal> {
    serde_json::from_slice(payload).map_err(|_| Refusal::bad_assertion("The claims are malformed."))
}

/// Checks an assertion of this application.
pub(crate) async fn check(
    directory: &Directory,
    application: &Application,
    token: &str,
    context: &Context<'_>,
) -> Result<(), Refusal> {
    let peeked = Unverified::of(token).map_err(|error| Refusal::bad_assertion(&error.to_string()))?;
    let claims = parse(&peeked.payload)?;
    let is_client = |text: &str| Uuid::try_parse(text) == Ok(application.app_id);
    if !is_client(&claims.iss) {
        return check_federated(application, token, &claims, context).await;
    }
    let key = certificate_key(directory, application, &peeked, context.now)?;
    let payload = key.verify(token).map_err(|error| Refusal::bad_assertion(&error.to_string()))?;
    let claims = parse(&payload)?;
    if !is_client(&claims.sub) || !is_client(&claims.iss) {
        return Err(Refusal::assertion_subject());
    }
    if !claims.aud.all().iter().any(|audience| is_token_endpoint(directory, audience, context)) {
        return Err(Refusal::assertion_audience());
    }
    let expires = check_time(&claims, context.now)?;
    let once = directory.0.settings.single_use_assertions;
    let Some(id) = claims.jti.filter(|id| !id.is_empty()) else {
        // Without an id it cannot be told from another one.
        return if once { Err(Refusal::bad_assertion("The assertion has no id.")) } else { Ok(()) };
    };
    let client = application.app_id.to_string();
    let used = directory.0.used.record(&client, &id, token, expires, context.now, once);
    used.map_err(|_| Refusal::bad_assertion("The assertion was used before."))
}

fn check_time(claims: &Claims, now: Timestamp) -> Result<Timestamp, Refusal> {
    let moment = |seconds: f64| Timestamp::from_second(seconds as i64).map_err(|_| Refusal::assertion_time());
    let expires = moment(claims.exp.ok_or_else(Refusal::assertion_time)?)?;
    let starts = claims.nbf.map(moment).transpose()?.unwrap_or(Timestamp::MIN);
    let late = now.saturating_sub(SKEW).unwrap_or(now) >= expires;
    let early = now.saturating_add(SKEW).unwrap_or(now) < starts;
    // The client chooses the expiry: used ids must not be remembered for years.
    let far = expires.duration_since(now) > LONGEST;
    if late || early || far { Err(Refusal::assertion_time()) } else { Ok(expires) }
}

/// The key of the certificate that the assertion names: a registered one, or one that this directory issued to the identity.
fn certificate_key(
    directory: &Directory,
    application: &Application,
    peeked: &Unverified,
    now: Timestamp,
) -> Result<VerifyingKey, Refusal> {
    let refused = |text: &str| Refusal::bad_assertion(text);
    let registered = application.certificates.iter().find(|record| {
        let names =
            |digest: &Option<Vec<u8>>, hex: &str| digest.as_deref().is_some_and(|digest| is_hex(digest, hex));
        names(&peeked.thumbprint_sha256, &record.sha256)
            || names(&peeked.thumbprint, &record.sha1)
            || peeked.key_id.as_deref().is_some_and(|id| is_key_id(id, &record.sha1))
    });
    let der = match registered {
        Some(record) => {
            STANDARD.decode(&record.certificate).map_err(|_| refused("The key was not found."))?
        }
        None => issued_certificate(directory, application, peeked)
            .ok_or_else(|| refused("The key was not found."))?,
    };
    if Bearer::of_certificate(&der).map_err(|_| refused("The certificate is malformed."))?.until <= now {
        return Err(refused("The certificate has expired."));
    }
    VerifyingKey::of_certificate(&der).ok_or_else(|| refused("The key's type is not supported."))
}

/// The certificate in the header, if this directory issued it for this managed identity.
fn issued_certificate(
    directory: &Directory,
    application: &Application,
    peeked: &Unverified,
) -> Option<Vec<u8>> {
    application.resource_id()?;
    let der = peeked.certificate.as_ref()?;
    let subject = Bearer::of_certificate(der).ok()?.subject;
    let own = subject.common_name == application.app_id.to_string() && directory.0.authority.has_issued(der);
    own.then(|| der.clone())
}

fn is_hex(digest: &[u8], hex: &str) -> bool {
    digest.len() * 2 == hex.len()
        && digest.iter().zip(hex.as_bytes().chunks_exact(2)).all(|(byte, digits)| {
            std::str::from_utf8(digits).is_ok_and(|digits| u8::from_str_radix(digits, 16) == Ok(*byte))
        })
}

/// Clients name the key by its SHA-1 thumbprint, in hexadecimal digits or base64.
fn is_key_id(id: &str, sha1: &str) -> bool {
    id.eq_ignore_ascii_case(sha1) || URL_SAFE_NO_PAD.decode(id).is_ok_and(|digest| is_hex(&digest, sha1))
}

/// Whether an audience is a token endpoint of the tenant, or its issuer.
fn is_token_endpoint(directory: &Directory, audience: &str, context: &Context<'_>) -> bool {
    let Ok(url) = Url::parse(audience) else { return false };
    let host = match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => return false,
    };
    let hosts = [
        context.host,
        &directory.0.settings.login_host,
        "login.microsoftonline.com",
        "login.windows.net",
        "sts.windows.net",
    ];
    if url.scheme() != "https" || !hosts.iter().any(|known| known.eq_ignore_ascii_case(&host)) {
        return false;
    }
    let mut parts = url.path().split('/').filter(|part| !part.is_empty());
    let tenant = parts.next().and_then(|name| directory.find_tenant(name));
    let rest: Vec<&str> = parts.collect();
    tenant.is_some_and(|tenant| tenant.id == context.tenant.id)
        && matches!(rest.as_slice(), [] | ["v2.0"] | ["oauth2", "token"] | ["oauth2", "v2.0", "token"])
}

/// A token of another issuer. What the token says decides whose keys are fetched, so only issuers that the application names
/// are asked.
async fn check_federated(
    application: &Application,
    token: &str,
    claims: &Claims,
    context: &Context<'_>,
) -> Result<(), Refusal> {
    let audience = claims.aud.all().first().map_or("", String::as_str);
    let no_record = || Refusal::no_federated_record(&claims.iss, &claims.sub, audience);
    let matches = application.federated.iter().any(|credential| {
        credential.issuer == claims.iss
            && credential.subject == claims.sub
            && credential.audiences.iter().any(|audience| claims.aud.all().contains(audience))
    });
    if !matches || !claims.iss.starts_with("https://") {
        return Err(no_record());
    }
    let verified = context.issuers.verify(&claims.iss, token).await;
    let payload = verified.map_err(|error| {
        if let FederationError::Issuer(_) = &error {
            tracing::warn!(issuer = %claims.iss, error = %error, "keys of a federated issuer cannot be fetched");
        }
        Refusal::federated_signature(&error.to_string())
    })?;
    check_time(&parse(&payload)?, context.now)?;
    Ok(())
}
