//! Why a token is not accepted.

use aro_base::{Class, Classify};

/// Why a token is not accepted. The text is safe to show to the caller: it holds no part of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// There is no token.
    #[error("the request carries no access token")]
    Missing,
    /// Not a token, too large, or without a claim that every token has.
    #[error("the access token is malformed")]
    Malformed,
    /// Signed by an unknown key or with an algorithm that is not accepted, or changed since.
    #[error("the access token's signature is invalid")]
    BadSignature,
    /// Its lifetime is over.
    #[error("the access token has expired")]
    Expired,
    /// Its lifetime has not begun.
    #[error("the access token is not valid yet")]
    NotYetValid,
    /// It is for another service.
    #[error("the access token is for another audience")]
    WrongAudience,
    /// It is from an issuer or a tenant that is not accepted.
    #[error("the access token is from an issuer that is not accepted")]
    WrongIssuer,
    /// The application that asked for it is not accepted.
    #[error("the access token is from an application that is not accepted")]
    WrongApplication,
    /// A token of a user where only applications are accepted.
    #[error("the access token is not an application's own token")]
    NotApplicationToken,
    /// The issuer's keys cannot be had at the moment; the token may be valid.
    #[error("the issuer's keys are not available")]
    KeysUnavailable,
}

impl Classify for AuthError {
    fn class(&self) -> Class {
        match self {
            Self::KeysUnavailable => Class::Retry,
            _ => Class::Terminal,
        }
    }
}
