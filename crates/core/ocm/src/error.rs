//! Error bodies.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Root, Time};

words! {
    /// The class of a problem, stable for programs.
    Code {
        /// The JSON cannot be read.
        MalformedBody = "malformed_body",
        /// A required member is absent.
        Required = "required",
        /// A member has another type.
        WrongType = "wrong_type",
        /// A value outside its limits or form.
        InvalidValue = "invalid_value",
        /// A value that is not one of the allowed words.
        UnsupportedValue = "unsupported_value",
        /// A member that cannot be changed.
        Immutable = "immutable",
        /// Members that exclude each other.
        Conflicting = "conflicting",
        /// A value that another object has.
        Duplicate = "duplicate",
        /// A reference to an object that does not exist.
        NotFound = "not_found",
        /// The state of the object, or of its parent, forbids the request.
        WrongState = "wrong_state",
        /// The object exists.
        AlreadyExists = "already_exists",
        /// The object changed since it was read.
        PreconditionFailed = "precondition_failed",
        /// No capacity is left.
        NoCapacity = "no_capacity",
        /// The method is not supported here.
        NotSupported = "not_supported",
        /// A limit of the server.
        TooLarge = "too_large",
        /// A failure of the server.
        Internal = "internal",
        /// The server cannot serve now.
        Unavailable = "unavailable",
    }
}

/// One thing that is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Its class.
    pub code: Code,
    /// The member, as a dotted path; empty for the whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// What is wrong, for people.
    pub reason: String,
}

impl Problem {
    /// A problem of a member.
    pub fn new(code: Code, field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { code, field: field.into(), reason: reason.into() }
    }
}

/// The body of every answer from 400 on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// `Error`.
    #[serde(default)]
    pub kind: String,
    /// The status as a string: the client of this API cannot read a number here.
    #[serde(default)]
    pub id: String,
    /// The address of the error's description.
    #[serde(default)]
    pub href: String,
    /// The API and the status, such as `CLUSTERS-MGMT-404`.
    #[serde(default)]
    pub code: String,
    /// What is wrong, for people.
    #[serde(default)]
    pub reason: String,
    /// Identifies the request in logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// When it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Time>,
    /// All problems, one by one. JSON, since other servers put something else here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Value>,
}

impl ErrorBody {
    /// The body for a status.
    pub fn new(root: Root, status: u16, reason: impl Into<String>) -> Self {
        Self {
            kind: "Error".to_owned(),
            id: status.to_string(),
            href: format!("{}/errors/{status}", root.path()),
            code: format!("{}-{status}", root.error_prefix()),
            reason: reason.into(),
            operation_id: None,
            timestamp: None,
            details: Vec::new(),
        }
    }

    /// Adds problems.
    pub fn with_problems(mut self, problems: &[Problem]) -> Self {
        self.details.extend(problems.iter().filter_map(|problem| serde_json::to_value(problem).ok()));
        self
    }

    /// The details that are problems of this service.
    pub fn problems(&self) -> Vec<Problem> {
        self.details.iter().filter_map(|detail| serde_json::from_value(detail.clone()).ok()).collect()
    }
}
