//! Attributes and tags of versions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::documents::VersionRecord;
use super::error::VaultError;
use crate::guard::Vault;

const MOST_TAGS: usize = 15;
const LONGEST_TAG: usize = 256;

/// What a body sets. A member that is absent stays as it is.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    enabled: Option<bool>,
    nbf: Option<i64>,
    exp: Option<i64>,
    tags: Option<BTreeMap<String, String>>,
}

/// Reads attributes and tags of a body.
pub(super) fn parse(body: &Value) -> Result<Given, VaultError> {
    let mut given = Given::default();
    let attributes = match body.get("attributes") {
        None | Some(Value::Null) => &Value::Null,
        Some(object @ Value::Object(_)) => object,
        Some(_) => return Err(VaultError::property("attributes")),
    };
    match attributes.get("enabled") {
        None | Some(Value::Null) => {}
        Some(Value::Bool(enabled)) => given.enabled = Some(*enabled),
        Some(_) => return Err(VaultError::property("enabled")),
    }
    let moment = |name: &str| match attributes.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_i64().filter(|moment| (0..=253_402_300_799).contains(moment)) {
            Some(moment) => Ok(Some(moment)),
            None => Err(VaultError::property(name)),
        },
    };
    given.nbf = moment("nbf")?;
    given.exp = moment("exp")?;
    match body.get("tags") {
        None | Some(Value::Null) => {}
        Some(tags) => {
            let tags: BTreeMap<String, String> =
                serde_json::from_value(tags.clone()).map_err(|_| VaultError::property("tags"))?;
            let long = |text: &String| text.len() > LONGEST_TAG;
            if tags.len() > MOST_TAGS || tags.iter().any(|(name, value)| long(name) || long(value)) {
                return Err(VaultError::property("tags"));
            }
            given.tags = Some(tags);
        }
    }
    Ok(given)
}

impl Given {
    /// With the validity of a certificate, which a caller cannot choose.
    pub(super) fn valid(&self, (nbf, exp): (i64, i64)) -> Self {
        Self { nbf: Some(nbf), exp: Some(exp), ..self.clone() }
    }

    /// Sets what is given.
    pub(super) fn apply(&self, record: &mut VersionRecord) -> Result<(), VaultError> {
        record.enabled = self.enabled.unwrap_or(record.enabled);
        record.nbf = self.nbf.or(record.nbf);
        record.exp = self.exp.or(record.exp);
        if let Some(tags) = &self.tags {
            record.tags.clone_from(tags);
        }
        match (record.nbf, record.exp) {
            (Some(nbf), Some(exp)) if nbf > exp => Err(VaultError::bad("Property nbf must not be after exp")),
            _ => Ok(()),
        }
    }
}

/// Attributes as they are shown.
pub(super) fn shown(record: &VersionRecord, vault: &Vault) -> Value {
    let level = if vault.purge_protection { "Recoverable" } else { "Recoverable+Purgeable" };
    let mut shown = json!({
        "enabled": record.enabled,
        "created": record.created,
        "updated": record.updated,
        "recoveryLevel": level,
        "recoverableDays": vault.soft_delete_days,
    });
    for (name, moment) in [("nbf", record.nbf), ("exp", record.exp)] {
        if let Some(moment) = moment {
            shown[name] = json!(moment);
        }
    }
    shown
}
