//! Options of writes, checked before anything else is looked at.

use aro_kube_apimachinery::GroupKind;
use aro_kube_apimachinery::status::{FieldError, Status};
use serde_json::json;

use super::call::Call;

/// The longest name of a field manager.
const MANAGER: usize = 128;

fn kind(name: &str) -> GroupKind {
    GroupKind { group: "meta.k8s.io".to_owned(), kind: name.to_owned() }
}

/// Refuses options that no write can have.
pub(super) fn check(call: &Call) -> Result<(), Status> {
    let mut errors = Vec::new();
    let name = match call.verb {
        "create" => "CreateOptions",
        "patch" => {
            let applies = call.content_type().starts_with("application/apply-patch");
            if applies && call.query.get("fieldManager").is_none() {
                errors.push(FieldError::required("fieldManager", "is required for apply patch"));
            } else if !applies && call.query.get("force").is_some() {
                errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
            }
            "PatchOptions"
        }
        _ => "UpdateOptions",
    };
    errors.extend(manager(call.query.get("fieldManager").unwrap_or_default()));
    errors.extend(dry_run(call));
    if let Some(other) = call.query.get("fieldValidation")
        && !["Ignore", "Strict", "Warn"].contains(&other)
    {
        errors.push(FieldError::not_supported("fieldValidation", other, ["", "Ignore", "Strict", "Warn"]));
    }
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(&kind(name), "", &errors)) }
}

fn manager(name: &str) -> Option<FieldError> {
    if name.chars().count() > MANAGER {
        return Some(FieldError::too_long("fieldManager", MANAGER));
    }
    let (position, bad) = name.char_indices().find(|(_, c)| c.is_control())?;
    let detail = format!("invalid character U+{:04X} (at position {position})", u32::from(bad));
    Some(FieldError::invalid("fieldManager", name, detail))
}

/// `dryRun=All` is the only one there is.
pub(super) fn dry_run(call: &Call) -> Option<FieldError> {
    let values: Vec<&str> = call.query.all("dryRun").collect();
    let odd = values.iter().any(|value| *value != "All");
    odd.then(|| FieldError::not_supported("dryRun", json!(values), ["All"]))
}
