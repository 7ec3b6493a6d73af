//! Certificates. Each version has a key and a secret of the same name and version; all are written in one batch.

use aro_pki::pkcs12::{self, Bundle};
use aro_pki::{Bearer, KeyPem, key_pem};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::attributes::Given;
use super::documents::{CertificateOperation, Content, Kind, ObjectRecord, State, VersionRecord};
use super::error::VaultError;
use super::objects::{NewVersion, add_version, check_name, version_name};
use super::policy::{self, Format};
use super::{Answer, Call, attributes, jwk, keys, render, self_signed};

pub(super) async fn create(call: &Call<'_>, name: &str) -> Answer {
    check_name(name)?;
    let given = attributes::parse(&call.body)?;
    let vault = &call.vault.resource_id;
    let existing = call.store.find_object(vault, Kind::Certificate, name, call.now).await?;
    let stored = existing.as_ref().and_then(|found| found.value.policy.clone());
    // Without a policy the next version is made like the last.
    let wanted = call.body.get("policy").filter(|policy| !policy.is_null()).cloned().or(stored);
    let wanted = wanted.ok_or_else(|| VaultError::bad("Property policy is required"))?;
    let parsed = policy::parse(&wanted)?;
    let reused = match existing.filter(|found| parsed.reuse_key && found.value.state == State::Live) {
        Some(found) => current_key(call, &found.value).await?,
        None => None,
    };
    let key = match reused {
        Some(key) => key,
        None => keys::generate(parsed.key).await?,
    };
    let signed = self_signed::sign(&parsed, &key, call.now)?;
    let operation = CertificateOperation {
        request_id: Uuid::new_v4().simple().to_string(),
        csr: STANDARD.encode(&signed.request),
    };
    let new = NewCertificate {
        bundle: Bundle { key, certificates: vec![signed.certificate] },
        exportable: parsed.exportable,
        format: parsed.format,
        policy: policy::complete(&wanted, &parsed),
        operation: Some(operation.clone()),
        validity: (signed.not_before.as_second(), signed.not_after.as_second()),
    };
    let (object, _) = store(call, name, &given, new).await?;
    Ok((StatusCode::ACCEPTED, render::operation(call, &object.name, &operation)))
}

/// The key of the newest version.
async fn current_key(call: &Call<'_>, object: &ObjectRecord) -> Result<Option<KeyPem>, VaultError> {
    let vault = &call.vault.resource_id;
    let Some(key) = call.store.find_object(vault, Kind::Key, &object.name, call.now).await? else {
        return Ok(None);
    };
    let version = call.store.get_version(vault, &key.value, "").await?;
    match version.value.content {
        Content::Key { pem, .. } => Ok(Some(aro_base::Secret::new(pem))),
        _ => Ok(None),
    }
}

struct NewCertificate {
    bundle: Bundle,
    exportable: bool,
    format: Format,
    policy: Value,
    operation: Option<CertificateOperation>,
    validity: (i64, i64),
}

async fn store(
    call: &Call<'_>,
    name: &str,
    given: &Given,
    new: NewCertificate,
) -> Result<(ObjectRecord, VersionRecord), VaultError> {
    let version = version_name();
    let own = new.bundle.certificates.first().ok_or_else(|| VaultError::bad("The certificate is missing"))?;
    let rsa = matches!(jwk::read(new.bundle.key.expose()), Some(jwk::PrivateKey::Rsa(_)));
    let parts = [
        (Kind::Certificate, Content::Certificate { certificate: STANDARD.encode(own) }),
        (
            Kind::Key,
            Content::Key { pem: new.bundle.key.expose().clone(), operations: keys::default_operations(rsa) },
        ),
        (
            Kind::Secret,
            Content::Secret {
                value: secret(&new.bundle, new.format, new.exportable)?,
                content_type: Some(new.format.content_type().to_owned()),
            },
        ),
    ];
    let given = given.valid(new.validity);
    let (mut ops, mut shown) = (Vec::new(), None);
    for (kind, content) in parts {
        let is_certificate = kind == Kind::Certificate;
        let part = NewVersion {
            kind,
            content,
            managed: !is_certificate,
            policy: is_certificate.then(|| new.policy.clone()),
            operation: new.operation.clone().filter(|_| is_certificate),
        };
        let (written, object, record) = add_version(call, name, &version, &given, part).await?;
        ops.extend(written);
        if is_certificate {
            shown = Some((object, record));
        }
    }
    call.store.write(&call.vault.resource_id, ops).await?;
    shown.ok_or_else(|| VaultError::internal("store a certificate"))
}

/// The secret of a certificate: key and certificates in one text. A key that must not leave the vault is left out.
fn secret(bundle: &Bundle, format: Format, exportable: bool) -> Result<String, VaultError> {
    let refused = |_| VaultError::internal("encode a certificate");
    match (format, exportable) {
        (Format::Pkcs12, true) => Ok(STANDARD.encode(pkcs12::write(bundle, "").map_err(refused)?)),
        (Format::Pkcs12, false) => {
            Ok(bundle.certificates.first().map(|der| STANDARD.encode(der)).unwrap_or_default())
        }
        (Format::Pem, _) => {
            let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
            let mut text = if exportable { bundle.key.expose().clone() } else { String::new() };
            for der in &bundle.certificates {
                text.push_str(&pem::encode_config(&pem::Pem::new("CERTIFICATE", der.clone()), config));
            }
            Ok(text)
        }
    }
}

pub(super) async fn import(call: &Call<'_>, name: &str) -> Answer {
    check_name(name)?;
    let given = attributes::parse(&call.body)?;
    let value = call
        .body
        .get("value")
        .and_then(Value::as_str)
        .ok_or_else(|| VaultError::bad("Property value is required"))?;
    let password = match call.body.get("pwd") {
        None | Some(Value::Null) => "",
        Some(password) => password.as_str().ok_or_else(|| VaultError::property("pwd"))?,
    };
    let (bundle, format) = read_import(value, password)?;
    let own = bundle.certificates.first().ok_or_else(|| VaultError::bad("The certificate is missing"))?;
    let until =
        Bearer::of_certificate(own).map_err(|_| VaultError::bad("The certificate cannot be read"))?.until;
    let given_policy = call.body.get("policy").filter(|policy| policy.is_object());
    let wanted_format = given_policy.map(Format::of).transpose()?.flatten();
    let exportable =
        given_policy.and_then(|policy| policy.pointer("/key_props/exportable")) != Some(&json!(false));
    let format = wanted_format.unwrap_or(format);
    let public =
        jwk::public(bundle.key.expose()).ok_or_else(|| VaultError::bad("The key's type is not supported"))?;
    let policy = imported_policy(own, &public, exportable, format);
    let new = NewCertificate {
        validity: (call.now.as_second().min(until.as_second()), until.as_second()),
        bundle,
        exportable,
        format,
        policy,
        operation: None,
    };
    let (object, record) = store(call, name, &given, new).await?;
    Ok((StatusCode::OK, render::bundle(call, &object, &record)?))
}

fn imported_policy(certificate: &[u8], public: &Value, exportable: bool, format: Format) -> Value {
    let subject =
        Bearer::of_certificate(certificate).map(|bearer| format!("CN={}", bearer.subject.common_name));
    let mut key_props = json!({"exportable": exportable, "reuse_key": false, "kty": public["kty"]});
    if let Some(curve) = public.get("crv") {
        key_props["crv"] = curve.clone();
    } else if let Some(modulus) = public["n"].as_str() {
        // Six bits for each character, rounded down to whole bytes.
        key_props["key_size"] = json!(modulus.len() * 6 / 8 * 8);
    }
    json!({
        "key_props": key_props,
        "secret_props": {"contentType": format.content_type()},
        "x509_props": {"subject": subject.unwrap_or_default(), "validity_months": 12},
        "issuer": {"name": "Unknown"},
    })
}

/// A PKCS #12 file in base64, or PEM with a key and certificates.
fn read_import(value: &str, password: &str) -> Result<(Bundle, Format), VaultError> {
    let wrong = || {
        VaultError::bad(
            "The specified PEM X.509 or PKCS#12 content is malformed, has an unsupported encryption, or the password is wrong",
        )
    };
    if value.contains("-----BEGIN") {
        let blocks = pem::parse_many(value).map_err(|_| wrong())?;
        let key = blocks.iter().find(|block| block.tag().ends_with("PRIVATE KEY")).ok_or_else(wrong)?;
        let key = rcgen::KeyPair::try_from(key.contents()).map_err(|_| wrong())?;
        let public = rcgen::PublicKeyData::subject_public_key_info(&key);
        let certificates: Vec<Vec<u8>> = blocks
            .iter()
            .filter(|block| block.tag() == "CERTIFICATE")
            .map(|block| block.contents().to_vec())
            .collect();
        let fits = certificates.first().is_some_and(|own| {
            let key = rcgen::SubjectPublicKeyInfo::from_der(&public);
            key.is_ok() && contains(own, &public)
        });
        if !fits {
            return Err(VaultError::bad("The first certificate does not belong to the private key"));
        }
        return Ok((Bundle { key: key_pem(&key.serialize_der()), certificates }, Format::Pem));
    }
    let text: String = value.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let file = STANDARD.decode(text).map_err(|_| wrong())?;
    let bundle = pkcs12::read(&file, password).map_err(|_| wrong())?;
    Ok((bundle, Format::Pkcs12))
}

/// Whether a certificate carries this public key: its encoding is a part of the certificate's.
fn contains(certificate: &[u8], public: &[u8]) -> bool {
    !public.is_empty() && certificate.windows(public.len()).any(|part| part == public)
}

async fn live(call: &Call<'_>, name: &str) -> Result<aro_store::Typed<ObjectRecord>, VaultError> {
    call.store.get_object(&call.vault.resource_id, Kind::Certificate, name, call.now).await
}

pub(super) async fn get_policy(call: &Call<'_>, name: &str) -> Answer {
    let object = live(call, name).await?;
    Ok((StatusCode::OK, render::policy(call, &object.value)))
}

pub(super) async fn update_policy(call: &Call<'_>, name: &str) -> Answer {
    let mut object = live(call, name).await?;
    let old = object.value.policy.take().unwrap_or_else(|| json!({}));
    object.value.policy = Some(policy::merge(old, &call.body)?);
    let replace = call.store.objects.replace(&object)?;
    call.store.write(&call.vault.resource_id, vec![replace]).await?;
    Ok((StatusCode::OK, render::policy(call, &object.value)))
}

pub(super) async fn get_pending(call: &Call<'_>, name: &str) -> Answer {
    let object = live(call, name).await?.value;
    let operation = object.operation.as_ref().ok_or_else(|| VaultError::pending_not_found(name))?;
    Ok((StatusCode::OK, render::operation(call, &object.name, operation)))
}

pub(super) async fn delete_pending(call: &Call<'_>, name: &str) -> Answer {
    let mut object = live(call, name).await?;
    let operation = object.value.operation.take().ok_or_else(|| VaultError::pending_not_found(name))?;
    let replace = call.store.objects.replace(&object)?;
    call.store.write(&call.vault.resource_id, vec![replace]).await?;
    Ok((StatusCode::OK, render::operation(call, &object.value.name, &operation)))
}
