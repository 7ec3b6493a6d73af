//! Objects as Key Vault shows them.

use aro_base::Timestamp;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::documents::{CertificateOperation, Content, Kind, ObjectRecord, VersionRecord};
use super::error::VaultError;
use super::{Call, attributes, jwk};

/// The id of a version.
pub(super) fn version_id(call: &Call<'_>, kind: Kind, name: &str, version: &str) -> String {
    format!("{}/{}/{name}/{version}", call.base, kind.collection())
}

fn with_tags(mut shown: Value, record: &VersionRecord) -> Value {
    if !record.tags.is_empty() {
        shown["tags"] = json!(record.tags);
    }
    if record.managed {
        shown["managed"] = json!(true);
    }
    shown
}

/// A whole version.
pub(super) fn bundle(
    call: &Call<'_>,
    object: &ObjectRecord,
    record: &VersionRecord,
) -> Result<Value, VaultError> {
    let id = |kind| version_id(call, kind, &record.name, &record.version);
    let attributes = attributes::shown(record, call.vault);
    let shown = match &record.content {
        Content::Secret { value, content_type } => {
            let mut shown = json!({"value": value, "id": id(Kind::Secret), "attributes": attributes});
            if let Some(content_type) = content_type {
                shown["contentType"] = json!(content_type);
            }
            if record.managed {
                shown["kid"] = json!(id(Kind::Key));
            }
            shown
        }
        Content::Key { pem, operations } => {
            let mut key = jwk::public(pem).ok_or_else(|| VaultError::internal("read a stored key"))?;
            key["kid"] = json!(id(Kind::Key));
            key["key_ops"] = json!(operations);
            json!({"key": key, "attributes": attributes})
        }
        Content::Certificate { certificate } => {
            let der = STANDARD
                .decode(certificate)
                .map_err(|_| VaultError::internal("read a stored certificate"))?;
            json!({
                "id": id(Kind::Certificate),
                "kid": id(Kind::Key),
                "sid": id(Kind::Secret),
                "x5t": thumbprint(&der),
                "cer": certificate,
                "attributes": attributes,
                "policy": policy(call, object),
                "pending": {"id": format!("{}/certificates/{}/pending", call.base, record.name)},
            })
        }
    };
    Ok(with_tags(shown, record))
}

pub(super) fn thumbprint(der: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, der).as_ref())
}

/// A version in a list: without its content.
pub(super) fn item(call: &Call<'_>, record: &VersionRecord, with_version: bool) -> Value {
    let id = match with_version {
        true => version_id(call, record.kind, &record.name, &record.version),
        false => format!("{}/{}/{}", call.base, record.kind.collection(), record.name),
    };
    let mut shown = json!({"attributes": attributes::shown(record, call.vault)});
    shown[if record.kind == Kind::Key { "kid" } else { "id" }] = json!(id);
    match &record.content {
        Content::Secret { content_type: Some(content_type), .. } => {
            shown["contentType"] = json!(content_type);
        }
        Content::Certificate { certificate } => {
            if let Ok(der) = STANDARD.decode(certificate) {
                shown["x5t"] = json!(thumbprint(&der));
            }
        }
        _ => {}
    }
    with_tags(shown, record)
}

/// What is shown of a deleted object in addition.
pub(super) fn add_deletion(call: &Call<'_>, object: &ObjectRecord, mut shown: Value) -> Value {
    let second = |moment: Option<Timestamp>| moment.map(Timestamp::as_second);
    shown["recoveryId"] = json!(format!("{}/deleted{}/{}", call.base, object.kind.collection(), object.name));
    shown["deletedDate"] = json!(second(object.deleted));
    shown["scheduledPurgeDate"] = json!(second(object.purge));
    if let Some(shown) = shown.as_object_mut() {
        // A deleted secret keeps its value to itself.
        shown.remove("value");
    }
    shown
}

/// The policy of a certificate.
pub(super) fn policy(call: &Call<'_>, object: &ObjectRecord) -> Value {
    let mut policy = object.policy.clone().unwrap_or_else(|| json!({}));
    policy["id"] = json!(format!("{}/certificates/{}/policy", call.base, object.name));
    policy
}

/// The last operation on a certificate.
pub(super) fn operation(call: &Call<'_>, name: &str, operation: &CertificateOperation) -> Value {
    json!({
        "id": format!("{}/certificates/{name}/pending", call.base),
        "issuer": {"name": "Self"},
        "csr": operation.csr,
        "cancellation_requested": false,
        "status": "completed",
        "target": format!("{}/certificates/{name}", call.base),
        "request_id": operation.request_id,
    })
}
