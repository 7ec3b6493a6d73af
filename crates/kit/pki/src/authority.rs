//! A certificate authority and what it issues.

use std::net::IpAddr;

use aro_base::{Secret, SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _,
    SigningKey as _,
};
use time::OffsetDateTime;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer as _;

use crate::{PkiError, SigningRequest, Subject, der};

/// A private key in PEM (PKCS #8).
pub type KeyPem = Secret<String>;

/// The validity period of a certificate.
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
        Self {
            not_before: now.saturating_sub(slack).unwrap_or(now),
            not_after: now.saturating_add(length).unwrap_or(now),
        }
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

/// A certificate to issue.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// The subject.
    pub subject: Subject,
    /// DNS names of a server.
    pub dns_names: Vec<String>,
    /// IP addresses of a server.
    pub addresses: Vec<IpAddr>,
    /// The usage.
    pub usage: Usage,
    /// The validity.
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

impl Authority {
    /// Creates an authority.
    pub fn generate(common_name: &str, validity: Validity) -> Result<Self, PkiError> {
        let key = KeyPair::generate().map_err(PkiError::generate("make a key"))?;
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.not_before = moment(validity.not_before);
        params.not_after = moment(validity.not_after);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate =
            params.self_signed(&key).map_err(PkiError::generate("sign an authority's certificate"))?;
        Ok(Self { certificate: certificate.pem(), issuer: Issuer::new(params, key) })
    }

    /// Loads an existing authority.
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

    /// Generates a key and issues a certificate for it.
    pub fn issue(&self, leaf: &Leaf) -> Result<Issued, PkiError> {
        let key = KeyPair::generate().map_err(PkiError::generate("make a key"))?;
        self.issue_with(leaf, &key)
    }

    /// Issues a certificate for an existing key.
    pub fn issue_for_key(&self, leaf: &Leaf, key: &KeyPem) -> Result<Issued, PkiError> {
        let key = KeyPair::from_pem(key.expose()).map_err(|_| PkiError::Unreadable("the leaf's key"))?;
        self.issue_with(leaf, &key)
    }

    /// Whether this authority signed a certificate (DER). Validity and usage are the caller's to check.
    pub fn has_issued(&self, certificate: &[u8]) -> bool {
        let Ok(own) = pem::parse(&self.certificate) else { return false };
        let parse = x509_parser::certificate::X509Certificate::from_der;
        let (Ok((_, own)), Ok((_, leaf))) = (parse(own.contents()), parse(certificate)) else { return false };
        leaf.issuer() == own.subject() && leaf.verify_signature(Some(own.public_key())).is_ok()
    }

    fn issue_with(&self, leaf: &Leaf, key: &KeyPair) -> Result<Issued, PkiError> {
        let certificate = self.certify(
            &der::name(&leaf.subject),
            &key.subject_public_key_info(),
            der::alternative_names(&leaf.dns_names, &leaf.addresses),
            leaf.usage,
            leaf.validity,
        )?;
        Ok(Issued { certificate, key: Secret::new(key.serialize_pem()) })
    }

    /// Signs a request as it is, for these usages.
    pub fn sign(
        &self,
        request: &SigningRequest,
        usage: Usage,
        validity: Validity,
    ) -> Result<String, PkiError> {
        self.certify(&request.name, &request.public_key, request.alternative_names.clone(), usage, validity)
    }

    fn certify(
        &self,
        subject: &[u8],
        public_key: &[u8],
        alternative_names: Option<Vec<u8>>,
        usage: Usage,
        validity: Validity,
    ) -> Result<String, PkiError> {
        const WHAT: PkiError = PkiError::Unreadable("the authority's certificate");
        let own = pem::parse(&self.certificate).map_err(|_| WHAT)?;
        let (_, own) =
            x509_parser::certificate::X509Certificate::from_der(own.contents()).map_err(|_| WHAT)?;
        let key_id = own.iter_extensions().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
            _ => None,
        });
        let mut serial = [0; 16];
        aws_lc_rs::rand::fill(&mut serial).map_err(|_| PkiError::Unreadable("random numbers"))?;
        let to_be_signed = der::to_be_signed(&der::Leaf {
            serial,
            issuer: own.subject().as_raw(),
            authority_key: &key_id.unwrap_or_default(),
            validity,
            subject,
            public_key,
            usage,
            alternative_names,
        });
        let signature =
            self.issuer.key().sign(&to_be_signed).map_err(PkiError::generate("sign a certificate"))?;
        let certificate = der::certificate(&to_be_signed, &signature);
        let text = pem::encode_config(&pem::Pem::new("CERTIFICATE", certificate), LINES);
        Ok(text)
    }
}

/// PEM with the line ending of this system.
const LINES: pem::EncodeConfig = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
