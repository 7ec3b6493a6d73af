//! The cryptography that everything here and all TLS uses (ADR 0006).

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;

/// The provider of every TLS configuration. It is passed explicitly: no process-wide default is installed, so libraries
/// cannot disagree about it at run time.
pub fn crypto_provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    PROVIDER.clone()
}

/// SHA-256 in hexadecimal digits: how a certificate is named in records.
pub fn fingerprint(der: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, der);
    let mut digits = String::with_capacity(64);
    for byte in digest.as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
