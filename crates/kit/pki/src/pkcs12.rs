//! PKCS #12 (RFC 7292): a private key and its certificates in one file, as Key Vault and the managed identity service
//! hand them out.
//!
//! Files are written in the oldest form that every reader takes (SHA-1 and triple DES): Go's `x/crypto/pkcs12`, which the
//! Azure SDK uses, reads no other (ADR 0072). The password is usually empty, so the encryption protects nothing, whatever it is.
//! Read are that form and the present one (PBES2 with AES-CBC).
//!
//! Invariants: what is read is bounded in size, depth and key-derivation rounds before any work; the digest over the
//! content is checked before anything is decrypted.
//!
//! What it is not: a general ASN.1 parser. Lengths are definite, as DER requires.

mod oid;
mod protect;
mod read;
mod reader;
#[cfg(test)]
mod tests;
mod write;

pub use read::read;
pub use write::write;

use crate::{KeyPem, PkiError};

/// A private key with its certificates.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// The key.
    pub key: KeyPem,
    /// The certificates (DER); the key's own comes first.
    pub certificates: Vec<Vec<u8>>,
}

const WHAT: PkiError = PkiError::Unreadable("the PKCS #12 file");

/// The password as the format's own derivation takes it: UTF-16, ended by a zero.
fn wide(password: &str) -> Vec<u8> {
    password.encode_utf16().chain([0]).flat_map(u16::to_be_bytes).collect()
}
