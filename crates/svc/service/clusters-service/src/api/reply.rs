//! Answers and failures of handlers.

use aro_base::{Class, Classify as _, ETag};
use aro_ocm::{Code, ErrorBody, Problem, Root};
use aro_store::CollectionError;
use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;

use crate::placement::PlacementError;

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    pub(crate) etag: Option<String>,
}

impl Reply {
    /// An answer with a body.
    pub(crate) fn json<T: Serialize>(status: StatusCode, value: &T) -> Result<Self, Failure> {
        let body = serde_json::to_vec(value)
            .map_err(|error| Failure::caused("the answer cannot be written", error))?;
        Ok(Self { status, body: body.into(), etag: None })
    }

    /// 200 with a body.
    pub(crate) fn ok<T: Serialize>(value: &T) -> Result<Self, Failure> {
        Self::json(StatusCode::OK, value)
    }

    /// JSON that is at hand.
    pub(crate) fn text(body: impl Into<Bytes>) -> Self {
        Self { status: StatusCode::OK, body: body.into(), etag: None }
    }

    /// An answer without a body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { status, body: Bytes::new(), etag: None }
    }

    /// Adds the version of the object.
    pub(crate) fn with_etag(mut self, etag: &ETag) -> Self {
        self.etag = Some(etag.as_str().to_owned());
        self
    }
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) reason: String,
    pub(crate) problems: Vec<Problem>,
    pub(crate) retry_after: bool,
    /// Logged, never returned.
    pub(crate) source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Failure {
    /// A failure with one problem.
    pub(crate) fn new(status: StatusCode, code: Code, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        let problems = vec![Problem::new(code, "", reason.clone())];
        let retry_after = matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        Self { status, reason, problems, retry_after, source: None }
    }

    /// 400 with everything that is wrong. The reason is shown to customers, so it holds all of it.
    pub(crate) fn bad_request(problems: Vec<Problem>) -> Self {
        let reasons: Vec<&str> = problems.iter().map(|problem| problem.reason.as_str()).collect();
        let reason = reasons.join("; ");
        Self { status: StatusCode::BAD_REQUEST, reason, problems, retry_after: false, source: None }
    }

    /// 400 because of a state.
    pub(crate) fn wrong_state(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Code::WrongState, reason)
    }

    /// 404.
    pub(crate) fn not_found(kind: &str, id: &str) -> Self {
        let reason = format!("{kind} '{}' not found", aro_ocm::shape::shortened(id));
        Self::new(StatusCode::NOT_FOUND, Code::NotFound, reason)
    }

    /// 409.
    pub(crate) fn conflict(code: Code, reason: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, reason)
    }

    /// 500 without internal text.
    pub(crate) fn internal(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Code::Internal, reason)
    }

    /// 500 with a cause for the log.
    pub(crate) fn caused(
        reason: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { source: Some(source.into()), ..Self::internal(reason) }
    }

    /// A failed write of a new object. It may have been written, so it must not be repeated blindly: the client repeats a POST
    /// after 503, and not after 500.
    pub(crate) fn of_creation(error: CollectionError) -> Self {
        Self::caused("the object may or may not have been stored", error)
    }

    pub(super) fn into_body(self, root: Root) -> ErrorBody {
        ErrorBody::new(root, self.status.as_u16(), self.reason).with_problems(&self.problems)
    }
}

impl From<CollectionError> for Failure {
    fn from(error: CollectionError) -> Self {
        match error.class() {
            Class::Retry | Class::Wait(_) => {
                let reason = "the store is not available";
                let unavailable = Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, reason);
                Self { source: Some(error.into()), ..unavailable }
            }
            Class::Terminal => Self::caused("the request failed", error),
        }
    }
}

impl From<aro_store::StoreError> for Failure {
    fn from(error: aro_store::StoreError) -> Self {
        CollectionError::from(error).into()
    }
}

impl From<PlacementError> for Failure {
    fn from(error: PlacementError) -> Self {
        let reason = error.to_string();
        match error {
            PlacementError::NoShard { .. } => Self::new(StatusCode::NOT_FOUND, Code::NotFound, reason),
            PlacementError::Unknown(_) => Self {
                problems: vec![Problem::new(Code::NotFound, "provision_shard_id", reason.clone())],
                ..Self::new(StatusCode::NOT_FOUND, Code::NotFound, reason)
            },
            PlacementError::Full { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::NoCapacity, reason)
            }
            PlacementError::Contended => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, reason)
            }
            PlacementError::Store(error) => error.into(),
        }
    }
}
