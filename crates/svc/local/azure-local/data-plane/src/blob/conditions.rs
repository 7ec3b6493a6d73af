//! Conditional headers.

use aro_base::Timestamp;

use super::error::BlobError;
use crate::http::Head;

/// What is known of a blob or container, if it exists.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub etag: &'a str,
    pub modified: Timestamp,
}

fn names(list: &str, etag: &str) -> bool {
    let bare = |text: &str| text.trim().trim_start_matches("W/").trim_matches('"').to_ascii_lowercase();
    list.split(',').any(|one| one.trim() == "*" || bare(one) == bare(etag))
}

fn moment(head: &Head, name: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(head.header(name)?).ok().map(|zoned| zoned.timestamp())
}

/// Header times have whole seconds.
fn second(moment: Timestamp) -> i64 {
    moment.as_second()
}

/// Checks the conditions of a write.
pub(super) fn check_write(head: &Head, known: Option<Known<'_>>) -> Result<(), BlobError> {
    if let Some(list) = head.header("if-match")
        && !known.is_some_and(|known| names(list, known.etag))
    {
        return Err(BlobError::condition());
    }
    if let (Some(list), Some(known)) = (head.header("if-none-match"), known) {
        if list.trim() == "*" {
            return Err(BlobError::blob_exists());
        }
        if names(list, known.etag) {
            return Err(BlobError::condition());
        }
    }
    check_times(head, known, BlobError::condition)
}

/// Checks the conditions of a read.
pub(super) fn check_read(head: &Head, known: Known<'_>) -> Result<(), BlobError> {
    if head.header("if-match").is_some_and(|list| !names(list, known.etag)) {
        return Err(BlobError::condition());
    }
    match head.header("if-none-match") {
        Some(list) if names(list, known.etag) => Err(BlobError::not_modified()),
        // It wins over the time.
        Some(_) => Ok(()),
        None => check_times(head, Some(known), BlobError::not_modified),
    }
}

fn check_times(
    head: &Head,
    known: Option<Known<'_>>,
    unmodified: fn() -> BlobError,
) -> Result<(), BlobError> {
    let Some(known) = known else { return Ok(()) };
    if moment(head, "if-modified-since").is_some_and(|since| second(known.modified) <= second(since)) {
        return Err(unmodified());
    }
    if moment(head, "if-unmodified-since").is_some_and(|since| second(known.modified) > second(since)) {
        return Err(BlobError::condition());
    }
    Ok(())
}
