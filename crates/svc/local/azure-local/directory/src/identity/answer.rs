//! The bodies of answers.

use aro_base::Timestamp;
use serde_json::{Value, json};

use super::issue::Issued;
use crate::Directory;
use crate::model::Application;

fn time(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// One credential.
pub(super) fn credential(directory: &Directory, application: &Application, issued: &Issued) -> Value {
    let login = format!("https://{}/", directory.settings().login_host);
    json!({
        "client_id": application.app_id,
        "client_secret": issued.bundle,
        "client_secret_url": Value::Null,
        "tenant_id": application.tenant,
        "object_id": application.principal_id,
        "internal_id": application.object_id,
        "authentication_endpoint": login,
        "mtls_authentication_endpoint": login,
        "not_before": time(issued.not_before),
        "not_after": time(issued.not_after),
        "renew_after": time(issued.renew_after),
        "cannot_renew_after": time(issued.cannot_renew_after),
        "custom_claims": {},
    })
}

/// The answer about the resource's own identity.
pub(super) fn system(credential: &Value) -> Value {
    let mut answer = credential.clone();
    answer["delegation_url"] = Value::Null;
    answer["delegated_resources"] = json!([]);
    answer["explicit_identities"] = json!([]);
    answer
}

/// The answer about user-assigned identities.
pub(super) fn user(credentials: Vec<Value>) -> Value {
    json!({
        "delegation_url": Value::Null,
        "delegated_resources": [],
        "explicit_identities": credentials,
    })
}
