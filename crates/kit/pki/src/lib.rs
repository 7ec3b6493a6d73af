//! Certificates: an authority, what it issues, and what a certificate or a request says about its bearer.
//!
//! Keys are ECDSA P-256 throughout: making one takes microseconds, so a cluster of its own keys costs nothing.
//! Times are passed in; this crate reads no clock. Those that others keep in files are read and reread by [`FileIdentity`].
//!
//! What it is not: it verifies no chains (rustls does) and decides about no request (its owner does).

mod authority;
mod bearer;
mod der;
mod error;
mod files;
mod public_key;
mod settings;
mod subject;

pub use authority::{Authority, Issued, KeyPem, Leaf, SigningRequest, Usage, Validity};
pub use bearer::Bearer;
pub use error::PkiError;
pub use files::{FileIdentity, FilesError, IdentityPaths, expires};
pub use public_key::{PublicKey, fingerprint, public_key};
pub use settings::{FileSetting, HalfGiven};
pub use subject::Subject;

#[cfg(test)]
mod tests;
