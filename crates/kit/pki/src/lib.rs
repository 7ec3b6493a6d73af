//! Certificates: an authority, what it issues, and the subject of a certificate or request.
//!
//! Keys are ECDSA P-256: generating one takes microseconds, so every cluster has keys of its own. RSA keys
//! ([`generate_rsa`]) and [`pkcs12`] files exist for peers that take nothing else.
//! Times are passed in; this crate reads no clock. [`FileIdentity`] loads and reloads certificates in files; [`jws`] signs
//! and verifies tokens; [`crypto_provider`] is what all TLS uses.
//!
//! What it is not: it verifies no chains (rustls does) and approves no request (its caller does).

mod authority;
mod bearer;
mod der;
mod error;
mod files;
pub mod jws;
pub mod pkcs12;
mod provider;
mod request;
mod rsa;
mod settings;
mod subject;

pub use authority::{Authority, Issued, KeyPem, Leaf, Usage, Validity};
pub use bearer::Bearer;
pub use error::PkiError;
pub use files::{FileIdentity, FilesError, IdentityPaths, expires};
pub use provider::{crypto_provider, fingerprint};
pub use request::SigningRequest;
pub use rsa::{RsaBits, generate_rsa, key_pem};
pub use settings::{FileSetting, HalfGiven};
pub use subject::Subject;

#[cfg(test)]
mod tests;
