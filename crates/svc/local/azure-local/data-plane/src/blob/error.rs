//! What Blob Storage refuses with: XML, and the code in a header.

use aro_base::chain;
use aro_store::{CollectionError, StoreError};
use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};

use super::xml;

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlobError {
    pub status: StatusCode,
    pub code: &'static str,
    message: String,
    challenge: Option<String>,
}

fn error(status: StatusCode, code: &'static str, message: &str) -> BlobError {
    BlobError { status, code, message: message.to_owned(), challenge: None }
}

impl BlobError {
    pub(super) fn response(&self) -> Response {
        // 304 has no body.
        let body = match self.status {
            StatusCode::NOT_MODIFIED => Body::empty(),
            _ => Body::from(format!(
                "{}<Error><Code>{}</Code><Message>{}</Message></Error>",
                xml::DECLARATION,
                self.code,
                xml::escaped(&self.message)
            )),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        headers.insert(HeaderName::from_static("x-ms-error-code"), HeaderValue::from_static(self.code));
        if let Some(value) = self.challenge.as_deref().and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.insert(WWW_AUTHENTICATE, value);
        }
        response
    }

    pub(super) fn challenge(login: &str) -> Self {
        let challenge = format!(
            "Bearer authorization_uri={login}/oauth2/authorize resource_id=https://storage.azure.com"
        );
        let text = "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
        Self {
            challenge: Some(challenge),
            ..error(StatusCode::UNAUTHORIZED, "NoAuthenticationInformation", text)
        }
    }

    pub(super) fn invalid_token(login: &str) -> Self {
        Self { code: "InvalidAuthenticationInfo", ..Self::challenge(login) }
    }

    pub(super) fn signature() -> Self {
        let text = "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.";
        error(StatusCode::FORBIDDEN, "AuthenticationFailed", text)
    }

    pub(super) fn signature_time() -> Self {
        let text =
            "Server failed to authenticate the request. Signature not valid in the specified time frame.";
        error(StatusCode::FORBIDDEN, "AuthenticationFailed", text)
    }

    pub(super) fn service_mismatch() -> Self {
        let text = "This request is not authorized to perform this operation using this service.";
        error(StatusCode::FORBIDDEN, "AuthorizationServiceMismatch", text)
    }

    pub(super) fn resource_type_mismatch() -> Self {
        let text = "This request is not authorized to perform this operation using this resource type.";
        error(StatusCode::FORBIDDEN, "AuthorizationResourceTypeMismatch", text)
    }

    pub(super) fn no_shared_key() -> Self {
        error(
            StatusCode::FORBIDDEN,
            "KeyBasedAuthenticationNotPermitted",
            "Key based authentication is not permitted on this storage account.",
        )
    }

    pub(super) fn forbidden() -> Self {
        error(
            StatusCode::FORBIDDEN,
            "AuthorizationPermissionMismatch",
            "This request is not authorized to perform this operation using this permission.",
        )
    }

    pub(super) fn no_account() -> Self {
        error(StatusCode::NOT_FOUND, "ResourceNotFound", "The specified account does not exist.")
    }

    pub(super) fn no_container() -> Self {
        error(StatusCode::NOT_FOUND, "ContainerNotFound", "The specified container does not exist.")
    }

    pub(super) fn container_exists() -> Self {
        error(StatusCode::CONFLICT, "ContainerAlreadyExists", "The specified container already exists.")
    }

    pub(super) fn no_blob() -> Self {
        error(StatusCode::NOT_FOUND, "BlobNotFound", "The specified blob does not exist.")
    }

    pub(super) fn blob_exists() -> Self {
        error(StatusCode::CONFLICT, "BlobAlreadyExists", "The specified blob already exists.")
    }

    pub(super) fn condition() -> Self {
        error(
            StatusCode::PRECONDITION_FAILED,
            "ConditionNotMet",
            "The condition specified using HTTP conditional header(s) is not met.",
        )
    }

    pub(super) fn not_modified() -> Self {
        error(StatusCode::NOT_MODIFIED, "ConditionNotMet", "")
    }

    pub(super) fn range() -> Self {
        error(
            StatusCode::RANGE_NOT_SATISFIABLE,
            "InvalidRange",
            "The range specified is invalid for the current size of the resource.",
        )
    }

    pub(super) fn bad_uri() -> Self {
        error(
            StatusCode::BAD_REQUEST,
            "InvalidUri",
            "The requested URI does not represent any resource on the server.",
        )
    }

    pub(super) fn name() -> Self {
        error(
            StatusCode::BAD_REQUEST,
            "InvalidResourceName",
            "The specified resource name contains invalid characters.",
        )
    }

    pub(super) fn method() -> Self {
        error(
            StatusCode::METHOD_NOT_ALLOWED,
            "UnsupportedHttpVerb",
            "The resource doesn't support specified Http Verb.",
        )
    }

    pub(super) fn query(name: &str) -> Self {
        let text =
            format!("Value for one of the query parameters specified in the request URI is invalid: {name}.");
        error(StatusCode::BAD_REQUEST, "InvalidQueryParameterValue", &text)
    }

    pub(super) fn header(name: &str) -> Self {
        let text = format!("The value for one of the HTTP headers is not in the correct format: {name}.");
        error(StatusCode::BAD_REQUEST, "InvalidHeaderValue", &text)
    }

    pub(super) fn missing_header(name: &str) -> Self {
        let text = format!("An HTTP header that's mandatory for this request is not specified: {name}.");
        error(StatusCode::BAD_REQUEST, "MissingRequiredHeader", &text)
    }

    pub(super) fn unsupported(name: &str) -> Self {
        let text = format!("One of the HTTP headers specified in the request is not supported: {name}.");
        error(StatusCode::BAD_REQUEST, "UnsupportedHeader", &text)
    }

    pub(super) fn metadata() -> Self {
        error(
            StatusCode::BAD_REQUEST,
            "InvalidMetadata",
            "The metadata specified is invalid. It has characters that are not permitted.",
        )
    }

    pub(super) fn document() -> Self {
        error(StatusCode::BAD_REQUEST, "InvalidXmlDocument", "XML specified is not syntactically valid.")
    }

    pub(super) fn block_list() -> Self {
        error(StatusCode::BAD_REQUEST, "InvalidBlockList", "The specified block list is invalid.")
    }

    pub(super) fn block_id() -> Self {
        error(
            StatusCode::BAD_REQUEST,
            "InvalidBlobOrBlock",
            "The specified blob or block content is invalid.",
        )
    }

    pub(super) fn too_large() -> Self {
        error(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestBodyTooLarge",
            "The request body is too large and exceeds the maximum permissible limit.",
        )
    }

    pub(super) fn over_budget() -> Self {
        error(
            StatusCode::CONFLICT,
            "AccountCapacityExceeded",
            "The storage account has no space left: its byte budget is used up.",
        )
    }

    pub(super) fn body(status: StatusCode) -> Self {
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => Self::too_large(),
            StatusCode::TOO_MANY_REQUESTS => error(
                StatusCode::SERVICE_UNAVAILABLE,
                "ServerBusy",
                "The server is currently unable to receive requests. Please retry your request.",
            ),
            status => error(status, "InvalidInput", "One of the request inputs is not valid."),
        }
    }

    pub(super) fn unavailable() -> Self {
        error(
            StatusCode::SERVICE_UNAVAILABLE,
            "ServerBusy",
            "The server is currently unable to receive requests. Please retry your request.",
        )
    }
}

impl From<CollectionError> for BlobError {
    fn from(error: CollectionError) -> Self {
        if let CollectionError::Store(StoreError::BadToken) = error {
            return Self::query("marker");
        }
        tracing::error!(error = %chain(&error), "blob documents cannot be accessed");
        Self::unavailable()
    }
}

impl From<StoreError> for BlobError {
    fn from(error: StoreError) -> Self {
        CollectionError::from(error).into()
    }
}
