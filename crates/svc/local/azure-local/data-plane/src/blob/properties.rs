//! Metadata and properties in headers.

use std::collections::BTreeMap;

use axum::response::Response;
use http::HeaderName;

use super::documents::BlobProperties;
use super::error::BlobError;
use super::respond::insert;
use crate::http::Head;

const PREFIX: &str = "x-ms-meta-";
/// Storage's limit for all names and values.
const MOST_BYTES: usize = 8 * 1024;

/// The metadata in a request's headers.
pub(super) fn metadata(head: &Head) -> Result<BTreeMap<String, String>, BlobError> {
    let mut found = BTreeMap::new();
    let mut bytes = 0;
    for (name, value) in &head.headers {
        let Some(name) = name.as_str().strip_prefix(PREFIX) else { continue };
        let value = value.to_str().map_err(|_| BlobError::metadata())?;
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(word) {
            return Err(BlobError::metadata());
        }
        bytes += name.len() + value.len();
        found.insert(name.to_owned(), value.to_owned());
    }
    if bytes > MOST_BYTES { Err(BlobError::metadata()) } else { Ok(found) }
}

pub(super) fn add_metadata(response: &mut Response, metadata: &BTreeMap<String, String>) {
    for (name, value) in metadata {
        if let Ok(name) = HeaderName::from_bytes(format!("{PREFIX}{name}").as_bytes()) {
            insert(response, name, value);
        }
    }
}

/// The properties in a request's headers. Those of the request itself count where those of the blob are not given.
pub(super) fn of_request(head: &Head, with_own: bool) -> BlobProperties {
    let header = |special: &str, own: &str| {
        let found = head.header(special).or_else(|| head.header(own).filter(|_| with_own && !own.is_empty()));
        found.filter(|value| !value.is_empty() && value.len() <= 2048).map(str::to_owned)
    };
    BlobProperties {
        content_type: header("x-ms-blob-content-type", "content-type"),
        content_encoding: header("x-ms-blob-content-encoding", "content-encoding"),
        content_language: header("x-ms-blob-content-language", "content-language"),
        content_disposition: header("x-ms-blob-content-disposition", ""),
        content_md5: header("x-ms-blob-content-md5", "content-md5"),
        cache_control: header("x-ms-blob-cache-control", "cache-control"),
    }
}
