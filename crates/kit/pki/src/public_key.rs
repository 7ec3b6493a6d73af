//! The public half of a private key.

use std::fmt::Write as _;

use rcgen::{KeyPair, PublicKeyData as _};

use crate::{KeyPem, PkiError};

/// The public half of an ECDSA key.
#[derive(Debug, Clone)]
pub struct PublicKey {
    /// The uncompressed point.
    pub point: Vec<u8>,
    /// SHA-256 of its DER form (SubjectPublicKeyInfo).
    pub fingerprint: [u8; 32],
}

/// SHA-256 in hexadecimal digits: how a certificate is named in records.
pub fn fingerprint(der: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, der);
    let mut digits = String::with_capacity(64);
    for byte in digest.as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The public half of a private key.
pub fn public_key(key: &KeyPem) -> Result<PublicKey, PkiError> {
    let pair = KeyPair::from_pem(key.expose()).map_err(|_| PkiError::Unreadable("the key"))?;
    let digest = ring::digest::digest(&ring::digest::SHA256, &pair.subject_public_key_info());
    let fingerprint = digest.as_ref().try_into().map_err(|_| PkiError::Unreadable("the key"))?;
    Ok(PublicKey { point: pair.public_key_raw().to_vec(), fingerprint })
}
