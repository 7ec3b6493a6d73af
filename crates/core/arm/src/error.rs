//! The error envelope every ARM answer uses, and the codes we use in it.

use serde::Serialize;

use crate::field::{FieldError, Problem};

/// Every code a caller can meet. `docs/errors/<code>.md` explains each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    InternalServerError,
    ServiceUnavailable,
    InvalidParameter,
    InvalidRequestContent,
    MultipleErrorsOccurred,
    InvalidResource,
    InvalidResourceType,
    UnsupportedMediaType,
    InvalidSubscriptionState,
    InvalidSubscriptionID,
    InvalidResourceName,
    InvalidResourceGroupName,
    ResourceNotFound,
    NotFound,
    MethodNotAllowed,
    PreconditionFailed,
    Conflict,
    Canceled,
}

impl Code {
    pub const ALL: [Self; 18] = [
        Self::InternalServerError,
        Self::ServiceUnavailable,
        Self::InvalidParameter,
        Self::InvalidRequestContent,
        Self::MultipleErrorsOccurred,
        Self::InvalidResource,
        Self::InvalidResourceType,
        Self::UnsupportedMediaType,
        Self::InvalidSubscriptionState,
        Self::InvalidSubscriptionID,
        Self::InvalidResourceName,
        Self::InvalidResourceGroupName,
        Self::ResourceNotFound,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::PreconditionFailed,
        Self::Conflict,
        Self::Canceled,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InternalServerError => "InternalServerError",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::InvalidParameter => "InvalidParameter",
            Self::InvalidRequestContent => "InvalidRequestContent",
            Self::MultipleErrorsOccurred => "MultipleErrorsOccurred",
            Self::InvalidResource => "InvalidResource",
            Self::InvalidResourceType => "InvalidResourceType",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::InvalidSubscriptionState => "InvalidSubscriptionState",
            Self::InvalidSubscriptionID => "InvalidSubscriptionID",
            Self::InvalidResourceName => "InvalidResourceName",
            Self::InvalidResourceGroupName => "InvalidResourceGroupName",
            Self::ResourceNotFound => "ResourceNotFound",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::PreconditionFailed => "PreconditionFailed",
            Self::Conflict => "Conflict",
            Self::Canceled => "Canceled",
        }
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The body of an error: `{"error": {…}}` around it is added by [`ArmError::to_body`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArmError {
    pub code: Code,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<ArmError>,
}

impl ArmError {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), target: None, details: Vec::new() }
    }

    pub fn with_target(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    /// One error for all problems of a request: the problem itself when there is one, a list when there are more.
    pub fn of_problems(mut problems: Vec<FieldError>) -> Self {
        if problems.len() == 1 {
            return Self::of_problem(problems.remove(0));
        }
        let message = format!("{} errors occurred", problems.len());
        let details = problems.into_iter().map(Self::of_problem).collect();
        Self { code: Code::MultipleErrorsOccurred, message, target: None, details }
    }

    fn of_problem(problem: FieldError) -> Self {
        let error = Self::new(Code::InvalidRequestContent, problem.problem.to_string());
        match (problem.path.as_str(), &problem.problem) {
            ("", Problem::Undecodable(_)) => error,
            (target, _) => error.with_target(target),
        }
    }

    /// "The resource 'type/name' under resource group 'rg' was not found."
    pub fn resource_not_found(id: &crate::ResourceId) -> Self {
        let kind = format!("{}/{}", id.resource_type(), id.name());
        let message = match id.resource_group() {
            Some(group) => format!("The resource '{kind}' under resource group '{group}' was not found."),
            None => format!("The resource '{kind}' was not found."),
        };
        Self::new(Code::ResourceNotFound, message)
    }

    /// The whole response body.
    pub fn to_body(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Envelope<'a> {
            error: &'a ArmError,
        }
        crate::json::to_body(&Envelope { error: self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldPath;

    #[test]
    fn one_problem_is_the_error_and_several_are_its_details() {
        let a = FieldError::required(&FieldPath::new("location"));
        let b = FieldError::immutable(&FieldPath::new("properties.platform"));
        let one = ArmError::of_problems(vec![a.clone()]);
        assert_eq!((one.code, one.target.as_deref()), (Code::InvalidRequestContent, Some("location")));
        let two = ArmError::of_problems(vec![a, b]);
        assert_eq!((two.code, two.message.as_str()), (Code::MultipleErrorsOccurred, "2 errors occurred"));
        assert_eq!(two.details.len(), 2);
    }

    #[test]
    fn the_body_is_indented_by_four_and_has_no_trailing_newline() {
        let body = String::from_utf8(ArmError::new(Code::NotFound, "a < b").to_body()).unwrap();
        assert_eq!(
            body,
            "{\n    \"error\": {\n        \"code\": \"NotFound\",\n        \"message\": \"a \\u003c b\"\n    }\n}"
        );
    }
}
