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

const EXTENSION_REQUEST: &[u64] = &[1, 2, 840, 113_549, 1, 9, 14];
const ALTERNATIVE_NAME: &[u64] = &[2, 5, 29, 17];

/// Alternative names with one DNS name.
fn names(name: &str) -> Vec<u8> {
    der::wrap(der::SEQUENCE, &der::wrap(0x82, name.as_bytes()))
}

/// An attribute that requests the extension `names`, as it stands in a request after its identifier.
fn requests(name: &str) -> rcgen::Attribute {
    let id = der::wrap(0x06, &[0x55, 0x1d, 0x11]);
    let extension = der::wrap(der::SEQUENCE, &[id, der::wrap(0x04, &names(name))].concat());
    let values = der::wrap(0x31, &der::wrap(der::SEQUENCE, &extension));
    rcgen::Attribute { oid: EXTENSION_REQUEST, values }
}

fn node_params(names: &[&str]) -> rcgen::CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = rcgen::CertificateParams::new(names).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(rcgen::DnType::CommonName, "system:node:node-1");
    params
}

#[test]
fn second_extension_request_cannot_add_names_that_are_signed_but_not_validated() {
    let key = rcgen::KeyPair::generate().unwrap();
    // One alone is what requests look like.
    let request = node_params(&[]).serialize_request_with_attributes(&key, vec![requests("node-1")]);
    let request = SigningRequest::parse(&request.unwrap().pem().unwrap()).unwrap();
    assert_eq!(request.dns_names, ["node-1"]);
    for (own, more) in [
        (&["node-1"][..], vec![requests("kubernetes.default.svc")]),
        (&[][..], vec![requests("node-1"), requests("kubernetes.default.svc")]),
    ] {
        let request = node_params(own).serialize_request_with_attributes(&key, more).unwrap();
        assert!(SigningRequest::parse(&request.pem().unwrap()).is_err());
    }
}

#[test]
fn second_alternative_name_extension_cannot_add_names_that_are_validated_but_not_signed() {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = node_params(&["node-1"]);
    let second = rcgen::CustomExtension::from_oid_content(ALTERNATIVE_NAME, names("kubernetes.default.svc"));
    params.custom_extensions.push(second);
    let request = params.serialize_request(&key).unwrap();
    assert!(SigningRequest::parse(&request.pem().unwrap()).is_err());
}

#[test]
fn alternative_names_that_cannot_be_read_are_refused_and_not_signed_unseen() {
    let key = rcgen::KeyPair::generate().unwrap();
    let garbage = b"garbage".to_vec();
    let odd_address = der::wrap(der::SEQUENCE, &der::wrap(0x87, &[127, 0, 0]));
    let trailing = [names("node-1"), names("kubernetes.default.svc")].concat();
    for content in [garbage, odd_address, trailing] {
        let mut params = node_params(&[]);
        params
            .custom_extensions
            .push(rcgen::CustomExtension::from_oid_content(ALTERNATIVE_NAME, content.clone()));
        let request = params.serialize_request(&key).unwrap();
        assert!(SigningRequest::parse(&request.pem().unwrap()).is_err(), "{content:?}");
    }
}

#[test]
fn group_in_a_string_type_that_is_not_read_is_refused() {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = node_params(&[]);
    let masters = rcgen::string::BmpString::try_from("system:masters").unwrap();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, rcgen::DnValue::BmpString(masters));
    let request = params.serialize_request(&key).unwrap();
    assert!(SigningRequest::parse(&request.pem().unwrap()).is_err());
}
