//! Authentication: certificates and tokens.

use std::sync::Arc;

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::Status;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, header};
use serde_json::Value;

use super::impersonate::impersonate;
use super::tokens::{self, Rejected};
use super::user::User;
use crate::cluster::Cluster;

/// Finds out who sent a request: the connection's certificate wins over a bearer token; neither is anonymous. Headers of
/// an authenticating proxy (`X-Remote-User`) are not read: there is none.
pub fn authenticate(
    cluster: &Arc<Cluster>,
    peer: Option<&Arc<User>>,
    headers: &HeaderMap,
) -> Result<Arc<User>, Status> {
    let user = match peer {
        Some(peer) => peer.clone(),
        None => match bearer(headers).map_err(|_| Status::unauthorized("Unauthorized"))? {
            Some(token) => {
                let found = of_token(cluster, token, &[tokens::ISSUER.to_owned()]);
                let (user, _) = found.map_err(|_| Status::unauthorized("Unauthorized"))?;
                Arc::new(user)
            }
            None => Arc::new(User::anonymous()),
        },
    };
    impersonate(cluster, user, headers)
}

/// The token of the first `Authorization` header, as upstream reads it; further ones do not count. One that is not text is
/// no token of ours, and no reason to take the caller for an anonymous one.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, header::ToStrError> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let mut parts = value.to_str()?.trim().split(' ');
    let scheme = parts.next().unwrap_or_default();
    let token = parts.next().unwrap_or_default();
    Ok((scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token))
}

/// The user of a token, and those of the requested audiences that it is for.
pub fn of_token(
    cluster: &Arc<Cluster>,
    token: &str,
    requested: &[String],
) -> Result<(User, Vec<String>), Rejected> {
    if token.contains('.') && token.len() == 23 {
        // A bootstrap token is for this API server.
        let audiences = tokens::intersect(&[tokens::ISSUER.to_owned()], requested);
        let user = of_bootstrap_token(cluster, token).filter(|_| !audiences.is_empty());
        let user = user.ok_or_else(|| Rejected::Foreign("no such bootstrap token".to_owned()))?;
        return Ok((user, audiences));
    }
    tokens::verify(cluster, token, requested)
}

/// `id.secret`, kept as a Secret in `kube-system`: what a new node has before it has anything else.
fn of_bootstrap_token(cluster: &Arc<Cluster>, token: &str) -> Option<User> {
    let (id, secret) = token.split_once('.')?;
    let sound = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    if !sound(id, 6) || !sound(secret, 16) {
        return None;
    }
    let stored = cluster.store.watch_cache("secrets").get(&format!("kube-system/bootstrap-token-{id}"))?;
    let object = stored.value();
    if object.get("type").and_then(Value::as_str) != Some("bootstrap.kubernetes.io/token")
        || meta::deletion_timestamp(&object).is_some()
    {
        return None;
    }
    let datum = |name: &str| {
        let encoded = meta::get(&object, &["data", name]).and_then(Value::as_str)?;
        String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
    };
    let same =
        datum("token-secret").is_some_and(|known| constant_time_eq(known.as_bytes(), secret.as_bytes()));
    let valid = same
        && datum("token-id").as_deref() == Some(id)
        && datum("usage-bootstrap-authentication").as_deref() == Some("true")
        && datum("expiration")
            .is_none_or(|until| until.parse().is_ok_and(|until: aro_base::Timestamp| until > cluster.now()));
    if !valid {
        return None;
    }
    let extra = datum("auth-extra-groups").unwrap_or_default();
    let extra = extra
        .split(',')
        .map(str::trim)
        .filter(|group| group.starts_with("system:bootstrappers:"))
        .map(str::to_owned);
    let groups = std::iter::once("system:bootstrappers".to_owned()).chain(extra.collect::<Vec<_>>());
    Some(User::authenticated(format!("system:bootstrap:{id}"), groups))
}

/// Compares without telling by its duration where two texts differ.
fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}
