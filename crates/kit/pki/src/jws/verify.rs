//! The public half: checks tokens.

use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;

use super::{Algorithm, Header, Jwk};

/// Tokens are sent in a header, which servers limit to less than this.
const LONGEST_TOKEN: usize = 64 * 1024;

/// Issuers publish a handful of keys. More would let a set decide how much work a token without a key's name costs.
const MOST_KEYS: usize = 64;

/// Why a token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JwsError {
    /// Larger than any real token.
    #[error("the token is too long")]
    TooLong,
    /// Not three parts of base64url with a header of JSON.
    #[error("the token is malformed")]
    Malformed,
    /// Not one of ours, or a critical extension.
    #[error("the token's algorithm or a critical header is not supported")]
    Unsupported,
    /// No key of the set has the token's name and algorithm.
    #[error("no key with the token's id and algorithm is known")]
    UnknownKey,
    /// Signed by another key, or changed since.
    #[error("the token's signature is invalid")]
    BadSignature,
}

pub(super) fn decode(part: &str) -> Result<Vec<u8>, JwsError> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| JwsError::Malformed)
}

/// A token taken apart.
pub(super) struct Parts<'a> {
    pub(super) header: Header,
    /// What is signed.
    message: &'a str,
    pub(super) payload: &'a str,
    signature: Vec<u8>,
}

impl<'a> Parts<'a> {
    pub(super) fn of(token: &'a str) -> Result<Self, JwsError> {
        if token.len() > LONGEST_TOKEN {
            return Err(JwsError::TooLong);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(JwsError::Malformed)?;
        let (header, payload) = message.split_once('.').ok_or(JwsError::Malformed)?;
        let header = decode(header)?;
        let header: serde_json::Value = serde_json::from_slice(&header).map_err(|_| JwsError::Malformed)?;
        let header = Header::deserialize(header).map_err(|_| JwsError::Unsupported)?;
        if header.crit.is_some() {
            return Err(JwsError::Unsupported);
        }
        Ok(Self { header, message, payload, signature: decode(signature)? })
    }
}

/// The public half of a key.
#[derive(Debug, Clone)]
pub struct VerifyingKey {
    key_id: Option<String>,
    /// The only algorithm, if the key's publisher names one.
    algorithm: Option<Algorithm>,
    numbers: Numbers,
}

#[derive(Debug, Clone)]
enum Numbers {
    /// An uncompressed point.
    Ec(Vec<u8>),
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
}

impl VerifyingKey {
    /// Reads a published key. `None`: it is of a type that is not supported, or not for signatures.
    pub fn from_jwk(jwk: &Jwk) -> Option<Self> {
        if jwk.usage.as_deref().is_some_and(|usage| usage != "sig") {
            return None;
        }
        let algorithm = match jwk.alg.as_deref() {
            None => None,
            Some("ES256") => Some(Algorithm::Es256),
            Some("RS256") => Some(Algorithm::Rs256),
            Some("PS256") => Some(Algorithm::Ps256),
            Some(_) => return None,
        };
        let number = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_ref()?).ok();
        let numbers = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("EC", Some("P-256")) => {
                let (x, y) = (number(&jwk.x)?, number(&jwk.y)?);
                if x.len() != 32 || y.len() != 32 {
                    return None;
                }
                Numbers::Ec([&[4], x.as_slice(), y.as_slice()].concat())
            }
            ("RSA", _) => Numbers::Rsa { n: number(&jwk.n)?, e: number(&jwk.e)? },
            _ => return None,
        };
        Some(Self { key_id: jwk.kid.clone(), algorithm, numbers })
    }

    /// The key of a certificate (DER).
    pub fn of_certificate(der: &[u8]) -> Option<Self> {
        let (_, certificate) = x509_parser::certificate::X509Certificate::from_der(der).ok()?;
        let numbers = match certificate.public_key().parsed().ok()? {
            PublicKey::RSA(key) => {
                let n = key.modulus.iter().copied().skip_while(|digit| *digit == 0).collect();
                Numbers::Rsa { n, e: key.exponent.iter().copied().skip_while(|digit| *digit == 0).collect() }
            }
            PublicKey::EC(point) if point.data().len() == 65 => Numbers::Ec(point.data().to_vec()),
            _ => return None,
        };
        Some(Self { key_id: None, algorithm: None, numbers })
    }

    /// The payload of a token that this key has signed, whatever key the token names: for a caller that knows the signer.
    pub fn verify(&self, token: &str) -> Result<Vec<u8>, JwsError> {
        let parts = Parts::of(token)?;
        if !self.is_for(parts.header.alg) {
            return Err(JwsError::UnknownKey);
        }
        if !self.signed(parts.header.alg, parts.message.as_bytes(), &parts.signature) {
            return Err(JwsError::BadSignature);
        }
        decode(parts.payload)
    }

    fn fits(&self, header: &Header) -> bool {
        let named = match (&header.kid, &self.key_id) {
            (Some(wanted), Some(own)) => wanted == own,
            (Some(_), None) => false,
            (None, _) => true,
        };
        named && self.is_for(header.alg)
    }

    fn is_for(&self, alg: Algorithm) -> bool {
        let of_type = match self.numbers {
            Numbers::Ec(_) => alg == Algorithm::Es256,
            Numbers::Rsa { .. } => matches!(alg, Algorithm::Rs256 | Algorithm::Ps256),
        };
        of_type && self.algorithm.is_none_or(|only| only == alg)
    }

    fn signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match &self.numbers {
            Numbers::Ec(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            Numbers::Rsa { n, e } => {
                let parameters = match algorithm {
                    Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA256,
                };
                PublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
            }
        }
    }
}

/// The keys whose signatures are accepted.
#[derive(Debug, Clone, Default)]
pub struct KeySet(Vec<VerifyingKey>);

#[derive(Deserialize)]
struct Published {
    keys: Vec<serde_json::Value>,
}

impl KeySet {
    /// A set of these keys.
    pub fn new(keys: impl IntoIterator<Item = VerifyingKey>) -> Self {
        Self(keys.into_iter().take(MOST_KEYS).collect())
    }

    /// Reads a published set (`jwks_uri`). Keys of other types are left out: issuers publish several. `None`: it is not a
    /// set of keys.
    pub fn from_json(json: &[u8]) -> Option<Self> {
        let set: Published = serde_json::from_slice(json).ok()?;
        let keys = set.keys.into_iter().filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        Some(Self::new(keys.filter_map(|jwk| VerifyingKey::from_jwk(&jwk))))
    }

    /// The payload of a token that one of the keys has signed.
    pub fn verify(&self, token: &str) -> Result<Vec<u8>, JwsError> {
        let Parts { header, message, payload, signature } = Parts::of(token)?;
        let mut candidates = self.0.iter().filter(|key| key.fits(&header)).peekable();
        if candidates.peek().is_none() {
            return Err(JwsError::UnknownKey);
        }
        if !candidates.any(|key| key.signed(header.alg, message.as_bytes(), &signature)) {
            return Err(JwsError::BadSignature);
        }
        decode(payload)
    }
}
