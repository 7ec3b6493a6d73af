//! What a token says before anything is verified: enough to choose the key that must have signed it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::verify::{Parts, decode};
use super::{Chain, JwsError};

/// The header and payload of a token that was **not** verified. Use it to find the verifying key, for nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unverified {
    /// The name of the key.
    pub key_id: Option<String>,
    /// The SHA-1 digest of the signer's certificate.
    pub thumbprint: Option<Vec<u8>>,
    /// The SHA-256 digest of the signer's certificate.
    pub thumbprint_sha256: Option<Vec<u8>>,
    /// The signer's certificate (DER), if the token carries its chain.
    pub certificate: Option<Vec<u8>>,
    /// The claims.
    pub payload: Vec<u8>,
}

impl Unverified {
    /// Takes a token apart.
    pub fn of(token: &str) -> Result<Self, JwsError> {
        let parts = Parts::of(token)?;
        let digest = |text: Option<String>| {
            // Some clients keep the padding.
            text.and_then(|text| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok())
        };
        let first = match parts.header.x5c {
            Some(Chain::One(certificate)) => Some(certificate),
            Some(Chain::Many(chain)) => chain.into_iter().next(),
            None => None,
        };
        Ok(Self {
            key_id: parts.header.kid,
            thumbprint: digest(parts.header.x5t),
            thumbprint_sha256: digest(parts.header.x5t_s256),
            certificate: first.and_then(|text| STANDARD.decode(text).ok()),
            payload: decode(parts.payload)?,
        })
    }
}
