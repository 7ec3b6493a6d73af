//! Signatures with a key of the account.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use aro_base::{Secret, SignedDuration, Timestamp};
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::BlobError;
use crate::http::Head;

/// A signature is valid this long.
const FRESH: SignedDuration = SignedDuration::from_mins(15);

/// Checks the signature of a request.
pub(super) fn check(head: &Head, keys: &[Secret<String>], now: Timestamp) -> Result<(), BlobError> {
    let value = head.header("authorization").and_then(|value| value.strip_prefix("SharedKey "));
    let (account, signature) =
        value.and_then(|value| value.split_once(':')).ok_or_else(BlobError::signature)?;
    let signature = STANDARD.decode(signature).map_err(|_| BlobError::signature())?;
    if !account.eq_ignore_ascii_case(&head.account) || !is_fresh(head, now) {
        return Err(BlobError::signature());
    }
    let text = string_to_sign(head);
    let signed = keys.iter().any(|key| {
        STANDARD.decode(key.expose()).is_ok_and(|key| {
            hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, &key), text.as_bytes(), &signature).is_ok()
        })
    });
    if signed { Ok(()) } else { Err(BlobError::signature()) }
}

fn is_fresh(head: &Head, now: Timestamp) -> bool {
    let date = head.header("x-ms-date").or_else(|| head.header("date"));
    let date = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
    date.is_some_and(|date| now.duration_since(date.timestamp()).abs() <= FRESH)
}

/// What is signed. Writing to a String cannot fail.
fn string_to_sign(head: &Head) -> String {
    let header = |name: &str| head.header(name).unwrap_or_default();
    let length = match header("content-length") {
        "0" => "",
        length => length,
    };
    let date = if head.header("x-ms-date").is_some() { "" } else { header("date") };
    let lines = [
        head.method.as_str(),
        header("content-encoding"),
        header("content-language"),
        length,
        header("content-md5"),
        header("content-type"),
        date,
        header("if-modified-since"),
        header("if-match"),
        header("if-none-match"),
        header("if-unmodified-since"),
        header("range"),
    ];
    let mut text = lines.join("\n");
    text.push('\n');
    let own: BTreeMap<&str, &str> = head
        .headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("x-ms-"))
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    for (name, value) in own {
        let _ = writeln!(text, "{name}:{}", value.trim());
    }
    let _ = write!(text, "/{}{}", head.account, head.raw_path);
    let mut parameters: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, value) in &head.query {
        parameters.entry(name.to_ascii_lowercase()).or_default().push(value);
    }
    for (name, mut values) in parameters {
        values.sort_unstable();
        let _ = write!(text, "\n{name}:{}", values.join(","));
    }
    text
}
