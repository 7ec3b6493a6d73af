//! Objects as Graph shows them.

use aro_base::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Call;
use crate::model::{Application, PasswordRecord};

pub(super) fn time(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Names by which tokens for an application are requested.
pub(super) fn principal_names(application: &Application) -> Vec<String> {
    let mut names = vec![application.app_id.to_string()];
    names.extend(application.identifier_uris.iter().cloned());
    if let Some(resource_id) = application.resource_id() {
        names.push(format!("https://identity.azure.net/{}", resource_id.trim_start_matches('/')));
    }
    names
}

fn passwords(application: &Application) -> Vec<Value> {
    application.passwords.iter().map(|record| password(record, None)).collect()
}

/// A secret; its text only when it was just made.
pub(super) fn password(record: &PasswordRecord, text: Option<&str>) -> Value {
    json!({
        "customKeyIdentifier": null,
        "displayName": record.display_name,
        "startDateTime": time(record.start),
        "endDateTime": time(record.end),
        "hint": record.hint,
        "keyId": record.key_id,
        "secretText": text,
    })
}

fn certificates(application: &Application) -> Vec<Value> {
    let shown = application.certificates.iter().map(|record| {
        json!({
            "customKeyIdentifier": record.sha1.to_ascii_uppercase(),
            "keyId": record.key_id,
            "type": "AsymmetricX509Cert",
            "usage": "Verify",
            "key": null,
            "endDateTime": time(record.not_after),
        })
    });
    shown.collect()
}

pub(super) fn principal(application: &Application, tenant: Uuid) -> Value {
    let managed = application.resource_id();
    json!({
        "@odata.type": "#microsoft.graph.servicePrincipal",
        "id": application.principal_in(tenant),
        "appId": application.app_id,
        "displayName": application.display_name,
        "appDisplayName": application.display_name,
        "appOwnerOrganizationId": application.tenant,
        "accountEnabled": true,
        "servicePrincipalType": if managed.is_some() { "ManagedIdentity" } else { "Application" },
        "servicePrincipalNames": principal_names(application),
        "alternativeNames": managed.map_or(vec![], |id| vec!["isExplicit=True".to_owned(), id.to_owned()]),
        "createdDateTime": time(application.created),
        "keyCredentials": certificates(application),
        "passwordCredentials": [],
        "appRoles": [],
        "oauth2PermissionScopes": [],
        "tags": [],
    })
}

pub(super) fn application(application: &Application) -> Value {
    json!({
        "id": application.object_id,
        "appId": application.app_id,
        "displayName": application.display_name,
        "identifierUris": application.identifier_uris,
        "createdDateTime": time(application.created),
        "signInAudience": if application.multi_tenant { "AzureADMultipleOrgs" } else { "AzureADMyOrg" },
        "passwordCredentials": passwords(application),
        "keyCredentials": certificates(application),
        "api": {"requestedAccessTokenVersion": (application.token_version == 2).then_some(2)},
        "requiredResourceAccess": [],
        "appRoles": [],
        "tags": [],
        "web": {"redirectUris": []},
    })
}

/// A list of objects.
pub(super) fn list(call: &Call<'_>, kind: &str, items: Vec<Value>) -> Value {
    json!({"@odata.context": context(call, kind), "value": items})
}

/// One object.
pub(super) fn one(call: &Call<'_>, kind: &str, mut item: Value) -> Value {
    item["@odata.context"] = json!(format!("{}/$entity", context(call, kind)));
    item
}

fn context(call: &Call<'_>, kind: &str) -> String {
    format!("https://{}/v1.0/$metadata#{kind}", call.head.host)
}
