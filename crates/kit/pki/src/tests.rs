use aro_base::{SignedDuration, Timestamp};
use x509_parser::prelude::FromDer as _;

use super::*;

fn validity() -> Validity {
    Validity::from_now(Timestamp::from_second(1_800_000_000).unwrap(), SignedDuration::from_hours(24))
}

fn leaf(subject: Subject) -> Leaf {
    Leaf {
        subject,
        dns_names: vec!["svc.kube.localhost".to_owned()],
        addresses: vec![[127, 0, 0, 1].into()],
        usage: Usage::Both,
        validity: validity(),
    }
}

fn contents(pem: &str) -> Vec<u8> {
    pem::parse(pem).unwrap().into_contents()
}

#[test]
fn issued_certificate_verifies_and_has_the_requested_fields() {
    let authority = Authority::generate("test", validity()).unwrap();
    let authority = Authority::load(authority.certificate(), &authority.key()).unwrap();
    let subject = Subject::new("alice", ["one", "two", "three"]);
    let issued = authority.issue(&leaf(subject.clone())).unwrap();
    let der = contents(&issued.certificate);
    assert_eq!(Subject::of_certificate(&der).unwrap(), subject);
    let ca = contents(authority.certificate());
    let (_, ca) = x509_parser::certificate::X509Certificate::from_der(&ca).unwrap();
    let (_, certificate) = x509_parser::certificate::X509Certificate::from_der(&der).unwrap();
    certificate.verify_signature(Some(ca.public_key())).unwrap();
    assert_eq!(certificate.issuer(), ca.subject());
    let names = certificate.subject_alternative_name().unwrap().unwrap();
    assert_eq!(names.value.general_names.len(), 2);
    assert!(!certificate.is_ca());
    assert_eq!(certificate.validity().not_after.timestamp(), 1_800_000_000 + 24 * 3600);
}

#[test]
fn request_is_signed_with_its_own_subject_and_key() {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["node-1".to_owned()]).unwrap();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(rcgen::DnType::CommonName, "system:node:node-1");
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    let request = SigningRequest::parse(&pem).unwrap();
    assert_eq!(request.subject, Subject::new("system:node:node-1", ["system:nodes"]));
    assert_eq!(request.dns_names, ["node-1"]);
    let authority = Authority::generate("test", validity()).unwrap();
    let certificate = authority.sign(&request, Usage::Server, validity()).unwrap();
    let der = contents(&certificate);
    let (_, certificate) = x509_parser::certificate::X509Certificate::from_der(&der).unwrap();
    assert_eq!(certificate.public_key().raw, rcgen::PublicKeyData::subject_public_key_info(&key));
    assert_eq!(certificate.subject_alternative_name().unwrap().unwrap().value.general_names.len(), 1);
}

#[test]
fn invalid_request_is_rejected() {
    for text in ["", "x", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"] {
        assert!(SigningRequest::parse(text).is_err(), "{text}");
    }
}
