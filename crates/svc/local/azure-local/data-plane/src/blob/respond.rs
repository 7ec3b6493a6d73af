//! Headers of answers.

use aro_base::Timestamp;
use axum::body::Body;
use axum::response::Response;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, DATE, ETAG,
    LAST_MODIFIED,
};
use http::{HeaderName, HeaderValue, StatusCode};
use uuid::Uuid;

use super::documents::{BlobProperties, BlobRecord, ContainerRecord};
use super::properties;

const VERSION: &str = "2024-11-04";

/// A time as HTTP writes it.
pub(super) fn http_time(moment: Timestamp) -> String {
    moment.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

pub(super) fn insert(response: &mut Response, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        response.headers_mut().insert(name, value);
    }
}

/// What every answer carries.
pub(super) fn add_common(response: &mut Response, now: Timestamp) {
    insert(response, HeaderName::from_static("x-ms-request-id"), &Uuid::new_v4().to_string());
    insert(response, HeaderName::from_static("x-ms-version"), VERSION);
    insert(response, DATE, &http_time(now));
}

/// An XML document.
pub(super) fn document(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    response
}

/// An etag and its time.
pub(super) fn add_state(response: &mut Response, etag: &str, modified: Timestamp) {
    insert(response, ETAG, etag);
    insert(response, LAST_MODIFIED, &http_time(modified));
}

/// The properties of a container.
pub(super) fn add_container(response: &mut Response, container: &ContainerRecord) {
    add_state(response, &container.etag, container.modified);
    properties::add_metadata(response, &container.metadata);
    for (name, value) in [
        ("x-ms-lease-status", "unlocked"),
        ("x-ms-lease-state", "available"),
        ("x-ms-has-immutability-policy", "false"),
        ("x-ms-has-legal-hold", "false"),
    ] {
        insert(response, HeaderName::from_static(name), value);
    }
}

/// What a client said about the content.
pub(super) fn add_content(response: &mut Response, properties: &BlobProperties) {
    let kind = properties.content_type.as_deref().unwrap_or("application/octet-stream");
    insert(response, CONTENT_TYPE, kind);
    for (name, value) in [
        (CONTENT_ENCODING, &properties.content_encoding),
        (CONTENT_LANGUAGE, &properties.content_language),
        (CONTENT_DISPOSITION, &properties.content_disposition),
        (CACHE_CONTROL, &properties.cache_control),
    ] {
        if let Some(value) = value {
            insert(response, name, value);
        }
    }
}

/// The properties of a blob.
pub(super) fn add_blob(response: &mut Response, blob: &BlobRecord) {
    add_state(response, &blob.etag, blob.modified);
    add_content(response, &blob.properties);
    properties::add_metadata(response, &blob.metadata);
    for (name, value) in [
        ("accept-ranges", "bytes"),
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-lease-status", "unlocked"),
        ("x-ms-lease-state", "available"),
        ("x-ms-server-encrypted", "true"),
        ("x-ms-access-tier", "Hot"),
        ("x-ms-access-tier-inferred", "true"),
    ] {
        insert(response, HeaderName::from_static(name), value);
    }
    insert(response, HeaderName::from_static("x-ms-creation-time"), &http_time(blob.created));
}
