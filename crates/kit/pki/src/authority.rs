//! An authority and what it issues.

use std::net::IpAddr;

use aro_base::{Secret, SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use time::OffsetDateTime;
use x509_parser::prelude::FromDer as _;

use crate::{PkiError, Subject};

/// A private key in PEM (PKCS #8).
pub type KeyPem = Secret<String>;

/// From when to when something is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub not_before: Timestamp,
    /// The last second.
    pub not_after: Timestamp,
}

impl Validity {
    /// From five minutes ago (clocks differ) for this long.
    pub fn from_now(now: Timestamp, length: SignedDuration) -> Self {
        let slack = SignedDuration::from_mins(5);
        Self { not_before: now.saturating_sub(slack).unwrap_or(now), not_after: now.saturating_add(length).unwrap_or(now) }
    }
}

/// What a certificate may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// TLS servers.
    Server,
    /// TLS clients.
    Client,
    /// Both.
    Both,
}

impl Usage {
    fn extended(self) -> Vec<ExtendedKeyUsagePurpose> {
        match self {
            Self::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Self::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
            Self::Both => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
        }
    }
}

/// What to issue.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// Whom it names. At most one organization.
    pub subject: Subject,
    /// Names it may serve.
    pub dns_names: Vec<String>,
    /// Addresses it may serve.
    pub addresses: Vec<IpAddr>,
    /// What for.
    pub usage: Usage,
    /// How long.
    pub validity: Validity,
}

/// A certificate and its key.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The certificate in PEM.
    pub certificate: String,
    /// Its key.
    pub key: KeyPem,
}

/// A certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

fn moment(timestamp: Timestamp) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(timestamp.as_second()).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn params(subject: &Subject, validity: Validity) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    if let Some(organization) = subject.organizations.first() {
        params.distinguished_name.push(DnType::OrganizationName, organization.as_str());
    }
    params.distinguished_name.push(DnType::CommonName, subject.common_name.as_str());
    params.not_before = moment(validity.not_before);
    params.not_after = moment(validity.not_after);
    params
}

impl Authority {
    /// Makes a new one.
    pub fn generate(common_name: &str, validity: Validity) -> Result<Self, PkiError> {
        let key = KeyPair::generate().map_err(PkiError::generate("make a key"))?;
        let mut params = params(&Subject::new(common_name, [""; 0]), validity);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key).map_err(PkiError::generate("sign an authority's certificate"))?;
        Ok(Self { certificate: certificate.pem(), issuer: Issuer::new(params, key) })
    }

    /// Reads one that was made before.
    pub fn load(certificate: &str, key: &KeyPem) -> Result<Self, PkiError> {
        let key = KeyPair::from_pem(key.expose()).map_err(|_| PkiError::Unreadable("the authority's key"))?;
        let issuer = Issuer::from_ca_cert_pem(certificate, key);
        let issuer = issuer.map_err(|_| PkiError::Unreadable("the authority's certificate"))?;
        Ok(Self { issuer, certificate: certificate.to_owned() })
    }

    /// Its certificate in PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Its key.
    pub fn key(&self) -> KeyPem {
        Secret::new(self.issuer.key().serialize_pem())
    }

    /// Makes a key and a certificate for it.
    pub fn issue(&self, leaf: &Leaf) -> Result<Issued, PkiError> {
        let key = KeyPair::generate().map_err(PkiError::generate("make a key"))?;
        let mut params = params(&leaf.subject, leaf.validity);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = leaf.usage.extended();
        for name in &leaf.dns_names {
            let name = name.as_str().try_into().map_err(|_| PkiError::Unreadable("a DNS name"))?;
            params.subject_alt_names.push(SanType::DnsName(name));
        }
        params.subject_alt_names.extend(leaf.addresses.iter().copied().map(SanType::IpAddress));
        let certificate =
            params.signed_by(&key, &self.issuer).map_err(PkiError::generate("sign a certificate"))?;
        Ok(Issued { certificate: certificate.pem(), key: Secret::new(key.serialize_pem()) })
    }

    /// Signs a request as it is, for these uses.
    pub fn sign(&self, request: &SigningRequest, usage: Usage, validity: Validity) -> Result<String, PkiError> {
        let parsed = CertificateSigningRequestParams::from_pem(&request.pem);
        let mut parsed = parsed.map_err(PkiError::generate("read a certificate signing request"))?;
        parsed.params.not_before = moment(validity.not_before);
        parsed.params.not_after = moment(validity.not_after);
        parsed.params.is_ca = IsCa::ExplicitNoCa;
        parsed.params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parsed.params.extended_key_usages = usage.extended();
        parsed.params.use_authority_key_identifier_extension = true;
        let certificate = parsed.signed_by(&self.issuer).map_err(PkiError::generate("sign a request"))?;
        Ok(certificate.pem())
    }
}

/// A certificate signing request, as far as deciding about it needs.
#[derive(Debug, Clone)]
pub struct SigningRequest {
    pem: String,
    /// Whom it names.
    pub subject: Subject,
    /// DNS names it asks for.
    pub dns_names: Vec<String>,
    /// Addresses it asks for.
    pub addresses: Vec<IpAddr>,
    /// E-mail addresses and URIs it asks for.
    pub others: Vec<String>,
}

impl SigningRequest {
    /// Reads one in PEM, and checks its signature.
    pub fn parse(pem: &str) -> Result<Self, PkiError> {
        const WHAT: PkiError = PkiError::Unreadable("the certificate signing request");
        let block = pem::parse(pem).map_err(|_| WHAT)?;
        if block.tag() != "CERTIFICATE REQUEST" {
            return Err(WHAT);
        }
        let parsed = x509_parser::certification_request::X509CertificationRequest::from_der(block.contents());
        let (_, request) = parsed.map_err(|_| WHAT)?;
        let mut read = Self {
            pem: pem.to_owned(),
            subject: Subject::of_name(&request.certification_request_info.subject),
            dns_names: Vec::new(),
            addresses: Vec::new(),
            others: Vec::new(),
        };
        for extension in request.requested_extensions().into_iter().flatten() {
            use x509_parser::extensions::{GeneralName, ParsedExtension};
            let ParsedExtension::SubjectAlternativeName(names) = extension else { continue };
            for name in &names.general_names {
                match name {
                    GeneralName::DNSName(name) => read.dns_names.push((*name).to_owned()),
                    GeneralName::IPAddress(bytes) => read.addresses.extend(address(bytes)),
                    other => read.others.push(other.to_string()),
                }
            }
        }
        Ok(read)
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes).map(IpAddr::from).or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
