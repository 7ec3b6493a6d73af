//! Names, group and scope of a definition.

use aro_kube_apimachinery::FieldError;
use serde_json::Value;

use crate::definition::{Errors, list, text};
use crate::validate::formats::{is_dns_label, is_dns_subdomain};

const DNS_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
pub(crate) const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
/// The approval of names in groups that belong to Kubernetes stands in this annotation.
pub(super) const APPROVED: &str = "api-approved.kubernetes.io";

/// Why a text is no DNS-1035 label.
pub(crate) fn label_problem(label: &str) -> Option<String> {
    if label.len() > 63 {
        return Some("must be no more than 63 characters".to_owned());
    }
    let sound = is_dns_label(label) && label.starts_with(|c: char| c.is_ascii_lowercase());
    (!sound).then(|| DNS_1035.to_owned())
}

pub(super) fn identity(crd: &Value, errors: &mut Errors) {
    let name = crd.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let plural = crd.pointer("/spec/names/plural").and_then(Value::as_str).unwrap_or_default();
    let group = crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
    if name != format!("{plural}.{group}") {
        errors.invalid("metadata.name", name, r#"must be spec.names.plural+"."+spec.group"#);
    }
}

pub(super) fn group_and_scope(spec: &Value, errors: &mut Errors) {
    let group = text(spec, "group");
    if group.is_empty() {
        errors.required("spec.group", "");
    } else if !is_dns_subdomain(group) {
        errors.invalid("spec.group", group, SUBDOMAIN);
    } else if !group.contains('.') {
        errors.invalid("spec.group", group, "should be a domain with at least one dot");
    }
    match text(spec, "scope") {
        "" => errors.required("spec.scope", ""),
        "Cluster" | "Namespaced" => {}
        other => errors.push(FieldError::not_supported("spec.scope", other, ["Cluster", "Namespaced"])),
    }
    if spec.get("preserveUnknownFields").and_then(Value::as_bool) == Some(true) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.invalid("spec.preserveUnknownFields", true, detail);
    }
}

pub(super) fn names(spec: &Value, errors: &mut Errors) {
    let names = spec.get("names").unwrap_or(&Value::Null);
    for (key, mixed) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        let field = format!("spec.names.{key}");
        let name = text(names, key);
        if name.is_empty() {
            errors.required(field, "");
        } else if mixed {
            if let Some(problem) = label_problem(&name.to_lowercase()) {
                let detail = format!("may have mixed case, but should otherwise match: {problem}");
                errors.invalid(field, name, detail);
            }
        } else if let Some(problem) = label_problem(name) {
            errors.invalid(field, name, problem);
        }
    }
    for key in ["shortNames", "categories"] {
        for (index, name) in list(names, key).iter().filter_map(Value::as_str).enumerate() {
            if let Some(problem) = label_problem(name) {
                errors.invalid(format!("spec.names.{key}[{index}]"), name, problem);
            }
        }
    }
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        errors.invalid("spec.names.listKind", kind, "kind and listKind may not be the same");
    }
}

/// What may not change once it was established.
pub(super) fn immutable(spec: &Value, old: &Value, errors: &mut Errors) {
    let before = old.get("spec").unwrap_or(&Value::Null);
    let conditions = old.pointer("/status/conditions").and_then(Value::as_array);
    let established = conditions
        .into_iter()
        .flatten()
        .any(|condition| text(condition, "type") == "Established" && text(condition, "status") == "True");
    let mut check = |path: &str| {
        let (now, was) = (spec.pointer(path), before.pointer(path));
        if now != was {
            let field = format!("spec{}", path.replace('/', "."));
            errors.invalid(field, now.cloned().unwrap_or_default(), "field is immutable");
        }
    };
    if established {
        check("/scope");
        check("/names/kind");
    }
    check("/group");
    check("/names/plural");
}

/// What the annotation says about a group of Kubernetes itself.
pub(super) enum Approval<'a> {
    NotNeeded,
    Missing,
    Unapproved(&'a str),
    Approved(&'a str),
    Invalid(&'a str),
}

pub(super) fn approval_of(crd: &Value) -> Approval<'_> {
    let group = crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|owner| group.strip_suffix(owner).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    if !protected {
        return Approval::NotNeeded;
    }
    let annotation =
        crd.get("metadata").and_then(|metadata| metadata.get("annotations")?.get(APPROVED)?.as_str());
    match annotation.unwrap_or_default() {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Unapproved(text),
        text if text
            .split_once("://")
            .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty()) =>
        {
            Approval::Approved(text)
        }
        text => Approval::Invalid(text),
    }
}

/// Definitions that had no sound approval before may stay without.
pub(super) fn approval(crd: &Value, old: Option<&Value>, errors: &mut Errors) {
    let was_unsound =
        old.is_some_and(|old| matches!(approval_of(old), Approval::Missing | Approval::Invalid(_)));
    if was_unsound {
        return;
    }
    const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let field = format!("metadata.annotations[{APPROVED}]");
    match approval_of(crd) {
        Approval::Missing => {
            errors.required(field, &format!("protected groups must have approval annotation {APPROVED:?}, {SEE}"));
        }
        Approval::Invalid(text) => errors.invalid(
            field,
            text,
            format!("protected groups must have approval annotation {APPROVED:?} with either a URL or a reason starting with \"unapproved\", {SEE}"),
        ),
        Approval::NotNeeded | Approval::Unapproved(_) | Approval::Approved(_) => {}
    }
}
