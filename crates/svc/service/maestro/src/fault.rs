//! Errors as clients get them: a number of Maestro's catalogue, its HTTP status and a reason.

use http::StatusCode;

/// A class of errors of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// 4: the caller is not permitted.
    Forbidden,
    /// 6: the name exists already, or the object changed meanwhile.
    Conflict,
    /// 7: there is no such object.
    NotFound,
    /// 8: the content of the request is invalid.
    Validation,
    /// 9: a failure of the server or the store.
    General,
    /// 9 as well: a stored row cannot be decoded. A retry does not help.
    Unreadable,
    /// 9 as well: the budget of request bodies is used up. A retry helps.
    Overloaded,
    /// 10: the method is not supported.
    NotImplemented,
    /// 17: the body of the request cannot be parsed.
    Malformed,
    /// 21: a parameter of the request is invalid.
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
            Self::General | Self::Unreadable | Self::Overloaded => 9,
            Self::NotImplemented => 10,
            Self::Malformed => 17,
            Self::BadRequest => 21,
        }
    }

    /// Its HTTP status.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Conflict => StatusCode::CONFLICT,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Validation | Self::Malformed | Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::General | Self::Unreadable => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Overloaded => StatusCode::TOO_MANY_REQUESTS,
            Self::NotImplemented => StatusCode::METHOD_NOT_ALLOWED,
        }
    }
}

/// An error for a client. Its text is `maestro-<number>: <reason>`.
#[derive(Debug, thiserror::Error)]
#[error("maestro-{}: {reason}", .code.number())]
pub struct Fault {
    /// The class.
    pub code: Code,
    /// The reason.
    pub reason: String,
    /// The cause; logged, never returned to the client.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Fault {
    /// An error of this class.
    pub fn new(code: Code, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), source: None }
    }

    /// An error with a cause that is not returned to the client.
    pub fn caused(
        reason: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { code: Code::General, reason: reason.into(), source: Some(source.into()) }
    }

    /// A stored row that cannot be decoded.
    pub fn unreadable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let reason = "a stored row cannot be read".to_owned();
        Self { code: Code::Unreadable, reason, source: Some(source.into()) }
    }
}
