//! Reads a file.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use x509_parser::prelude::FromDer as _;

use super::reader::{EXPLICIT, IMPLICIT, OBJECT_ID, OCTET_STRING, Reader, SEQUENCE};
use super::{Bundle, WHAT, oid, protect, wide};
use crate::{PkiError, rsa};

/// Larger than any real file.
const MOST_BYTES: usize = 1 << 20;
const MOST_CERTIFICATES: usize = 64;

/// The bundle in a file that this password opens.
pub fn read(file: &[u8], password: &str) -> Result<Bundle, PkiError> {
    if file.len() > MOST_BYTES {
        return Err(WHAT);
    }
    let mut file = Reader::new(file).nested(SEQUENCE)?;
    file.number()?;
    let mut content = file.nested(SEQUENCE)?;
    if content.take(OBJECT_ID)? != oid::DATA {
        return Err(WHAT);
    }
    let content = content.nested(EXPLICIT)?.take(OCTET_STRING)?;
    check_mac(&mut file.nested(SEQUENCE)?, content, password)?;
    let mut found = Found::default();
    let mut parts = Reader::new(content).nested(SEQUENCE)?;
    while !parts.is_empty() {
        let mut part = parts.nested(SEQUENCE)?;
        let kind = part.take(OBJECT_ID)?;
        let mut value = part.nested(EXPLICIT)?;
        match kind {
            oid::DATA => found.bags(value.take(OCTET_STRING)?, password)?,
            oid::ENCRYPTED_DATA => {
                let plain = decrypt_part(&mut value.nested(SEQUENCE)?, password)?;
                found.bags(&plain, password)?;
            }
            _ => return Err(WHAT),
        }
    }
    found.finish()
}

fn check_mac(mac: &mut Reader<'_>, content: &[u8], password: &str) -> Result<(), PkiError> {
    let mut digest = mac.nested(SEQUENCE)?;
    let sha256 = match digest.nested(SEQUENCE)?.take(OBJECT_ID)? {
        oid::SHA1 => false,
        oid::SHA256 => true,
        _ => return Err(WHAT),
    };
    let expected = digest.take(OCTET_STRING)?;
    let salt = mac.take(OCTET_STRING)?;
    let rounds = protect::rounds(if mac.is_empty() { 1 } else { mac.number()? })?;
    let fits = |password: &[u8]| {
        let tag = protect::mac(sha256, password, salt, rounds, content);
        verify_slices_are_equal(tag.as_ref(), expected).is_ok()
    };
    // Some writers take an empty password for no bytes at all.
    if fits(&wide(password)) || (password.is_empty() && fits(&[])) { Ok(()) } else { Err(WHAT) }
}

fn decrypt_part(part: &mut Reader<'_>, password: &str) -> Result<Vec<u8>, PkiError> {
    part.number()?;
    let mut info = part.nested(SEQUENCE)?;
    if info.take(OBJECT_ID)? != oid::DATA {
        return Err(WHAT);
    }
    let mut algorithm = info.nested(SEQUENCE)?;
    protect::decrypt(&mut algorithm, info.take(IMPLICIT)?, password)
}

#[derive(Default)]
struct Found {
    key: Option<Vec<u8>>,
    certificates: Vec<Vec<u8>>,
}

impl Found {
    fn bags(&mut self, bags: &[u8], password: &str) -> Result<(), PkiError> {
        let mut bags = Reader::new(bags).nested(SEQUENCE)?;
        while !bags.is_empty() {
            let mut bag = bags.nested(SEQUENCE)?;
            let kind = bag.take(OBJECT_ID)?;
            let mut value = bag.nested(EXPLICIT)?;
            match kind {
                oid::KEY_BAG => {
                    let content = value.take(SEQUENCE)?;
                    self.key.get_or_insert_with(|| crate::der::wrap(SEQUENCE, content));
                }
                oid::SHROUDED_KEY_BAG => {
                    let mut shrouded = value.nested(SEQUENCE)?;
                    let mut algorithm = shrouded.nested(SEQUENCE)?;
                    let plain = protect::decrypt(&mut algorithm, shrouded.take(OCTET_STRING)?, password)?;
                    self.key.get_or_insert(plain);
                }
                oid::CERTIFICATE_BAG if self.certificates.len() < MOST_CERTIFICATES => {
                    let mut certificate = value.nested(SEQUENCE)?;
                    if certificate.take(OBJECT_ID)? == oid::X509_CERTIFICATE {
                        let der = certificate.nested(EXPLICIT)?.take(OCTET_STRING)?;
                        self.certificates.push(der.to_vec());
                    }
                }
                // Revocation lists and other secrets.
                _ => {}
            }
        }
        Ok(())
    }

    /// The certificate of the key comes first, wherever it was in the file.
    fn finish(self) -> Result<Bundle, PkiError> {
        let key = rsa::key_pem(&self.key.ok_or(WHAT)?);
        let pair =
            rcgen::KeyPair::from_pem(key.expose()).map_err(|_| PkiError::Unreadable("the private key"))?;
        let public = rcgen::PublicKeyData::subject_public_key_info(&pair);
        let (mut own, others): (Vec<_>, Vec<_>) =
            self.certificates.into_iter().partition(|der| has_key(der, &public));
        own.truncate(1);
        if own.is_empty() {
            return Err(PkiError::Unreadable("the key's certificate"));
        }
        own.extend(others);
        Ok(Bundle { key, certificates: own })
    }
}

fn has_key(der: &[u8], public: &[u8]) -> bool {
    x509_parser::certificate::X509Certificate::from_der(der)
        .is_ok_and(|(_, certificate)| certificate.tbs_certificate.subject_pki.raw == public)
}
