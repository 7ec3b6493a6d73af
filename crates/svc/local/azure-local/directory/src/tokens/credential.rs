//! The credentials of a token request, and whether they prove who the client is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use percent_encoding::percent_decode_str;

use super::{Proof, Refusal};
use crate::assertion::{self, Context};
use crate::model::Application;
use crate::{Directory, secrets};

const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A parsed form. The first of several members of one name counts.
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    pub(crate) fn parse(body: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(body).into_owned().collect())
    }

    /// A member that is there and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

/// Client id and secret of basic authentication (RFC 6749, 2.3.1: both are form-encoded).
pub(super) fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, value) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(value.trim()).ok()?).ok()?;
    let (id, secret) = decoded.split_once(':')?;
    let plain = |text: &str| {
        let text = text.replace('+', " ");
        percent_decode_str(&text).decode_utf8().ok().map(|text| text.into_owned())
    };
    Some((plain(id)?, plain(secret)?))
}

/// Checks the credential of a request.
pub(super) async fn prove(
    directory: &Directory,
    application: &Application,
    form: &Form,
    basic_secret: Option<&str>,
    context: &Context<'_>,
) -> Result<Proof, Refusal> {
    if let Some(assertion) = form.get("client_assertion") {
        if form.get("client_assertion_type") != Some(JWT_BEARER) {
            return Err(Refusal::assertion_type());
        }
        assertion::check(directory, application, assertion, context).await?;
        return Ok(Proof::Certificate);
    }
    let secret = form.get("client_secret").or(basic_secret).ok_or_else(Refusal::no_credential)?;
    let now = directory.now();
    // Every record is compared, so that the time does not tell which one is right.
    let matching: Vec<bool> = application
        .passwords
        .iter()
        .filter(|record| secrets::is_secret(record, secret))
        .map(|record| record.end > now && record.start <= now)
        .collect();
    match (matching.contains(&true), matching.is_empty()) {
        (true, _) => Ok(Proof::Secret),
        (false, false) => Err(Refusal::expired_secret(application.app_id)),
        (false, true) => Err(Refusal::wrong_secret(application.app_id)),
    }
}
