//! JSON Web Signatures (RFC 7515) in their compact form, and JSON Web Keys (RFC 7517): ES256, RS256 and PS256.
//!
//! The flow: a [`SigningKey`] signs claims and publishes its public half as a [`Jwk`]; a verifier reads a [`KeySet`] and
//! gets the payload of a token, if one of the set's keys signed it.
//!
//! Invariants: the algorithm is a property of the key, never of the token alone, so a token cannot choose a weaker one;
//! `none` and symmetric algorithms do not exist here; a critical header that is not understood is refused; sizes are
//! bounded before anything is decoded.
//!
//! What it is not: it judges no claim. Issuer, audience and time are checked by the caller, who knows them.

mod jwk;
mod peek;
mod sign;
#[cfg(test)]
mod tests;
mod verify;

pub use jwk::Jwk;
pub use peek::Unverified;
pub use sign::SigningKey;
pub use verify::{JwsError, KeySet, VerifyingKey};

use serde::{Deserialize, Serialize};

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Algorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PSS with SHA-256.
    Ps256,
}

/// Certificates in a header.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Chain {
    One(String),
    Many(Vec<String>),
}

/// The protected header of a token.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    alg: Algorithm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    typ: Option<String>,
    /// The SHA-1 digest of the signer's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    x5t: Option<String>,
    /// The SHA-256 digest of the signer's certificate.
    #[serde(default, rename = "x5t#S256", skip_serializing_if = "Option::is_none")]
    x5t_s256: Option<String>,
    /// The signer's certificate and those above it; some clients send one as plain text instead of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    x5c: Option<Chain>,
    /// Extensions that a verifier must understand; none is.
    #[serde(default, skip_serializing)]
    crit: Option<serde::de::IgnoredAny>,
}
