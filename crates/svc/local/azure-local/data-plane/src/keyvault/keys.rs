//! Keys.

use aro_pki::{KeyPem, RsaBits, generate_rsa, key_pem};
use aws_lc_rs::signature::EcdsaKeyPair;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use serde_json::{Value, json};

use super::documents::{Content, Kind, VersionRecord};
use super::error::VaultError;
use super::objects::{NewVersion, add_version, check_name, version_name};
use super::routes::Usage;
use super::{Answer, Call, attributes, crypto, jwk, render};

const RSA_OPERATIONS: [&str; 6] = ["encrypt", "decrypt", "sign", "verify", "wrapKey", "unwrapKey"];
const EC_OPERATIONS: [&str; 2] = ["sign", "verify"];

impl Usage {
    fn name(self) -> &'static str {
        match self {
            Self::Encrypt => "encrypt",
            Self::Decrypt => "decrypt",
            Self::WrapKey => "wrapKey",
            Self::UnwrapKey => "unwrapKey",
            Self::Sign => "sign",
            Self::Verify => "verify",
        }
    }
}

/// The `key_ops` of a body.
pub(super) fn operations(body: &Value) -> Result<Option<Vec<String>>, VaultError> {
    let Some(given) = body.get("key_ops").filter(|given| !given.is_null()) else { return Ok(None) };
    let given: Vec<String> =
        serde_json::from_value(given.clone()).map_err(|_| VaultError::property("key_ops"))?;
    if given.len() > 20
        || given.iter().any(|name| !RSA_OPERATIONS.contains(&name.as_str()) && name != "import")
    {
        return Err(VaultError::property("key_ops"));
    }
    Ok(Some(given))
}

/// A key to generate.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    Rsa(RsaBits),
    Ec(usize),
}

/// The key that these members of a body ask for.
pub(super) fn wanted(members: &Value) -> Result<Wanted, VaultError> {
    match members.get("kty").and_then(Value::as_str) {
        Some("RSA") => {
            let size = match members.get("key_size") {
                None | Some(Value::Null) => 2048,
                Some(size) => size.as_u64().unwrap_or_default(),
            };
            RsaBits::of(size).map(Wanted::Rsa).ok_or_else(|| VaultError::property("key_size"))
        }
        Some("EC") => {
            let curve = members.get("crv").and_then(Value::as_str).unwrap_or("P-256");
            let index = jwk::CURVES.iter().position(|(name, _)| *name == curve);
            index.map(Wanted::Ec).ok_or_else(|| VaultError::property("crv"))
        }
        _ => Err(VaultError::property("kty")),
    }
}

/// Generates a key on a thread that may block.
pub(super) async fn generate(wanted: Wanted) -> Result<KeyPem, VaultError> {
    let made = tokio::task::spawn_blocking(move || match wanted {
        Wanted::Rsa(bits) => generate_rsa(bits).ok(),
        Wanted::Ec(index) => {
            let (_, algorithm) = jwk::CURVES.get(index)?;
            let pair = EcdsaKeyPair::generate(algorithm).ok()?;
            Some(key_pem(pair.to_pkcs8v1().ok()?.as_ref()))
        }
    });
    made.await.ok().flatten().ok_or_else(|| VaultError::internal("generate a key"))
}

/// The operations of a key, unless the body names others.
pub(super) fn default_operations(rsa: bool) -> Vec<String> {
    let names: &[&str] = if rsa { &RSA_OPERATIONS } else { &EC_OPERATIONS };
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(super) async fn create(call: &Call<'_>, name: &str) -> Answer {
    check_name(name)?;
    let wanted = wanted(&call.body)?;
    let given = attributes::parse(&call.body)?;
    let operations =
        operations(&call.body)?.unwrap_or_else(|| default_operations(matches!(wanted, Wanted::Rsa(_))));
    let key = generate(wanted).await?;
    add(call, name, &given, key, operations).await
}

pub(super) async fn import(call: &Call<'_>, name: &str) -> Answer {
    check_name(name)?;
    if call.body.get("Hsm") == Some(&json!(true)) {
        return Err(VaultError::bad("Keys of hardware security modules are not supported by this vault"));
    }
    let members = call.body.get("key").ok_or_else(|| VaultError::bad("Property key is required"))?;
    let key = jwk::import(members).ok_or_else(|| VaultError::bad("The key is not a valid private key"))?;
    let given = attributes::parse(&call.body)?;
    let rsa = members.get("kty") == Some(&json!("RSA"));
    let operations = operations(members)?.unwrap_or_else(|| default_operations(rsa));
    add(call, name, &given, key, operations).await
}

async fn add(
    call: &Call<'_>,
    name: &str,
    given: &attributes::Given,
    key: KeyPem,
    operations: Vec<String>,
) -> Answer {
    let content = Content::Key { pem: key.expose().clone(), operations };
    let new = NewVersion { kind: Kind::Key, content, managed: false, policy: None, operation: None };
    let (ops, object, record) = add_version(call, name, &version_name(), given, new).await?;
    call.store.write(&call.vault.resource_id, ops).await?;
    Ok((StatusCode::OK, render::bundle(call, &object, &record)?))
}

fn check_usable(
    record: &VersionRecord,
    operations: &[String],
    usage: Usage,
    now: i64,
) -> Result<(), VaultError> {
    let name = usage.name();
    if !record.enabled {
        let message = format!("Operation {name} is not allowed on a disabled key.");
        return Err(VaultError::forbidden("KeyDisabled", &message));
    }
    // What was encrypted with a key can be read after its time.
    let uses_now = !matches!(usage, Usage::Decrypt | Usage::UnwrapKey | Usage::Verify);
    if uses_now && (record.nbf.is_some_and(|nbf| now < nbf) || record.exp.is_some_and(|exp| now >= exp)) {
        let message =
            format!("Operation {name} is not allowed on an expired key or on one that is not yet valid.");
        return Err(VaultError::forbidden("KeyNotYetValidOrExpired", &message));
    }
    if !operations.iter().any(|own| own == name) {
        let message = format!("Operation {name} is not permitted on this key.");
        return Err(VaultError::forbidden("KeyOperationForbidden", &message));
    }
    Ok(())
}

/// Encrypts, decrypts, wraps, unwraps, signs or verifies.
pub(super) async fn perform(call: &Call<'_>, name: &str, version: &str, usage: Usage) -> Answer {
    let vault = &call.vault.resource_id;
    let object = call.store.get_object(vault, Kind::Key, name, call.now).await?;
    let found = call.store.get_version(vault, &object.value, version).await?.value;
    let Content::Key { pem, operations } = &found.content else {
        return Err(VaultError::internal("read a stored key"));
    };
    check_usable(&found, operations, usage, call.now.as_second())?;
    let member = |name: &str| {
        let text = call.body.get(name).and_then(Value::as_str);
        let bytes = text.and_then(|text| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok());
        bytes.ok_or_else(|| VaultError::property(name))
    };
    let algorithm =
        call.body.get("alg").and_then(Value::as_str).ok_or_else(|| VaultError::property("alg"))?;
    let result = match usage {
        Usage::Encrypt | Usage::WrapKey => crypto::encrypt(pem, algorithm, &member("value")?)?,
        Usage::Decrypt | Usage::UnwrapKey => crypto::decrypt(pem, algorithm, &member("value")?)?,
        Usage::Sign => crypto::sign(pem, algorithm, &member("value")?)?,
        Usage::Verify => {
            let valid = crypto::verify(pem, algorithm, &member("digest")?, &member("value")?)?;
            return Ok((StatusCode::OK, json!({"value": valid})));
        }
    };
    let kid = render::version_id(call, Kind::Key, &found.name, &found.version);
    Ok((StatusCode::OK, json!({"kid": kid, "value": URL_SAFE_NO_PAD.encode(result)})))
}
