//! RSA keys, for peers that read no other kind: Azure's SDKs require one in a client certificate.

use aro_base::Secret;
use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};

use crate::{KeyPem, PkiError};

/// The size of an RSA key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RsaBits {
    /// 2048 bits.
    B2048,
    /// 3072 bits.
    B3072,
    /// 4096 bits.
    B4096,
}

impl RsaBits {
    /// The size with this many bits, if keys of it are generated.
    pub fn of(bits: u64) -> Option<Self> {
        match bits {
            2048 => Some(Self::B2048),
            3072 => Some(Self::B3072),
            4096 => Some(Self::B4096),
            _ => None,
        }
    }
}

/// Generates a key. It takes from tens of milliseconds to seconds: call it off the runtime's threads.
pub fn generate_rsa(bits: RsaBits) -> Result<KeyPem, PkiError> {
    const WHAT: PkiError = PkiError::Unreadable("a new RSA key");
    let size = match bits {
        RsaBits::B2048 => KeySize::Rsa2048,
        RsaBits::B3072 => KeySize::Rsa3072,
        RsaBits::B4096 => KeySize::Rsa4096,
    };
    let pair = KeyPair::generate(size).map_err(|_| WHAT)?;
    let der: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| WHAT)?;
    Ok(key_pem(der.as_ref()))
}

/// A private key (PKCS #8, DER) in PEM.
pub fn key_pem(der: &[u8]) -> KeyPem {
    let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    Secret::new(pem::encode_config(&pem::Pem::new("PRIVATE KEY", der.to_vec()), config))
}
