//! Who is asking: certificates, tokens, and those who may speak for others.

use std::sync::Arc;

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::Status;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, header};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::authorize::{Attributes, authorize};
use super::tokens;
use super::user::{AUTHENTICATED, UNAUTHENTICATED, User};
use crate::cluster::Cluster;

/// Finds out who sent a request: the connection's certificate wins over a bearer token; neither is anonymous.
pub fn authenticate(
    cluster: &Arc<Cluster>,
    peer: Option<&Arc<User>>,
    headers: &HeaderMap,
) -> Result<Arc<User>, Status> {
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(bearer);
    let user = match (peer, token) {
        (Some(peer), _) => peer.clone(),
        (None, Some(token)) => {
            of_token(cluster, token).map(Arc::new).ok_or_else(|| Status::unauthorized("Unauthorized"))?
        }
        (None, None) => Arc::new(User::anonymous()),
    };
    impersonate(cluster, user, headers)
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The user of a token. `None`: the token names no user that exists.
pub fn of_token(cluster: &Arc<Cluster>, token: &str) -> Option<User> {
    if token.contains('.') && token.len() == 23 {
        return of_bootstrap_token(cluster, token);
    }
    tokens::verify(cluster, token, &[tokens::ISSUER.to_owned()]).ok()
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

/// Impersonation: a user with permission acts as the user in the headers.
fn impersonate(cluster: &Arc<Cluster>, user: Arc<User>, headers: &HeaderMap) -> Result<Arc<User>, Status> {
    let values = |name: &str| -> Vec<String> {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
    };
    let name = values("impersonate-user").into_iter().next().unwrap_or_default();
    let groups = values("impersonate-group");
    let uid = values("impersonate-uid").into_iter().next().unwrap_or_default();
    let mut extra: std::collections::BTreeMap<String, Vec<String>> = std::collections::BTreeMap::new();
    for (header, value) in headers {
        if let Some(key) = header.as_str().strip_prefix("impersonate-extra-")
            && let Ok(value) = value.to_str()
        {
            let key = percent_decode_str(key).decode_utf8_lossy().to_ascii_lowercase();
            extra.entry(key).or_default().push(value.to_owned());
        }
    }
    if name.is_empty() {
        if groups.is_empty() && uid.is_empty() && extra.is_empty() {
            return Ok(user);
        }
        return Err(Status::bad_request(
            "requested impersonation of groups, a uid or extra fields without a user",
        ));
    }
    let may = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
        let asked = Attributes {
            verb: "impersonate",
            group,
            version: "v1",
            resource,
            subresource,
            namespace,
            name,
            fields: "",
            path: "",
        };
        let decision = authorize(cluster, &user, &asked);
        if decision.allowed { Ok(()) } else { Err(crate::server::forbidden(&user, &asked, &decision.reason)) }
    };
    let account = name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    match account {
        Some((namespace, account)) => may("", "serviceaccounts", "", namespace, account)?,
        None => may("", "users", "", "", &name)?,
    }
    for group in &groups {
        may("", "groups", "", "", group)?;
    }
    if !uid.is_empty() {
        may("authentication.k8s.io", "uids", "", "", &uid)?;
    }
    for (key, values) in &extra {
        for value in values {
            may("authentication.k8s.io", "userextras", key, "", value)?;
        }
    }
    let mut groups = groups;
    if let (Some((namespace, _)), true) = (account, groups.is_empty()) {
        groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    }
    let mut spoken_for = User { name, uid, groups, extra };
    if spoken_for.name == super::user::ANONYMOUS {
        if !spoken_for.is_in(UNAUTHENTICATED) {
            spoken_for.groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !spoken_for.is_in(AUTHENTICATED) {
        spoken_for.groups.push(AUTHENTICATED.to_owned());
    }
    Ok(Arc::new(spoken_for))
}
