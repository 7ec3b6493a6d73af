//! The ways a request fails, and the one place where a failure becomes an answer.
//!
//! Handlers return a [`Failure`]; [`Failure::into_answer`] holds the only match from failures to status, code, target and
//! text. A 5xx never carries internal text: the cause goes to the log with the request's ids.

use aro_arm::operation::OperationError;
use aro_arm::subscription::State;
use aro_arm::{ArmError, Code, FieldError, ResourceId};
use aro_store::{CollectionError, StoreError};
use http::StatusCode;

use crate::answer::Answer;

/// Why a request fails.
#[derive(Debug)]
pub enum Failure {
    /// The body breaks rules; all of them are listed.
    Problems(Vec<FieldError>),
    /// No such resource.
    NotFound(ResourceId),
    /// No such operation, or not this caller's: an empty 404, deliberately indistinguishable to the caller.
    OperationHidden,
    /// No such path.
    NoRoute,
    /// The path exists, the method does not.
    MethodNotAllowed(&'static [&'static str]),
    /// A path that cannot be taken apart.
    MalformedPath,
    InvalidSubscriptionId(String),
    InvalidResourceGroupName(String),
    MissingApiVersion,
    UnknownApiVersion {
        namespace: &'static str,
        resource_type: &'static str,
        asked: String,
        /// The versions on offer, joined by commas.
        served: String,
    },
    /// A query parameter or header is wrong; the text names it.
    BadParameter(String),
    BodyTooLarge,
    BodyUnreadable,
    /// The body did not arrive in time.
    BodyTimedOut,
    /// The bodies of other requests take all memory there is for them; nothing was read.
    Overloaded,
    MediaType(String),
    Unregistered(String),
    SubscriptionGone(State),
    SubscriptionReadOnly(State),
    /// The state of the resource does not allow it.
    Conflict {
        target: String,
        message: String,
        retry_after: Option<u32>,
    },
    /// `If-Match` or `If-None-Match` does not hold.
    Precondition(String),
    /// Other writers kept changing the same documents; nothing was written.
    Contention,
    /// A service behind the provider refuses.
    Refused(ArmError),
    /// The provider refuses with a code of its own.
    Coded(Box<CodedError>),
    /// A service the provider depends on does not answer; nothing was written.
    Unavailable(Box<dyn std::error::Error + Send + Sync>),
    /// The operation whose result is asked for did not succeed.
    OperationFailed(OperationError),
    /// A fault of the provider.
    Internal(Box<dyn std::error::Error + Send + Sync>),
    /// A handler panicked.
    Panicked,
}

/// An error of a provider whose codes are not those of `aro-arm`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodedError {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: String,
    pub target: Option<String>,
    /// How long the client waits before it repeats the request, in seconds.
    pub retry_after: Option<u32>,
}

impl CodedError {
    fn into_answer(self) -> Answer {
        #[derive(serde::Serialize)]
        struct Body<'a> {
            code: &'a str,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            target: Option<&'a str>,
        }
        #[derive(serde::Serialize)]
        struct Envelope<'a> {
            error: Body<'a>,
        }
        let error = Body { code: self.code, message: &self.message, target: self.target.as_deref() };
        let mut answer = Answer::json(self.status, &Envelope { error })
            .header("x-ms-error-code", self.code)
            .retry_after(self.retry_after);
        answer.error_code = Some(self.code);
        answer
    }
}

/// How long a client waits after a 503.
const UNAVAILABLE_RETRY: u32 = 59;

impl Failure {
    pub fn conflict(id: &ResourceId, message: impl Into<String>) -> Self {
        Self::Conflict { target: id.to_string(), message: message.into(), retry_after: None }
    }

    /// The cause of a 5xx: for the log only, never for the answer.
    pub fn cause(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        match self {
            Self::Unavailable(cause) | Self::Internal(cause) => Some(cause.as_ref()),
            _ => None,
        }
    }

    /// The one match.
    pub fn into_answer(self) -> Answer {
        use StatusCode as S;
        match self {
            Self::Problems(problems) => Answer::error(S::BAD_REQUEST, &ArmError::of_problems(problems)),
            Self::NotFound(id) => Answer::error(S::NOT_FOUND, &ArmError::resource_not_found(&id)),
            Self::OperationHidden => Answer::empty(S::NOT_FOUND),
            Self::NoRoute => Answer::error(
                S::NOT_FOUND,
                &ArmError::new(Code::NotFound, "The requested path could not be found."),
            ),
            Self::MethodNotAllowed(methods) => {
                let allow = methods.join(", ");
                let message = format!("The method is not allowed on this path. Allowed methods: {allow}.");
                Answer::error(S::METHOD_NOT_ALLOWED, &ArmError::new(Code::MethodNotAllowed, message)).header("allow", &allow)
            }
            Self::MalformedPath => Answer::error(
                S::BAD_REQUEST,
                &ArmError::new(Code::InvalidResourceName, "The path holds a name that is not valid text."),
            ),
            Self::InvalidSubscriptionId(id) => Answer::error(
                S::BAD_REQUEST,
                &ArmError::new(
                    Code::InvalidSubscriptionID,
                    format!("The provided subscription identifier '{id}' is malformed or invalid."),
                ),
            ),
            Self::InvalidResourceGroupName(name) => Answer::error(
                S::BAD_REQUEST,
                &ArmError::new(Code::InvalidResourceGroupName, format!("Resource group '{name}' is invalid.")),
            ),
            Self::MissingApiVersion => Answer::error(
                S::BAD_REQUEST,
                &ArmError::new(Code::InvalidParameter, "The request is missing required parameter 'api-version'."),
            ),
            Self::UnknownApiVersion { namespace, resource_type, asked, served } => Answer::error(
                S::BAD_REQUEST,
                &ArmError::new(
                    Code::InvalidResourceType,
                    format!(
                        "The resource type '{resource_type}' could not be found in the namespace '{namespace}' for api version '{asked}'. The supported api-versions are '{served}'."
                    ),
                ),
            ),
            Self::BadParameter(message) => Answer::error(S::BAD_REQUEST, &ArmError::new(Code::InvalidParameter, message)),
            Self::BodyTooLarge | Self::BodyUnreadable => Answer::error(
                S::BAD_REQUEST,
                &ArmError::new(Code::InvalidResource, "The resource definition is invalid."),
            ),
            Self::BodyTimedOut => Answer::error(
                S::REQUEST_TIMEOUT,
                &ArmError::new(Code::InvalidRequestContent, "The content of the request did not arrive in time."),
            ),
            Self::Overloaded => Answer::error(
                S::SERVICE_UNAVAILABLE,
                &ArmError::new(
                    Code::ServiceUnavailable,
                    "The service has too many requests in flight. Nothing was changed. Please retry.",
                ),
            )
            .retry_after(Some(1)),
            Self::MediaType(given) => Answer::error(
                S::UNSUPPORTED_MEDIA_TYPE,
                &ArmError::new(
                    Code::UnsupportedMediaType,
                    format!("The content media type '{given}' is not supported. Only 'application/json' is supported."),
                ),
            ),
            Self::Unregistered(id) => Answer::error(
                S::BAD_REQUEST,
                &ArmError::new(
                    Code::InvalidSubscriptionState,
                    format!("Request is not allowed in unregistered subscription '{id}'."),
                ),
            ),
            Self::SubscriptionGone(state) => Answer::error(S::BAD_REQUEST, &subscription_state(state)),
            Self::SubscriptionReadOnly(state) => Answer::error(S::CONFLICT, &subscription_state(state)),
            Self::Conflict { target, message, retry_after } => {
                Answer::error(S::CONFLICT, &ArmError::new(Code::Conflict, message).with_target(target))
                    .retry_after(retry_after)
            }
            Self::Precondition(message) => {
                Answer::error(S::PRECONDITION_FAILED, &ArmError::new(Code::PreconditionFailed, message))
            }
            Self::Contention => Answer::error(
                S::CONFLICT,
                &ArmError::new(Code::Conflict, "The resource was modified by another request. Please retry."),
            )
            .retry_after(Some(1)),
            Self::Refused(refusal) => match refusal.code {
                Code::ServiceUnavailable => {
                    Answer::error(S::SERVICE_UNAVAILABLE, &refusal).retry_after(Some(UNAVAILABLE_RETRY))
                }
                Code::Conflict => Answer::error(S::CONFLICT, &refusal),
                Code::ResourceNotFound => Answer::error(S::NOT_FOUND, &refusal),
                _ => Answer::error(S::BAD_REQUEST, &refusal),
            },
            Self::Coded(error) => error.into_answer(),
            Self::Unavailable(_) => Answer::error(
                S::SERVICE_UNAVAILABLE,
                &ArmError::new(
                    Code::ServiceUnavailable,
                    "The service is temporarily unable to process the request. Nothing was changed. Please retry.",
                ),
            )
            .retry_after(Some(UNAVAILABLE_RETRY)),
            Self::OperationFailed(failed) => Answer::json(operation_status(&failed.code), &OperationEnvelope { error: &failed })
                .header("x-ms-error-code", &failed.code),
            Self::Internal(_) | Self::Panicked => Answer::error(
                S::INTERNAL_SERVER_ERROR,
                &ArmError::new(Code::InternalServerError, "Internal server error."),
            ),
        }
    }
}

#[derive(serde::Serialize)]
struct OperationEnvelope<'a> {
    error: &'a OperationError,
}

/// The status under which a failed operation's result is read; the original answers a bare 500 to all.
fn operation_status(code: &str) -> StatusCode {
    match code {
        "InternalServerError" => StatusCode::INTERNAL_SERVER_ERROR,
        "ServiceUnavailable" => StatusCode::SERVICE_UNAVAILABLE,
        "InvalidRequestContent" | "MultipleErrorsOccurred" => StatusCode::BAD_REQUEST,
        _ => StatusCode::CONFLICT,
    }
}

fn subscription_state(state: State) -> ArmError {
    ArmError::new(
        Code::InvalidSubscriptionState,
        format!("Request is not allowed in subscription in state '{}'.", state.as_str()),
    )
}

impl From<CollectionError> for Failure {
    fn from(error: CollectionError) -> Self {
        match error {
            CollectionError::Store(error) => error.into(),
            CollectionError::Contended { .. } => Self::Contention,
            CollectionError::Decode { .. } | CollectionError::Encode { .. } => {
                Self::Internal(Box::new(error))
            }
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict { .. } => Self::Contention,
            StoreError::BadToken => Self::BadParameter(
                "The query parameter '$skipToken' is not one this service handed out.".to_owned(),
            ),
            StoreError::Unavailable(_) => Self::Unavailable(Box::new(error)),
            StoreError::Batch(_) | StoreError::CursorExpired | StoreError::Corrupt(_) => {
                Self::Internal(Box::new(error))
            }
        }
    }
}
