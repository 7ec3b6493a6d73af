//! Certificate signing requests.
//!
//! Invariant: the fields that an approver reads are the fields that are signed. A request that could be read in two ways
//! (a field given twice, or in a form that not every reader decodes) is refused.

use std::net::IpAddr;

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, SubjectAlternativeName, X509Extension};
use x509_parser::oid_registry::{OID_PKCS9_EXTENSION_REQUEST, OID_X509_EXT_SUBJECT_ALT_NAME};
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::X509Name;

use crate::{PkiError, Subject};

/// A certificate signing request, with the fields that an approver needs.
#[derive(Debug, Clone)]
pub struct SigningRequest {
    /// The subject, the key and the alternative names as received: they are signed unchanged.
    pub(crate) name: Vec<u8>,
    pub(crate) public_key: Vec<u8>,
    pub(crate) alternative_names: Option<Vec<u8>>,
    /// The subject.
    pub subject: Subject,
    /// The requested DNS names.
    pub dns_names: Vec<String>,
    /// The requested IP addresses.
    pub addresses: Vec<IpAddr>,
    /// The requested e-mail addresses and URIs.
    pub others: Vec<String>,
}

const WHAT: PkiError = PkiError::Unreadable("the certificate signing request");

impl SigningRequest {
    /// Parses a request in PEM, and checks its signature.
    pub fn parse(pem: &str) -> Result<Self, PkiError> {
        let block = pem::parse(pem).map_err(|_| WHAT)?;
        if block.tag() != "CERTIFICATE REQUEST" {
            return Err(WHAT);
        }
        let parsed = X509CertificationRequest::from_der(block.contents());
        let (_, request) = parsed.map_err(|_| WHAT)?;
        // The requester must hold the key.
        request.verify_signature().map_err(|_| WHAT)?;
        let info = &request.certification_request_info;
        check_subject(&info.subject)?;
        let mut read = Self {
            name: info.subject.as_raw().to_vec(),
            public_key: info.subject_pki.raw.to_vec(),
            alternative_names: None,
            subject: Subject::of_name(&info.subject),
            dns_names: Vec::new(),
            addresses: Vec::new(),
            others: Vec::new(),
        };
        let Some(extension) = alternative_names(&request)? else { return Ok(read) };
        let (rest, names) = SubjectAlternativeName::from_der(extension.value).map_err(|_| WHAT)?;
        if !rest.is_empty() {
            return Err(WHAT);
        }
        for name in &names.general_names {
            match name {
                GeneralName::DNSName(name) => read.dns_names.push((*name).to_owned()),
                GeneralName::IPAddress(bytes) => read.addresses.push(address(bytes).ok_or(WHAT)?),
                other => read.others.push(other.to_string()),
            }
        }
        read.alternative_names = Some(extension.value.to_vec());
        Ok(read)
    }
}

/// Readers differ in which of several common names counts, and in the string types they decode.
fn check_subject(subject: &X509Name<'_>) -> Result<(), PkiError> {
    let mut read = subject.iter_common_name().chain(subject.iter_organization());
    if subject.iter_common_name().count() > 1 || read.any(|attribute| attribute.as_str().is_err()) {
        return Err(WHAT);
    }
    Ok(())
}

/// The one extension that requests alternative names.
fn alternative_names<'a>(
    request: &'a X509CertificationRequest<'_>,
) -> Result<Option<&'a X509Extension<'a>>, PkiError> {
    let attributes = request.certification_request_info.iter_attributes();
    let mut attributes = attributes.filter(|attribute| attribute.oid == OID_PKCS9_EXTENSION_REQUEST);
    let Some(attribute) = attributes.next() else { return Ok(None) };
    let ParsedCriAttribute::ExtensionRequest(requested) = attribute.parsed_attribute() else {
        return Err(WHAT);
    };
    let mut named =
        requested.extensions.iter().filter(|extension| extension.oid == OID_X509_EXT_SUBJECT_ALT_NAME);
    let first = named.next();
    if attributes.next().is_some() || named.next().is_some() { Err(WHAT) } else { Ok(first) }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}
