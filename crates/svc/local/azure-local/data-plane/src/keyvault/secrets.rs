//! Secrets.

use http::StatusCode;
use serde_json::Value;

use super::documents::{Content, Kind};
use super::error::VaultError;
use super::objects::{NewVersion, add_version, check_name, version_name};
use super::{Answer, Call, attributes, render};

/// Key Vault's limit.
const LONGEST: usize = 25 * 1024;

/// The content type in a body.
pub(super) fn content_type(body: &Value) -> Result<Option<String>, VaultError> {
    match body.get("contentType") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() <= 255 => Ok(Some(text.clone())),
        Some(_) => Err(VaultError::property("contentType")),
    }
}

pub(super) async fn set(call: &Call<'_>, name: &str) -> Answer {
    check_name(name)?;
    let value = call
        .body
        .get("value")
        .and_then(Value::as_str)
        .ok_or_else(|| VaultError::bad("Property value is required"))?;
    if value.len() > LONGEST {
        return Err(VaultError::bad("The secret value is too long: it must have at most 25600 characters"));
    }
    let content = Content::Secret { value: value.to_owned(), content_type: content_type(&call.body)? };
    let given = attributes::parse(&call.body)?;
    let new = NewVersion { kind: Kind::Secret, content, managed: false, policy: None, operation: None };
    let (ops, object, record) = add_version(call, name, &version_name(), &given, new).await?;
    call.store.write(&call.vault.resource_id, ops).await?;
    Ok((StatusCode::OK, render::bundle(call, &object, &record)?))
}

pub(super) async fn get(call: &Call<'_>, name: &str, version: &str) -> Answer {
    let vault = &call.vault.resource_id;
    let object = call.store.get_object(vault, Kind::Secret, name, call.now).await?;
    let found = call.store.get_version(vault, &object.value, version).await?;
    if !found.value.enabled {
        return Err(VaultError::forbidden(
            "SecretDisabled",
            "Operation get is not allowed on a disabled secret.",
        ));
    }
    Ok((StatusCode::OK, render::bundle(call, &object.value, &found.value)?))
}
