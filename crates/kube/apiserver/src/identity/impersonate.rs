//! Impersonation: a user with permission acts as the user in the headers.
//!
//! Invariant: an impersonation header that is present is either honoured or refused. Ignoring one would run the request
//! with the rights of the caller, who asked for less.

use std::collections::BTreeMap;
use std::sync::Arc;

use aro_kube_apimachinery::status::Status;
use aro_kube_types::validate::format::{dns_subdomain, is_dns_label};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

use super::authorize::{Attributes, authorize};
use super::user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User};
use crate::cluster::Cluster;
use crate::server::forbidden;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// The user that the headers ask for, or the caller if they ask for none.
pub fn impersonate(
    cluster: &Arc<Cluster>,
    caller: Arc<User>,
    headers: &HeaderMap,
) -> Result<Arc<User>, Status> {
    let Some(wanted) = requested(headers)? else { return Ok(caller) };
    let account = account(&wanted.name);
    authorize_all(cluster, &caller, &wanted, account)?;
    let mut groups = wanted.groups.clone();
    if let (Some((namespace, _)), true) = (account, groups.is_empty()) {
        groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    }
    let has = |group: &str| groups.iter().any(|known| known == group);
    if wanted.name == ANONYMOUS {
        if !has(UNAUTHENTICATED) {
            groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !has(AUTHENTICATED) && !has(UNAUTHENTICATED) {
        groups.push(AUTHENTICATED.to_owned());
    }
    Ok(Arc::new(User { groups, ..wanted }))
}

/// The user in the headers, with the groups they name. `None`: no header asks for impersonation.
fn requested(headers: &HeaderMap) -> Result<Option<User>, Status> {
    let mut wanted = User::default();
    for (name, value) in headers {
        match name.as_str() {
            // Of several names or uids the first counts, as upstream.
            USER if wanted.name.is_empty() => wanted.name = read(name, value)?,
            UID if wanted.uid.is_empty() => wanted.uid = read(name, value)?,
            USER | UID => {
                read(name, value)?;
            }
            GROUP => wanted.groups.push(read(name, value)?),
            other => {
                if let Some(key) = other.strip_prefix(EXTRA) {
                    wanted.extra.entry(extra_key(key)?).or_default().push(read(name, value)?);
                }
            }
        }
    }
    if wanted.name.is_empty() {
        if wanted == User::default() {
            return Ok(None);
        }
        let message = "requested impersonation of groups, a uid or extra fields without a user";
        return Err(Status::bad_request(message));
    }
    Ok(Some(wanted))
}

fn read(name: &HeaderName, value: &HeaderValue) -> Result<String, Status> {
    let unreadable = |_| Status::bad_request(format!("the value of header {name} is not ASCII text"));
    value.to_str().map(str::to_owned).map_err(unreadable)
}

/// The key of an extra field: percent-decoded as a whole, or as it is if it cannot be. Header names are lower case; what
/// is encoded keeps its case.
fn extra_key(encoded: &str) -> Result<String, Status> {
    let mut escapes = encoded.split('%').skip(1);
    let is_hex =
        |text: Option<&str>| text.is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if !escapes.all(|escape| is_hex(escape.get(..2))) {
        return Ok(encoded.to_owned());
    }
    let decoded = percent_decode_str(encoded).decode_utf8();
    decoded.map(std::borrow::Cow::into_owned).map_err(|_| {
        Status::bad_request(format!("the name of header {EXTRA}{encoded} does not encode UTF-8 text"))
    })
}

/// Namespace and name, if a user's name is that of a service account.
fn account(name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = name.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    (is_dns_label(namespace) && dns_subdomain(name).is_empty()).then_some((namespace, name))
}

/// The caller needs the permission for each part.
fn authorize_all(
    cluster: &Arc<Cluster>,
    caller: &User,
    wanted: &User,
    account: Option<(&str, &str)>,
) -> Result<(), Status> {
    let may = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
        let asked = Attributes {
            verb: "impersonate",
            group,
            version: "v1",
            resource,
            subresource,
            namespace,
            name,
            ..Attributes::default()
        };
        let decision = authorize(cluster, caller, &asked);
        if decision.allowed { Ok(()) } else { Err(forbidden(caller, &asked, &decision.reason)) }
    };
    match account {
        Some((namespace, account)) => may("", "serviceaccounts", "", namespace, account)?,
        None => may("", "users", "", "", &wanted.name)?,
    }
    for group in &wanted.groups {
        may("", "groups", "", "", group)?;
    }
    if !wanted.uid.is_empty() {
        may("authentication.k8s.io", "uids", "", "", &wanted.uid)?;
    }
    let extra: &BTreeMap<String, Vec<String>> = &wanted.extra;
    for (key, values) in extra {
        for value in values {
            may("authentication.k8s.io", "userextras", key, "", value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_extra_fields_are_decoded_as_upstream_does() {
        for (encoded, decoded) in [
            ("acme.com%2fproject", "acme.com/project"),
            ("%41b", "Ab"),
            ("bad%zz%2f", "bad%zz%2f"),
            ("end%2", "end%2"),
            ("", ""),
        ] {
            assert_eq!(extra_key(encoded).unwrap(), decoded);
        }
        assert_eq!(extra_key("%ff").unwrap_err().code, 400);
    }

    #[test]
    fn a_name_that_only_looks_like_an_account_is_a_users() {
        assert_eq!(account("system:serviceaccount:a:b"), Some(("a", "b")));
        for name in
            ["system:serviceaccount:a:b:c", "system:serviceaccount::b", "system:serviceaccount:a:", "alice"]
        {
            assert_eq!(account(name), None, "{name}");
        }
    }
}
