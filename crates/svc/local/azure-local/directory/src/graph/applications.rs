//! Writes: applications, their secrets and certificates, service principals.

use aro_base::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use serde_json::Value;
use uuid::Uuid;

use super::{Answer, Call, Refused, bad_request, failed, not_found, objects, render};
use crate::DirectoryError;
use crate::directory::certificate_record;
use crate::model::{Application, CertificateRecord};

/// The client id in `applications(appId='…')` or `(appId='…')`.
pub(super) fn key_of(part: &str) -> Option<&str> {
    let lower_at = part.to_ascii_lowercase().find("(appid='")?;
    part.get(lower_at + "(appid='".len()..)?.strip_suffix("')")
}

pub(super) async fn change(call: &Call<'_>, path: &[&str], body: &Value) -> Answer {
    match (&call.head.method, path) {
        (&Method::POST, ["directoryobjects", "getbyids" | "microsoft.graph.getbyids"]) => {
            objects::by_ids(call, body)
        }
        (&Method::POST, ["applications"]) => create(call, body).await,
        (&Method::PATCH, ["applications", id]) => patch(call, id, body).await,
        (&Method::DELETE, ["applications", id]) => delete(call, id).await,
        (&Method::POST, ["applications", id, "addpassword" | "microsoft.graph.addpassword"]) => {
            add_password(call, id, body).await
        }
        (&Method::POST, ["applications", id, "removepassword" | "microsoft.graph.removepassword"]) => {
            remove_password(call, id, body).await
        }
        (&Method::POST, ["serviceprincipals"]) => create_principal(call, body).await,
        (&Method::DELETE, ["serviceprincipals", id]) => delete_principal(call, id).await,
        (&Method::POST | &Method::PATCH | &Method::DELETE, _) => {
            Err(not_found(path.last().copied().unwrap_or_default()))
        }
        _ => Err((
            StatusCode::METHOD_NOT_ALLOWED,
            "Request_BadRequest",
            "The method is not supported.".to_owned(),
        )),
    }
}

/// The members of a body that can be set, checked.
#[derive(Default)]
struct Members {
    display_name: Option<String>,
    identifier_uris: Option<Vec<String>>,
    multi_tenant: Option<bool>,
    token_version: Option<u8>,
    certificates: Option<Vec<CertificateRecord>>,
}

fn parse(body: &Value) -> Result<Members, Refused> {
    let wrong = |name: &str| bad_request(format!("Invalid value specified for property '{name}'."));
    let mut members = Members::default();
    match body.get("displayName") {
        None => {}
        Some(Value::String(name)) if !name.is_empty() && name.len() <= 256 => {
            members.display_name = Some(name.clone());
        }
        Some(_) => return Err(wrong("displayName")),
    }
    if let Some(uris) = body.get("identifierUris") {
        let uris: Vec<String> = serde_json::from_value(uris.clone()).map_err(|_| wrong("identifierUris"))?;
        if uris.len() > 50 || uris.iter().any(|uri| uri.len() > 255 || uri.is_empty()) {
            return Err(wrong("identifierUris"));
        }
        members.identifier_uris = Some(uris);
    }
    match body.get("signInAudience").map(Value::as_str) {
        None => {}
        Some(Some("AzureADMyOrg")) => members.multi_tenant = Some(false),
        Some(Some("AzureADMultipleOrgs" | "AzureADandPersonalMicrosoftAccount")) => {
            members.multi_tenant = Some(true);
        }
        Some(_) => return Err(wrong("signInAudience")),
    }
    if let Some(version) = body.pointer("/api/requestedAccessTokenVersion") {
        members.token_version = match version {
            Value::Null => Some(1),
            version if version == 1 => Some(1),
            version if version == 2 => Some(2),
            _ => return Err(wrong("requestedAccessTokenVersion")),
        };
    }
    if let Some(keys) = body.get("keyCredentials") {
        members.certificates = Some(certificates(keys).ok_or_else(|| wrong("keyCredentials"))?);
    }
    Ok(members)
}

fn certificates(keys: &Value) -> Option<Vec<CertificateRecord>> {
    let keys = keys.as_array().filter(|keys| keys.len() <= 50)?;
    let record = |key: &Value| {
        let der = STANDARD.decode(key.get("key")?.as_str()?).ok()?;
        certificate_record(&der).ok()
    };
    keys.iter().map(record).collect()
}

impl Members {
    fn fill(&self, application: &mut Application) {
        if let Some(name) = &self.display_name {
            application.display_name.clone_from(name);
        }
        if let Some(uris) = &self.identifier_uris {
            application.identifier_uris.clone_from(uris);
        }
        application.multi_tenant = self.multi_tenant.unwrap_or(application.multi_tenant);
        application.token_version = self.token_version.unwrap_or(application.token_version);
        if let Some(certificates) = &self.certificates {
            application.certificates.clone_from(certificates);
        }
    }
}

async fn create(call: &Call<'_>, body: &Value) -> Answer {
    let members = parse(body)?;
    if members.display_name.is_none() {
        return Err(bad_request(
            "A value is required for property 'displayName' of resource 'Application'.".to_owned(),
        ));
    }
    check_uris(call, &members, None)?;
    let made = call
        .directory
        .create_application(call.caller.tenant, |application| {
            members.fill(application);
            Ok(())
        })
        .await
        .map_err(|error| failed(&error))?;
    Ok((StatusCode::CREATED, render::one(call, "applications", render::application(&made))))
}

/// An identifier URI belongs to one application.
fn check_uris(call: &Call<'_>, members: &Members, own: Option<Uuid>) -> Result<(), Refused> {
    let model = call.directory.0.model.read();
    for uri in members.identifier_uris.iter().flatten() {
        let holder = model.application_of_audience(&crate::resources::normal(uri));
        if holder.is_some_and(|holder| Some(holder.app_id) != own) {
            return Err(bad_request(
                "Another object with the same value for property identifierUris already exists.".to_owned(),
            ));
        }
    }
    Ok(())
}

async fn patch(call: &Call<'_>, id: &str, body: &Value) -> Answer {
    let found = call.own_application(id)?;
    let members = parse(body)?;
    check_uris(call, &members, Some(found.app_id))?;
    let changed = call.directory.change_application(found.tenant, found.app_id, |application| {
        members.fill(application);
        Ok(())
    });
    changed.await.map_err(|error| failed(&error))?;
    Ok((StatusCode::NO_CONTENT, Value::Null))
}

async fn delete(call: &Call<'_>, id: &str) -> Answer {
    let found = call.own_application(id)?;
    call.directory.delete_application(found.tenant, found.app_id).await.map_err(|error| failed(&error))?;
    Ok((StatusCode::NO_CONTENT, Value::Null))
}

async fn add_password(call: &Call<'_>, id: &str, body: &Value) -> Answer {
    let found = call.own_application(id)?;
    let given = body.get("passwordCredential").unwrap_or(&Value::Null);
    let name = given.get("displayName").and_then(Value::as_str).map(|name| name.chars().take(120).collect());
    let end = match given.get("endDateTime") {
        None | Some(Value::Null) => None,
        Some(end) => {
            let end = end.as_str().and_then(|end| end.parse::<Timestamp>().ok());
            Some(end.ok_or_else(|| {
                bad_request("Invalid value specified for property 'endDateTime'.".to_owned())
            })?)
        }
    };
    let added = call.directory.add_password(found.tenant, found.app_id, name, end).await;
    let (secret, record) = added.map_err(|error| failed(&error))?;
    Ok((StatusCode::OK, render::password(&record, Some(secret.expose()))))
}

async fn remove_password(call: &Call<'_>, id: &str, body: &Value) -> Answer {
    let found = call.own_application(id)?;
    let key_id = body.get("keyId").and_then(Value::as_str).and_then(|id| Uuid::try_parse(id).ok());
    let key_id = key_id.ok_or_else(|| bad_request("The body must name a 'keyId'.".to_owned()))?;
    if !found.passwords.iter().any(|record| record.key_id == key_id) {
        return Err(bad_request("No password credential found with keyId.".to_owned()));
    }
    let removed = call.directory.change_application(found.tenant, found.app_id, |application| {
        application.passwords.retain(|record| record.key_id != key_id);
        Ok(())
    });
    removed.await.map_err(|error| failed(&error))?;
    Ok((StatusCode::NO_CONTENT, Value::Null))
}

async fn create_principal(call: &Call<'_>, body: &Value) -> Answer {
    let app_id = body.get("appId").and_then(Value::as_str).and_then(|id| Uuid::try_parse(id).ok());
    let app_id = app_id.ok_or_else(|| bad_request("A value is required for property 'appId'.".to_owned()))?;
    let tenant = call.caller.tenant;
    let found = call.directory.find_application(app_id).filter(|found| found.tenant == tenant);
    let missing = || {
        bad_request(format!(
            "The appId '{app_id}' of the service principal does not reference a valid application object."
        ))
    };
    let found = found.ok_or_else(missing)?;
    if found.has_principal {
        let message = format!(
            "The service principal cannot be created because the service principal name {app_id} is already in use."
        );
        return Err((StatusCode::CONFLICT, "Request_MultipleObjectsWithSameKeyValue", message));
    }
    let made = set_principal(call, &found, true).await?;
    Ok((StatusCode::CREATED, render::one(call, "servicePrincipals", render::principal(&made, tenant))))
}

async fn delete_principal(call: &Call<'_>, id: &str) -> Answer {
    let object_id = Uuid::try_parse(id).map_err(|_| not_found(id))?;
    let found = call.directory.find_principal(call.caller.tenant, object_id);
    let found = found.filter(|found| found.tenant == call.caller.tenant && found.resource_id().is_none());
    set_principal(call, found.as_ref().ok_or_else(|| not_found(id))?, false).await?;
    Ok((StatusCode::NO_CONTENT, Value::Null))
}

async fn set_principal(
    call: &Call<'_>,
    application: &Application,
    present: bool,
) -> Result<std::sync::Arc<Application>, Refused> {
    let changed = call.directory.change_application(application.tenant, application.app_id, |application| {
        application.has_principal = present;
        Ok::<(), DirectoryError>(())
    });
    changed.await.map_err(|error| failed(&error))
}
