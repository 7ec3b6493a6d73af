//! Certificate policies: how the next version of a certificate is made.

use serde_json::{Value, json};

use super::error::VaultError;
use super::keys::{self, Wanted};

/// A policy that was checked.
#[derive(Debug)]
pub(super) struct Policy {
    pub key: Wanted,
    pub exportable: bool,
    pub reuse_key: bool,
    pub format: Format,
    pub subject: String,
    pub dns_names: Vec<String>,
    pub emails: Vec<String>,
    pub key_usage: Vec<String>,
    pub extended_usage: Vec<String>,
    pub months: i32,
}

/// How the secret of a certificate is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Pkcs12,
    Pem,
}

impl Format {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Pkcs12 => "application/x-pkcs12",
            Self::Pem => "application/x-pem-file",
        }
    }

    pub(super) fn of(policy: &Value) -> Result<Option<Self>, VaultError> {
        match policy.pointer("/secret_props/contentType") {
            None | Some(Value::Null) => Ok(None),
            Some(text) if text == "application/x-pkcs12" => Ok(Some(Self::Pkcs12)),
            Some(text) if text == "application/x-pem-file" => Ok(Some(Self::Pem)),
            Some(_) => Err(VaultError::property("policy.secret_props.contentType")),
        }
    }
}

const MOST_NAMES: usize = 100;

fn texts(policy: &Value, pointer: &str) -> Result<Vec<String>, VaultError> {
    match policy.pointer(pointer) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(value) => {
            let texts: Vec<String> = serde_json::from_value(value.clone())
                .map_err(|_| VaultError::property(&pointer.replace('/', ".")))?;
            if texts.len() > MOST_NAMES || texts.iter().any(|text| text.len() > 255 || text.is_empty()) {
                return Err(VaultError::property(&pointer.replace('/', ".")));
            }
            Ok(texts)
        }
    }
}

fn flag(policy: &Value, pointer: &str, default: bool) -> Result<bool, VaultError> {
    match policy.pointer(pointer) {
        None | Some(Value::Null) => Ok(default),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(VaultError::property(&pointer.replace('/', "."))),
    }
}

/// Checks a policy.
pub(super) fn parse(policy: &Value) -> Result<Policy, VaultError> {
    if !policy.is_object() {
        return Err(VaultError::property("policy"));
    }
    match policy.pointer("/issuer/name").map(Value::as_str) {
        Some(Some(name)) if name.eq_ignore_ascii_case("self") => {}
        Some(Some(_)) => {
            return Err(VaultError::bad(
                "Property issuer.name has invalid value: only Self is available in this vault",
            ));
        }
        _ => return Err(VaultError::property("policy.issuer.name")),
    }
    let default_key = json!({"kty": "RSA", "key_size": 2048});
    let key_props = policy.get("key_props").filter(|props| props.is_object()).unwrap_or(&default_key);
    let kty = key_props.get("kty").cloned().unwrap_or_else(|| json!("RSA"));
    let wanted = json!({"kty": kty, "key_size": key_props.get("key_size"), "crv": key_props.get("crv")});
    let months = match policy.pointer("/x509_props/validity_months") {
        None | Some(Value::Null) => 12,
        Some(months) => months
            .as_i64()
            .filter(|months| (1..=1200).contains(months))
            .ok_or_else(|| VaultError::property("policy.x509_props.validity_months"))?,
    };
    let subject = match policy.pointer("/x509_props/subject") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(subject)) if subject.len() <= 1000 => subject.clone(),
        Some(_) => return Err(VaultError::property("policy.x509_props.subject")),
    };
    let dns_names = texts(policy, "/x509_props/sans/dns_names")?;
    if subject.is_empty() && dns_names.is_empty() {
        return Err(VaultError::bad("Property policy.x509_props must have a subject or alternative names"));
    }
    Ok(Policy {
        key: keys::wanted(&wanted)?,
        exportable: flag(policy, "/key_props/exportable", true)?,
        reuse_key: flag(policy, "/key_props/reuse_key", false)?,
        format: Format::of(policy)?.unwrap_or(Format::Pkcs12),
        subject,
        dns_names,
        emails: texts(policy, "/x509_props/sans/emails")?,
        key_usage: texts(policy, "/x509_props/key_usage")?,
        extended_usage: texts(policy, "/x509_props/ekus")?,
        months: months as i32,
    })
}

/// A policy with some members replaced. Depth is bounded: policies have two levels.
pub(super) fn merge(mut policy: Value, changes: &Value) -> Result<Value, VaultError> {
    let changes = changes.as_object().ok_or_else(|| VaultError::property("policy"))?;
    for (name, change) in changes.iter().filter(|(name, _)| *name != "id") {
        match (policy.get_mut(name).and_then(Value::as_object_mut), change.as_object()) {
            (Some(own), Some(change)) => {
                own.extend(change.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            _ => policy[name] = change.clone(),
        }
    }
    parse(&policy)?;
    Ok(policy)
}

/// A policy as it is stored: with what was not given.
pub(super) fn complete(policy: &Value, parsed: &Policy) -> Value {
    let mut whole = policy.clone();
    let (kty, size, curve) = match parsed.key {
        Wanted::Rsa(bits) => {
            let size = match bits {
                aro_pki::RsaBits::B2048 => 2048,
                aro_pki::RsaBits::B3072 => 3072,
                aro_pki::RsaBits::B4096 => 4096,
            };
            ("RSA", Some(size), None)
        }
        Wanted::Ec(index) => ("EC", None, super::jwk::CURVES.get(index).map(|(name, _)| *name)),
    };
    let mut key_props = json!({"exportable": parsed.exportable, "reuse_key": parsed.reuse_key, "kty": kty});
    if let Some(size) = size {
        key_props["key_size"] = json!(size);
    }
    if let Some(curve) = curve {
        key_props["crv"] = json!(curve);
    }
    whole["key_props"] = key_props;
    whole["secret_props"] = json!({"contentType": parsed.format.content_type()});
    let mut x509 = json!({
        "subject": parsed.subject,
        "validity_months": parsed.months,
        "key_usage": parsed.key_usage,
        "ekus": parsed.extended_usage,
    });
    if !parsed.dns_names.is_empty() || !parsed.emails.is_empty() {
        x509["sans"] = json!({"dns_names": parsed.dns_names, "emails": parsed.emails});
    }
    whole["x509_props"] = x509;
    if let Some(whole) = whole.as_object_mut() {
        whole.remove("id");
    }
    whole
}
