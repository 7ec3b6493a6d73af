//! External auths.

use std::collections::HashSet;

use aro_ocm::{Code, ExternalAuth, PrefixPolicy};
use url::Url;

use super::Found;

const MAX_AUDIENCES: usize = 10;
const MAX_CLIENTS: usize = 20;
const MAX_RULES: usize = 50;

/// Everything that is wrong with a complete external auth.
pub(in crate::api) fn external_auth(auth: &ExternalAuth) -> Found {
    let mut found = Found::default();
    issuer(&mut found, auth);
    clients(&mut found, auth);
    claims(&mut found, auth);
    found
}

fn audiences(auth: &ExternalAuth) -> &[String] {
    auth.issuer.as_ref().and_then(|issuer| issuer.audiences.as_deref()).unwrap_or_default()
}

fn issuer(found: &mut Found, auth: &ExternalAuth) {
    let Some(issuer) = &auth.issuer else { return found.required("issuer") };
    if let Some(url) = found.text("issuer.url", issuer.url.as_ref())
        && !Url::parse(url).is_ok_and(|url| url.scheme() == "https" && url.has_host())
    {
        found.invalid("issuer.url", "'issuer.url' must be an https URL");
    }
    let audiences = audiences(auth);
    if !(1..=MAX_AUDIENCES).contains(&audiences.len()) || audiences.iter().any(String::is_empty) {
        let reason = format!("'issuer.audiences' must have 1 to {MAX_AUDIENCES} entries that are not empty");
        found.invalid("issuer.audiences", reason);
    }
}

fn clients(found: &mut Found, auth: &ExternalAuth) {
    let clients = auth.clients.as_deref().unwrap_or_default();
    if clients.len() > MAX_CLIENTS {
        found.invalid("clients", format!("'clients' has more than {MAX_CLIENTS} entries"));
    }
    let mut components = HashSet::new();
    for (index, client) in clients.iter().enumerate().take(MAX_CLIENTS) {
        let place = format!("clients[{index}]");
        if let Some(id) = found.text(&format!("{place}.id"), client.id.as_ref())
            && !audiences(auth).iter().any(|audience| audience == id)
        {
            let shown = aro_ocm::shape::shortened(id);
            let reason = format!("client '{shown}' must be one of 'issuer.audiences'");
            found.invalid(&format!("{place}.id"), reason);
        }
        let component = client.component.as_ref();
        let name = component.and_then(|component| component.name.as_ref());
        let namespace = component.and_then(|component| component.namespace.as_ref());
        let (name, namespace) = (
            found.text(&format!("{place}.component.name"), name),
            found.text(&format!("{place}.component.namespace"), namespace),
        );
        if name.is_some() && namespace.is_some() && !components.insert((name, namespace)) {
            found.add(Code::Duplicate, &format!("{place}.component"), "another client has this component");
        }
        if client.r#type.is_none() {
            found.required(&format!("{place}.type"));
        }
    }
}

fn claims(found: &mut Found, auth: &ExternalAuth) {
    let Some(claim) = &auth.claim else { return found.required("claim") };
    let mappings = claim.mappings.as_ref();
    let username = mappings.and_then(|mappings| mappings.username.as_ref());
    found.text("claim.mappings.username.claim", username.and_then(|username| username.claim.as_ref()));
    if let Some(username) = username {
        let has_prefix = username.prefix.as_deref().is_some_and(|prefix| !prefix.is_empty());
        match username.prefix_policy {
            Some(PrefixPolicy::Prefix) if !has_prefix => found.required("claim.mappings.username.prefix"),
            Some(PrefixPolicy::NoPrefix) if has_prefix => found.add(
                Code::Conflicting,
                "claim.mappings.username.prefix",
                "prefix policy 'NoPrefix' takes no prefix",
            ),
            _ => {}
        }
    }
    if let Some(groups) = mappings.and_then(|mappings| mappings.groups.as_ref()) {
        found.text("claim.mappings.groups.claim", groups.claim.as_ref());
    }
    let rules = claim.validation_rules.as_deref().unwrap_or_default();
    if rules.len() > MAX_RULES {
        found.invalid("claim.validation_rules", format!("more than {MAX_RULES} validation rules"));
    }
    for (index, rule) in rules.iter().enumerate().take(MAX_RULES) {
        found.text(&format!("claim.validation_rules[{index}].claim"), rule.claim.as_ref());
        let field = format!("claim.validation_rules[{index}].required_value");
        found.text(&field, rule.required_value.as_ref());
    }
}
