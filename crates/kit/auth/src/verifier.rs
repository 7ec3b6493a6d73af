//! From a token to claims.

use std::sync::Arc;

use aro_base::{SignedDuration, Timestamp};
use aro_pki::jws::JwsError;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use crate::AuthError;
use crate::claims::{Claims, Payload};
use crate::keys::{KeySource, KeysUnavailable};
use crate::rules::Rules;

/// Verifies tokens by rules and keys. Cloning is cheap.
#[derive(Clone)]
pub struct TokenVerifier {
    rules: Arc<Rules>,
    keys: Arc<dyn KeySource>,
}

/// The token in the value of an `Authorization` header. Another scheme is [`AuthError::Missing`]: it is no access token.
pub fn bearer_token(authorization: Option<&str>) -> Result<&str, AuthError> {
    let value = authorization.ok_or(AuthError::Missing)?.trim();
    let (scheme, token) = value.split_once(' ').ok_or(AuthError::Missing)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(AuthError::Missing);
    }
    let token = token.trim_start();
    match token {
        "" => Err(AuthError::Missing),
        spaced if spaced.contains(char::is_whitespace) => Err(AuthError::Malformed),
        token => Ok(token),
    }
}

impl TokenVerifier {
    /// Accepts what the rules accept, signed by keys of this source.
    pub fn new(rules: Rules, keys: Arc<dyn KeySource>) -> Self {
        Self { rules: Arc::new(rules), keys }
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The claims of a token that is valid now.
    pub async fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, AuthError> {
        if token.is_empty() {
            return Err(AuthError::Missing);
        }
        if token.len() > self.rules.max_token {
            return Err(AuthError::Malformed);
        }
        let kid = key_id(token)?;
        let keys = self.keys.keys(kid.as_deref()).await;
        let keys = keys.map_err(|KeysUnavailable| AuthError::KeysUnavailable)?;
        let payload = keys.verify(token).map_err(|error| match error {
            JwsError::TooLong | JwsError::Malformed => AuthError::Malformed,
            JwsError::Unsupported | JwsError::UnknownKey | JwsError::BadSignature => AuthError::BadSignature,
        })?;
        judge(&self.rules, &payload, now)
    }
}

/// The claims of a signed payload, if they fulfil the rules.
fn judge(rules: &Rules, payload: &[u8], now: Timestamp) -> Result<Claims, AuthError> {
    let payload = Payload::parse(payload)?;
    rules.check_issuer(&payload.iss, payload.tid.as_deref())?;
    let audience = rules.find_audience(payload.aud.as_slice())?.to_owned();
    let claims = payload.into_claims(audience)?;
    check_lifetime(&claims, rules, now)?;
    rules.check_application(&claims)?;
    Ok(claims)
}

fn check_lifetime(claims: &Claims, rules: &Rules, now: Timestamp) -> Result<(), AuthError> {
    let skew = SignedDuration::try_from(rules.clock_skew).unwrap_or(SignedDuration::MAX);
    let end = claims.expires.saturating_add(skew).unwrap_or(Timestamp::MAX);
    if now >= end {
        return Err(AuthError::Expired);
    }
    let begin = claims.not_before.map(|begin| begin.saturating_sub(skew).unwrap_or(Timestamp::MIN));
    match begin.is_some_and(|begin| now < begin) {
        true => Err(AuthError::NotYetValid),
        false => Ok(()),
    }
}

/// The key id in the header of a token, which is not verified yet.
fn key_id(token: &str) -> Result<Option<String>, AuthError> {
    #[derive(Deserialize)]
    struct Header {
        kid: Option<String>,
    }
    let (header, _) = token.split_once('.').ok_or(AuthError::Malformed)?;
    let header = URL_SAFE_NO_PAD.decode(header).map_err(|_| AuthError::Malformed)?;
    let header: Header = serde_json::from_slice(&header).map_err(|_| AuthError::Malformed)?;
    Ok(header.kid)
}

#[cfg(test)]
mod tests;
