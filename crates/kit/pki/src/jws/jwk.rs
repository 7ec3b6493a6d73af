//! Public keys as JSON (RFC 7517).

use serde::{Deserialize, Serialize};

/// A public key in a published set. Unknown members are ignored, as the RFC asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jwk {
    /// The key's type: `EC` or `RSA`.
    pub kty: String,
    /// The name that tokens use for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kid: Option<String>,
    /// `sig` for keys that sign.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    pub usage: Option<String>,
    /// The only algorithm that the key is for. Some issuers leave it out for RSA keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alg: Option<String>,
    /// The curve of an `EC` key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crv: Option<String>,
    /// The first coordinate of an `EC` key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<String>,
    /// The second coordinate of an `EC` key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<String>,
    /// The modulus of an `RSA` key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<String>,
    /// The exponent of an `RSA` key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e: Option<String>,
}

impl Jwk {
    /// A signing key of this type, without its numbers.
    pub(super) fn signing(kty: &str, alg: &str, kid: &str) -> Self {
        Self {
            kty: kty.to_owned(),
            kid: Some(kid.to_owned()),
            usage: Some("sig".to_owned()),
            alg: Some(alg.to_owned()),
            crv: None,
            x: None,
            y: None,
            n: None,
            e: None,
        }
    }
}
