//! External auths. All members can change, so a create and an update differ by the id only.

use aro_arm::hcp::external_auth::{Client, ClientType, ExternalAuth, PrefixPolicy};
use serde_json::{Value, json};

use super::{Canonical, at, list, text};

/// The id of an external auth in Clusters Service.
pub fn id_of(auth: &ExternalAuth) -> String {
    auth.id.name().to_lowercase()
}

/// The body that creates an external auth.
pub fn create_body(auth: &ExternalAuth) -> Value {
    let mut body = update_body(auth);
    if let Some(body) = body.as_object_mut() {
        body.insert("id".to_owned(), id_of(auth).into());
    }
    body
}

/// The body that brings an external auth to its desired state.
pub fn update_body(auth: &ExternalAuth) -> Value {
    let properties = &auth.properties;
    let username = &properties.claim.mappings.username;
    let policy = match username.prefix_policy {
        PrefixPolicy::None => "",
        PrefixPolicy::Prefix => "Prefix",
        PrefixPolicy::NoPrefix => "NoPrefix",
    };
    let mut mappings = json!({"username": {
        "claim": username.claim,
        "prefix": username.prefix.as_deref().unwrap_or_default(),
        "prefix_policy": policy,
    }});
    if let (Some(groups), Some(mappings)) = (&properties.claim.mappings.groups, mappings.as_object_mut()) {
        let groups = json!({"claim": groups.claim, "prefix": groups.prefix.as_deref().unwrap_or_default()});
        mappings.insert("groups".to_owned(), groups);
    }
    let rules = properties.claim.validation_rules.iter().map(|rule| {
        json!({"claim": rule.required_claim.claim, "required_value": rule.required_claim.required_value})
    });
    json!({
        "kind": "ExternalAuth",
        "issuer": {
            "url": properties.issuer.url,
            "ca": properties.issuer.ca.as_deref().unwrap_or_default(),
            "audiences": properties.issuer.audiences,
        },
        "clients": properties.clients.iter().map(client).collect::<Vec<_>>(),
        "claim": {"mappings": mappings, "validation_rules": rules.collect::<Vec<_>>()},
    })
}

fn client(client: &Client) -> Value {
    let kind = match client.kind {
        ClientType::Confidential => "confidential",
        ClientType::Public => "public",
    };
    json!({
        "id": client.client_id,
        "component": {"name": client.component.name, "namespace": client.component.auth_client_namespace},
        "extra_scopes": client.extra_scopes,
        "type": kind,
    })
}

/// What decides whether an update would change something, of an update body or of an object.
pub fn canonical(value: &Value) -> Canonical {
    let clients = list(value, "/clients");
    let clients = clients.iter().map(|client| {
        json!([
            text(client, "/id"),
            text(client, "/component/name"),
            text(client, "/component/namespace"),
            list(client, "/extra_scopes"),
            text(client, "/type"),
        ])
    });
    let rules = list(value, "/claim/validation_rules");
    let rules = rules.iter().map(|rule| json!([text(rule, "/claim"), text(rule, "/required_value")]));
    let groups = match at(value, "/claim/mappings/groups") {
        Value::Object(_) => {
            json!([text(value, "/claim/mappings/groups/claim"), text(value, "/claim/mappings/groups/prefix")])
        }
        _ => Value::Null,
    };
    Canonical::from([
        ("claim.mappings.groups", groups),
        (
            "claim.mappings.username",
            json!([
                text(value, "/claim/mappings/username/claim"),
                text(value, "/claim/mappings/username/prefix"),
                text(value, "/claim/mappings/username/prefix_policy"),
            ]),
        ),
        ("claim.validation_rules", rules.collect()),
        ("clients", clients.collect()),
        ("issuer.audiences", Value::Array(list(value, "/issuer/audiences"))),
        ("issuer.ca", text(value, "/issuer/ca")),
        ("issuer.url", text(value, "/issuer/url")),
    ])
}
