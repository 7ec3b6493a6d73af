//! Errors as clients see them: a number of Maestro's catalogue, its HTTP status and a reason.

use http::StatusCode;

/// A class of errors of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// 4: the caller may not do this.
    Forbidden,
    /// 6: something of that name is there already, or changed meanwhile.
    Conflict,
    /// 7: nothing of that name is there.
    NotFound,
    /// 8: the request's content is not acceptable.
    Validation,
    /// 9: our fault, or the store's.
    General,
    /// 9 as well: what is stored cannot be read. Trying again does not help.
    Unreadable,
    /// 10: the method is not offered.
    NotImplemented,
    /// 17: the request's body cannot be read.
    Malformed,
    /// 21: a parameter of the request is not acceptable.
    BadRequest,
}

impl Code {
    /// Its number.
    pub const fn number(self) -> u16 {
        match self {
            Self::Forbidden => 4,
            Self::Conflict => 6,
            Self::NotFound => 7,
            Self::Validation => 8,
            Self::General | Self::Unreadable => 9,
            Self::NotImplemented => 10,
            Self::Malformed => 17,
            Self::BadRequest => 21,
        }
    }

    /// The HTTP status that goes with it.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Conflict => StatusCode::CONFLICT,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Validation | Self::Malformed | Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::General | Self::Unreadable => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NotImplemented => StatusCode::METHOD_NOT_ALLOWED,
        }
    }
}

/// An error that a client sees. Its text is `maestro-<number>: <reason>`.
#[derive(Debug, thiserror::Error)]
#[error("maestro-{}: {reason}", .code.number())]
pub struct Fault {
    /// Which class of errors.
    pub code: Code,
    /// What is wrong, in words.
    pub reason: String,
    /// What lies underneath; logged, never shown.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Fault {
    /// An error of this class.
    pub fn new(code: Code, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), source: None }
    }

    /// An error with a cause that the client is not told.
    pub fn caused(
        reason: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { code: Code::General, reason: reason.into(), source: Some(source.into()) }
    }

    /// Something stored that cannot be read.
    pub fn unreadable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let reason = "a stored row cannot be read".to_owned();
        Self { code: Code::Unreadable, reason, source: Some(source.into()) }
    }
}
