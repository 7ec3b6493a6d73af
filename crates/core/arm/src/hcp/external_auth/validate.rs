//! Rules across the members of an external auth.

use std::collections::BTreeSet;

use super::{Client, ClientType, ExternalAuthProperties, Issuer, PrefixPolicy, UsernameMapping};
use crate::field::Problem;
use crate::schema::problems::Problems;
use crate::{FieldError, FieldPath};

/// The component whose client keeps a secret.
const CONSOLE: (&str, &str) = ("console", "openshift-console");

pub fn check(new: &ExternalAuthProperties, problems: &mut Problems) {
    let path = FieldPath::new("properties");
    check_issuer(&new.issuer, &path.child("issuer"), problems);
    check_clients(&new.clients, &new.issuer.audiences, &path.child("clients"), problems);
    check_username(
        &new.claim.mappings.username,
        &path.child("claim").child("mappings").child("username"),
        problems,
    );
}

fn check_issuer(issuer: &Issuer, path: &FieldPath, problems: &mut Problems) {
    if !issuer.url.is_empty() {
        let at = path.child("url");
        if !issuer.url.starts_with("https://") {
            problems.push(FieldError::invalid(&at, &issuer.url, "must start with https://"));
        } else if url::Url::parse(&issuer.url).is_err() {
            problems.push(FieldError::invalid(&at, &issuer.url, "must be a URL"));
        }
    }
    if let Some(ca) = &issuer.ca
        && !holds_certificate(ca)
    {
        let at = path.child("ca");
        // The text may be long and may hold what was pasted by mistake: it is not repeated.
        problems.push(FieldError::invalid(&at, "<omitted>", "must hold at least one PEM certificate"));
    }
}

/// Whether there is a certificate, and nothing that claims to be one and is not.
fn holds_certificate(ca: &str) -> bool {
    let Ok(blocks) = pem::parse_many(ca) else { return false };
    let mut certificates = blocks.iter().filter(|block| block.tag() == "CERTIFICATE").peekable();
    certificates.peek().is_some()
        && certificates.all(|block| x509_parser::parse_x509_certificate(block.contents()).is_ok())
}

fn check_clients(clients: &[Client], audiences: &[String], path: &FieldPath, problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for (index, client) in clients.iter().enumerate() {
        let path = path.index(index);
        let component = (client.component.name.as_str(), client.component.auth_client_namespace.as_str());
        let complete = !component.0.is_empty() && !component.1.is_empty();
        if complete && !seen.insert(component) {
            let value = format!("{}/{}", component.1, component.0);
            problems.push(FieldError::duplicate(&path.child("component"), &value));
        }
        if !client.client_id.is_empty() && !audiences.contains(&client.client_id) {
            let why = "must be one of the issuer's audiences";
            problems.push(FieldError::invalid(&path.child("clientId"), &client.client_id, why));
        }
        for (index, scope) in client.extra_scopes.iter().enumerate() {
            if scope.is_empty() {
                problems.push(FieldError::required(&path.child("extraScopes").index(index)));
            }
        }
        let at = path.child("type");
        match (client.kind, component == CONSOLE) {
            _ if !complete || problems.has(&at) => {}
            (ClientType::Public, true) => {
                problems.push(FieldError::invalid(
                    &at,
                    "Public",
                    "the console's client must be Confidential",
                ));
            }
            (ClientType::Confidential, false) => {
                let why = "only the client of console in openshift-console may be Confidential";
                problems.push(FieldError::invalid(&at, "Confidential", why));
            }
            _ => {}
        }
    }
}

fn check_username(username: &UsernameMapping, path: &FieldPath, problems: &mut Problems) {
    if problems.has(&path.child("prefixPolicy")) {
        return;
    }
    let at = path.child("prefix");
    match (username.prefix_policy, &username.prefix) {
        (PrefixPolicy::Prefix, None) => {
            let why = "prefixPolicy is \"Prefix\"".to_owned();
            problems.push(FieldError::new(&at, Problem::Required(Some(why))));
        }
        (PrefixPolicy::None | PrefixPolicy::NoPrefix, Some(prefix)) => {
            problems.push(FieldError::invalid(
                &at,
                prefix,
                "may only be set when prefixPolicy is \"Prefix\"",
            ));
        }
        _ => {}
    }
}
