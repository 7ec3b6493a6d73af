//! Identity providers of the API server: external auths as the HostedCluster configures them.

use aro_ocm::{ExternalAuth, PrefixPolicy};
use serde_json::{Map, Value, json};

/// `spec.configuration.authentication`, if there is an external auth.
pub(super) fn authentication(external_auths: &[ExternalAuth]) -> Option<Value> {
    if external_auths.is_empty() {
        return None;
    }
    let providers: Vec<Value> = external_auths.iter().map(provider).collect();
    Some(json!({ "type": "OIDC", "oidcProviders": providers }))
}

fn provider(auth: &ExternalAuth) -> Value {
    let issuer = auth.issuer.clone().unwrap_or_default();
    let clients = auth.clients.iter().flatten().map(|client| {
        let component = client.component.clone().unwrap_or_default();
        json!({
            "clientID": client.id,
            "componentName": component.name,
            "componentNamespace": component.namespace,
            "extraScopes": client.extra_scopes.clone().unwrap_or_default(),
        })
    });
    let clients: Vec<Value> = clients.collect();
    let claim = auth.claim.clone().unwrap_or_default();
    let rules = claim.validation_rules.iter().flatten().map(|rule| {
        json!({
            "type": "RequiredClaim",
            "requiredClaim": { "claim": rule.claim, "requiredValue": rule.required_value },
        })
    });
    let rules: Vec<Value> = rules.collect();
    let mut mappings = Map::new();
    if let Some(username) = claim.mappings.as_ref().and_then(|mappings| mappings.username.as_ref()) {
        let policy = username.prefix_policy.unwrap_or(PrefixPolicy::Default);
        let mut value = json!({ "claim": username.claim, "prefixPolicy": policy });
        if policy == PrefixPolicy::Prefix {
            value["prefix"] = json!({ "prefixString": username.prefix });
        }
        mappings.insert("username".to_owned(), value);
    }
    if let Some(groups) = claim.mappings.as_ref().and_then(|mappings| mappings.groups.as_ref()) {
        let prefix = groups.prefix.clone().unwrap_or_default();
        mappings.insert("groups".to_owned(), json!({ "claim": groups.claim, "prefix": prefix }));
    }
    let mut source = json!({
        "issuerURL": issuer.url,
        "audiences": issuer.audiences.unwrap_or_default(),
    });
    if issuer.ca.is_some_and(|ca| !ca.is_empty()) {
        source["issuerCertificateAuthority"] =
            json!({ "name": format!("oidc-ca-{}", auth.id.as_deref().unwrap_or_default()) });
    }
    json!({
        "name": auth.id,
        "issuer": source,
        "oidcClients": clients,
        "claimMappings": mappings,
        "claimValidationRules": rules,
    })
}

/// The config map with an issuer's own authorities, if it has any.
pub(super) fn authorities(external_auths: &[ExternalAuth], namespace: &str) -> Vec<Value> {
    let of = |auth: &ExternalAuth| {
        let ca = auth.issuer.as_ref()?.ca.as_deref().filter(|ca| !ca.is_empty())?;
        Some(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": format!("oidc-ca-{}", auth.id.as_deref()?), "namespace": namespace },
            "data": { "ca-bundle.crt": ca },
        }))
    };
    external_auths.iter().filter_map(of).collect()
}
