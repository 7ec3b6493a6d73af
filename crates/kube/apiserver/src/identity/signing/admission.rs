//! Admission of certificate signing requests: upstream's `CertificateApproval`, `CertificateSigning` and
//! `CertificateSubjectRestriction`, and the rules of their conditions.
//!
//! Invariants: a decision (`Approved`, `Denied`) is made at `/approval` and stays; a certificate is written once, at
//! `/status`; permissions are those for the signer of the stored request, whatever the body says.

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::{FieldError, Status};
use aro_pki::SigningRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::CLIENT;
use crate::identity::authorize::{Attributes, allow};
use crate::identity::user::MASTERS;
use crate::rest::Call;

/// Conditions that are the answer to a request.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];
/// Conditions that are true or absent, and never removed.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];

const CONDITIONS: &str = "status.conditions";

fn conditions(csr: &Value) -> Vec<Value> {
    meta::get(csr, &["status", "conditions"]).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn of_kind<'a>(conditions: &'a [Value], kind: &str) -> Vec<&'a Value> {
    conditions.iter().filter(|condition| text(condition, "type") == kind).collect()
}

/// Fills in the times of conditions. At `/status`, decisions stay as they are.
pub fn prepare(call: &Call, object: &mut Value, old: &Value) {
    let before = conditions(old);
    let mut after = conditions(object);
    if after.is_empty() {
        return;
    }
    if call.subresource == "status" {
        for kind in DECISIONS {
            let old = of_kind(&before, kind);
            // One that was added or removed is refused by `validate`.
            if old.len() != of_kind(&after, kind).len() {
                continue;
            }
            let new = after.iter_mut().filter(|condition| text(condition, "type") == kind);
            new.zip(old).for_each(|(new, old)| new.clone_from(old));
        }
    }
    let now = json!(call.time());
    let blank = |condition: &Value, name: &str| condition.get(name).is_none_or(Value::is_null);
    for condition in after.iter_mut().filter(|condition| condition.is_object()) {
        if blank(condition, "lastUpdateTime") {
            condition["lastUpdateTime"] = now.clone();
        }
        if blank(condition, "lastTransitionTime") {
            let same = before.iter().find(|known| {
                text(known, "type") == text(condition, "type")
                    && text(known, "status") == text(condition, "status")
                    && !blank(known, "lastTransitionTime")
            });
            let since = same.and_then(|known| known.get("lastTransitionTime")).unwrap_or(&now).clone();
            condition["lastTransitionTime"] = since;
        }
    }
    meta::set(object, &["status", "conditions"], json!(after));
}

/// Checks a change of `/approval` or `/status`: its rules first, then the permissions of the caller, as upstream does.
pub fn validate(call: &Call, new: &Value, old: &Value) -> Result<(), Status> {
    let (before, after) = (conditions(old), conditions(new));
    let mut errors = Vec::new();
    check_conditions(&before, &after, &mut errors);
    for kind in FINAL {
        if of_kind(&after, kind).len() < of_kind(&before, kind).len() {
            let detail = format!("updates may not remove a condition of type {kind:?}");
            errors.push(FieldError::forbidden(CONDITIONS, detail));
        }
    }
    if call.subresource == "status" {
        for kind in DECISIONS {
            if of_kind(&after, kind).len() > of_kind(&before, kind).len() {
                let detail = format!("updates may not add a condition of type {kind:?}");
                errors.push(FieldError::forbidden(CONDITIONS, detail));
            }
        }
    }
    fn certificate(csr: &Value) -> &str {
        meta::get(csr, &["status", "certificate"]).and_then(Value::as_str).unwrap_or_default()
    }
    let (had, has) = (certificate(old), certificate(new));
    if had != has && !had.is_empty() {
        let detail = "updates may not modify existing certificate content";
        errors.push(FieldError::forbidden("status.certificate", detail));
    }
    if !errors.is_empty() {
        return Err(Status::invalid(&call.served.resource.group_kind(), meta::name(new), &errors));
    }
    match call.subresource.as_str() {
        "approval" => authorize(call, "approve", old),
        "status" if had != has || before != after => authorize(call, "sign", old),
        _ => Ok(()),
    }
}

fn check_conditions(before: &[Value], after: &[Value], errors: &mut Vec<FieldError>) {
    let kinds = |list: &[Value]| list.iter().map(|one| text(one, "type").to_owned()).collect::<Vec<_>>();
    let repeats = |kinds: &[String]| {
        let earlier = |index: usize| kinds.get(..index).unwrap_or_default();
        kinds.iter().enumerate().any(|(index, kind)| earlier(index).contains(kind))
    };
    let has_both = |kinds: &[String]| DECISIONS.iter().all(|kind| kinds.iter().any(|known| known == kind));
    let (known, given) = (kinds(before), kinds(after));
    // What is stored already is tolerated, upstream too.
    let (tolerate_both, tolerate_repeats) = (has_both(&known), repeats(&known));
    let tolerate_blank = known.iter().any(String::is_empty);
    for (index, condition) in after.iter().enumerate() {
        let kind = text(condition, "type");
        let earlier = given.get(..index).unwrap_or_default();
        let at = |member: &str| format!("{CONDITIONS}[{index}].{member}");
        if kind.is_empty() && !tolerate_blank {
            errors.push(FieldError::required(at("type"), ""));
        }
        let allowed: &[&str] = if FINAL.contains(&kind) { &["True"] } else { &["False", "True", "Unknown"] };
        match text(condition, "status") {
            "" => errors.push(FieldError::required(at("status"), "")),
            status if !allowed.contains(&status) => {
                errors.push(FieldError::not_supported(at("status"), status, allowed.iter().copied()));
            }
            _ => {}
        }
        let other = DECISIONS.iter().find(|decision| DECISIONS.contains(&kind) && **decision != kind);
        if !tolerate_both && other.is_some_and(|other| earlier.iter().any(|known| known == other)) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(CONDITIONS, kind, detail));
        }
        if !tolerate_repeats && earlier.iter().any(|known| known == kind) {
            errors.push(FieldError::duplicate(at("type"), kind));
        }
    }
}

/// Approving, denying and signing need a permission for the signer, too. The stored request names it: the body is the
/// caller's.
fn authorize(call: &Call, verb: &str, stored: &Value) -> Result<(), Status> {
    let signer = meta::get(stored, &["spec", "signerName"]).and_then(Value::as_str).unwrap_or_default();
    let domain = signer.split('/').next().unwrap_or(signer);
    let may = |name: &str| {
        let asked = Attributes {
            verb,
            group: "certificates.k8s.io",
            version: "*",
            resource: "signers",
            name,
            ..Attributes::default()
        };
        allow(&call.cluster, &call.user, &asked).is_ok()
    };
    if may(signer) || may(&format!("{domain}/*")) {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(Status::forbidden(&call.resource_name(), &call.name, why))
}

/// No certificate for a client of this API server names the group that no role can restrict.
pub fn restrict_subject(call: &Call, object: &Value) -> Result<(), Status> {
    let spec = |name: &str| meta::get(object, &["spec", name]).and_then(Value::as_str).unwrap_or_default();
    if spec("signerName") != CLIENT {
        return Ok(());
    }
    let refuse = |why: String| Err(Status::forbidden(&call.resource_name(), meta::name(object), why));
    let pem = STANDARD.decode(spec("request")).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let request = match SigningRequest::parse(&pem.unwrap_or_default()) {
        Ok(request) => request,
        Err(error) => return refuse(format!("failed to parse CSR: {error}")),
    };
    if request.subject.organizations.iter().any(|group| group == MASTERS) {
        return refuse(format!("use of {CLIENT} signer with {MASTERS} group is not allowed"));
    }
    Ok(())
}
