//! Verification of Entra-style access tokens.
//!
//! What it is: [`TokenVerifier`] turns the text of a bearer token into [`Claims`], or into an [`AuthError`] that names the
//! rule it breaks, so that a caller can answer with the code Azure uses for it. [`Rules`] state what is accepted;
//! a [`KeySource`] supplies the issuer's keys ([`StaticKeys`], or [`CachedKeys`] around a fetch function);
//! [`VerifiedCache`] remembers tokens that were verified.
//!
//! What it is not: a client. It performs no I/O, knows no HTTP and reads no wall clock; the time is an argument. It decides
//! who the caller is, never what the caller may do.
//!
//! The flow: size, form and key id of the token; the keys; the signature; then, on the signed claims only, issuer,
//! audience, lifetime, application and token type.
//!
//! Invariants:
//! * No claim is judged before the signature is verified.
//! * The tenant in the issuer and the tenant in the claims are the same.
//! * Neither an error nor a log line holds a token or a part of one.
//! * Unknown key ids cause at most one fetch per interval, however many tokens name them.
#![warn(missing_docs)]

mod cache;
mod cached_keys;
mod claims;
mod error;
mod keys;
mod rules;
#[cfg(test)]
mod testing;
mod verifier;

pub use cache::{CacheLimits, VerifiedCache};
pub use cached_keys::{CachedKeys, FetchError, KeyRefresh};
pub use claims::{Claims, TokenType};
pub use error::AuthError;
pub use keys::{KeySource, KeysUnavailable, PublishedKeys, StaticKeys};
pub use rules::{Issuer, Rules};
pub use verifier::{TokenVerifier, bearer_token};
