//! The certificate request a caller sends for an admin credential.

use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;

use crate::{FieldError, FieldPath};

/// The member that holds it.
const MEMBER: &str = "certificateSigningRequest";
/// The subject every such request must have.
const COMMON_NAME: &str = "system:customer-break-glass:system-admin";
const ORGANIZATION: &str = "system:masters";

/// Reads the body of a credential request and checks the certificate request in it: one PEM block, well-formed, with
/// exactly the subject that a break-glass administrator has.
pub fn decode_request(body: &Value) -> Result<String, Vec<FieldError>> {
    let path = FieldPath::root().child(MEMBER);
    let Some(members) = body.as_object() else {
        return Err(vec![FieldError::undecodable(&FieldPath::root(), "expected an object")]);
    };
    let pem = match members.get(MEMBER) {
        None | Some(Value::Null) => return Err(vec![FieldError::required(&path)]),
        Some(Value::String(text)) if text.trim().is_empty() => return Err(vec![FieldError::required(&path)]),
        Some(Value::String(text)) => text,
        Some(_) => return Err(vec![FieldError::undecodable(&path, format!("{MEMBER}: expected a string"))]),
    };
    let problems = check(pem, &path);
    if problems.is_empty() { Ok(pem.clone()) } else { Err(problems) }
}

fn check(pem: &str, path: &FieldPath) -> Vec<FieldError> {
    // The text itself is not repeated in the error: it is long, and it is the caller's.
    let invalid = |why: &str| vec![FieldError::invalid(path, "<certificate signing request>", why)];
    let Ok(block) = pem::parse(pem) else {
        return invalid("must be a PEM block of type CERTIFICATE REQUEST");
    };
    if block.tag() != "CERTIFICATE REQUEST" {
        return invalid("must be a PEM block of type CERTIFICATE REQUEST");
    }
    let Ok(([], request)) = X509CertificationRequest::from_der(block.contents()) else {
        return invalid("must be a DER-encoded PKCS #10 certificate request");
    };
    let subject = &request.certification_request_info.subject;
    let names = |attributes: Vec<Option<&str>>| -> Vec<String> {
        attributes.into_iter().map(|name| name.unwrap_or("?").to_owned()).collect()
    };
    let common_names = names(subject.iter_common_name().map(|attribute| attribute.as_str().ok()).collect());
    let organizations = names(subject.iter_organization().map(|attribute| attribute.as_str().ok()).collect());
    let mut problems = Vec::new();
    if common_names != [COMMON_NAME] {
        problems.extend(invalid(&format!("subject CN must be {COMMON_NAME:?}")));
    }
    if organizations != [ORGANIZATION] {
        problems.extend(invalid(&format!("subject O must be [{ORGANIZATION:?}]")));
    }
    problems
}
