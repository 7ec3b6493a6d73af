//! A token request, from its form to its token.

use aro_base::chain;
use http::HeaderMap;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Refusal;
use super::credential::{self, Form};
use crate::Directory;
use crate::assertion::Context;
use crate::federation::IssuerKeys;
use crate::resources::{self, resource_of_scope};

/// Decides a request. `host` is the one that the client used.
pub(crate) async fn answer(
    directory: &Directory,
    issuers: &IssuerKeys,
    tenant_name: &str,
    host: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Value, Refusal> {
    let form = Form::parse(body);
    match form.get("grant_type") {
        None => return Err(Refusal::missing("grant_type")),
        Some("client_credentials") => {}
        Some(other) => return Err(Refusal::unsupported_grant(other)),
    }
    let tenant = directory.find_tenant(tenant_name).ok_or_else(|| Refusal::unknown_tenant(tenant_name))?;
    let basic = credential::basic(headers);
    let client = form.get("client_id").or(basic.as_ref().map(|(id, _)| id.as_str()));
    let client = client.ok_or_else(|| Refusal::missing("client_id"))?;
    let unknown = || Refusal::unknown_application(client, &tenant.display_name);
    let app_id = Uuid::try_parse(client).map_err(|_| unknown())?;
    let now = directory.now();
    if !directory.0.failures.allows(app_id, now) {
        return Err(Refusal::throttled());
    }
    let application = directory.find_application(app_id).ok_or_else(unknown)?;
    let principal = application.principal_in(tenant.id).ok_or_else(unknown)?;
    let secret = basic.as_ref().map(|(_, secret)| secret.as_str());
    let context = Context { tenant: &tenant, host, issuers, now };
    let proof = credential::prove(directory, &application, &form, secret, &context).await;
    let proof = proof.inspect_err(|refusal| {
        if refusal.is_failed_proof() {
            directory.0.failures.record_failure(app_id, now);
        }
    })?;
    let resource = requested_resource(&form)?;
    let found = resources::find(resource, &directory.0.settings, &directory.0.model.read());
    let resource = found.ok_or_else(|| Refusal::unknown_resource(resource, &tenant.display_name))?;
    let signed = directory.sign_token(&application, principal, tenant.id, &resource, proof);
    let signed = signed.map_err(|error| {
        tracing::error!(error = %chain(&error), "token could not be signed");
        Refusal::internal()
    })?;
    tracing::debug!(app = %app_id, tenant = %tenant.id, audience = %resource.audience, "token issued");
    Ok(rendered(&form, &resource.audience, &signed, now.as_second()))
}

/// What the token is for: `scope` in the second version of the endpoint, `resource` in the first.
fn requested_resource(form: &Form) -> Result<&str, Refusal> {
    if let Some(scope) = form.get("scope")
        && form.get("resource").is_none()
    {
        return resource_of_scope(scope).ok_or_else(|| Refusal::bad_scope(scope));
    }
    form.get("resource").ok_or_else(|| Refusal::missing("scope"))
}

fn rendered(form: &Form, audience: &str, signed: &super::AccessToken, now: i64) -> Value {
    if form.get("resource").is_none() {
        return json!({
            "token_type": "Bearer",
            "expires_in": signed.expires_in,
            "ext_expires_in": signed.expires_in,
            "access_token": signed.token,
        });
    }
    // The first version answers with texts.
    json!({
        "token_type": "Bearer",
        "expires_in": signed.expires_in.to_string(),
        "ext_expires_in": signed.expires_in.to_string(),
        "expires_on": (now + signed.expires_in).to_string(),
        "not_before": now.to_string(),
        "resource": audience,
        "access_token": signed.token,
    })
}
