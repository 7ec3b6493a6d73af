//! Shared access signatures: a URL that permits some operations for some time, signed with a key of the account or with a user
//! delegation key.
//!
//! An account signature (`ss`, `srt`) covers the service, its containers and its blobs; a service signature (`sr`) covers one
//! container or one blob. What a user delegation key signs permits no more than the roles of the user that got the key. Stored
//! access policies, ranges of addresses and signed headers do not exist here: a signature that names one is refused.

use aro_base::{Secret, Timestamp};
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

use super::error::BlobError;
use super::{Operation, Target};
use crate::guard::{Principal, Storage};
use crate::http::Head;

/// The versions whose texts are known, and those that added lines to them.
const OLDEST: &str = "2018-11-09";
const ENCRYPTION_SCOPES: &str = "2020-12-06";
const DELEGATED_USERS: &str = "2025-07-05";
const SIGNED_HEADERS: &str = "2026-04-06";

/// Parameters that narrow a signature in ways that are not supported.
const UNSUPPORTED: [&str; 6] = ["si", "sip", "srh", "srq", "sduoid", "suoid"];

/// What a valid signature permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Permitted {
    /// The user whose roles count as well.
    pub user: Option<Principal>,
    /// Blobs may be created but not overwritten.
    pub create_only: bool,
}

/// Whether a request carries a signature.
pub(super) fn is_signed(head: &Head) -> bool {
    head.parameter("sig").is_some()
}

/// Checks the signature of a request's URL and whether it permits the operation.
pub(super) fn check(
    head: &Head,
    storage: &Storage,
    target: &Target,
    operation: Operation,
    now: Timestamp,
) -> Result<Permitted, BlobError> {
    let value = |name: &str| head.parameter(name).unwrap_or_default();
    let version = value("sv");
    if version < OLDEST || UNSUPPORTED.iter().any(|name| !value(name).is_empty()) {
        return Err(BlobError::signature());
    }
    let is_account = !value("ss").is_empty();
    let user = match value("skoid") {
        "" => None,
        _ if is_account => return Err(BlobError::signature()),
        _ => Some(delegated(head, now)?),
    };
    if user.is_none() && !storage.allow_shared_key {
        return Err(BlobError::no_shared_key());
    }
    let text = match (is_account, &user) {
        (true, _) => account_text(head),
        (false, user) => service_text(head, target, user.is_some())?,
    };
    let keys: Vec<Vec<u8>> = match &user {
        None => storage.keys.iter().filter_map(|key| STANDARD.decode(key.expose()).ok()).collect(),
        Some(_) => delegation_of(head, storage).into_iter().collect(),
    };
    let signature = STANDARD.decode(value("sig")).map_err(|_| BlobError::signature())?;
    let signed = |key: &Vec<u8>| {
        hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes(), &signature).is_ok()
    };
    if !keys.iter().any(signed) {
        return Err(BlobError::signature());
    }
    check_time(value("st"), value("se"), now)?;
    let create_only = match is_account {
        true => permit_account(operation, target, value("ss"), value("srt"), value("sp"))?,
        false => permit_service(operation, target, value("sr"), value("sp"))?,
    };
    Ok(Permitted { user, create_only })
}

/// The user that got a delegation key, if the key is valid now.
fn delegated(head: &Head, now: Timestamp) -> Result<Principal, BlobError> {
    let value = |name: &str| head.parameter(name).unwrap_or_default();
    check_time(value("skt"), value("ske"), now)?;
    let id = |name: &str| Uuid::try_parse(value(name)).map_err(|_| BlobError::signature());
    let object_id = id("skoid")?;
    Ok(Principal { tenant_id: id("sktid")?, object_id, app_id: object_id })
}

fn delegation_of(head: &Head, storage: &Storage) -> Option<Vec<u8>> {
    let value = |name: &str| head.parameter(name).unwrap_or_default();
    let parts = ["skoid", "sktid", "skt", "ske", "sks", "skv"].map(value);
    delegation_key(storage.delegation.as_ref()?, &parts)
}

/// A user delegation key: it follows from the account's secret and what it was made for, so that none is stored.
pub(super) fn delegation_key(secret: &Secret<String>, parts: &[&str; 6]) -> Option<Vec<u8>> {
    let secret = STANDARD.decode(secret.expose()).ok()?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
    Some(hmac::sign(&key, parts.join("\n").as_bytes()).as_ref().to_vec())
}

/// What an account signature signs.
fn account_text(head: &Head) -> String {
    let value = |name: &str| head.parameter(name).unwrap_or_default();
    let mut lines = vec![head.account.as_str()];
    lines.extend(["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"].map(value));
    if value("sv") >= ENCRYPTION_SCOPES {
        lines.push(value("ses"));
    }
    lines.push("");
    lines.join("\n")
}

/// What a service signature signs.
fn service_text(head: &Head, target: &Target, delegated: bool) -> Result<String, BlobError> {
    let value = |name: &str| head.parameter(name).unwrap_or_default();
    let version = value("sv");
    let account = &head.account;
    let resource = match (value("sr"), target) {
        ("c", Target::Container(container) | Target::Blob(container, _)) => {
            format!("/blob/{account}/{container}")
        }
        ("b", Target::Blob(container, blob)) => format!("/blob/{account}/{container}/{blob}"),
        _ => return Err(BlobError::signature()),
    };
    let mut lines = ["sp", "st", "se"].map(value).to_vec();
    lines.push(&resource);
    if delegated {
        lines.extend(["skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid"].map(value));
        if version >= DELEGATED_USERS {
            lines.extend(["skdutid", "sduoid"].map(value));
        }
    } else {
        lines.push(value("si"));
    }
    // The fifth line is the time of a snapshot; there are none.
    lines.extend([value("sip"), value("spr"), version, value("sr"), ""]);
    if version >= ENCRYPTION_SCOPES {
        lines.push(value("ses"));
    }
    if delegated && version >= SIGNED_HEADERS {
        lines.extend(["srh", "srq"].map(value));
    }
    lines.extend(["rscc", "rscd", "rsce", "rscl", "rsct"].map(value));
    Ok(lines.join("\n"))
}

/// Whether now lies between a start, which may be missing, and an end, which may not.
fn check_time(start: &str, end: &str, now: Timestamp) -> Result<(), BlobError> {
    let starts = if start.is_empty() { Some(Timestamp::MIN) } else { moment(start) };
    match (starts, moment(end)) {
        (Some(starts), Some(ends)) if starts <= now && now < ends => Ok(()),
        (Some(_), Some(_)) => Err(BlobError::signature_time()),
        _ => Err(BlobError::signature()),
    }
}

/// A moment as signatures name it: with seconds, with minutes, or a day.
pub(super) fn moment(text: &str) -> Option<Timestamp> {
    if let Ok(moment) = text.parse() {
        return Some(moment);
    }
    let day: jiff::civil::Date = text.parse().ok().filter(|_| text.len() == "2026-01-01".len())?;
    Some(day.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
}

/// The letters of which an operation needs one.
fn letters(operation: Operation) -> &'static str {
    match operation {
        Operation::ListContainers | Operation::ListBlobs => "l",
        Operation::GetServiceProperties
        | Operation::GetContainer
        | Operation::GetBlob
        | Operation::GetBlobProperties
        | Operation::GetBlockList => "r",
        Operation::CreateContainer | Operation::PutBlob | Operation::PutBlock | Operation::PutBlockList => {
            "cw"
        }
        Operation::SetServiceProperties
        | Operation::SetContainerMetadata
        | Operation::SetBlobMetadata
        | Operation::SetBlobProperties => "w",
        Operation::DeleteContainer | Operation::DeleteBlob => "d",
        // Access policies and delegation keys need a key of the account or a role.
        Operation::GetContainerAcl | Operation::SetContainerAcl | Operation::GetUserDelegationKey => "",
    }
}

/// Whether letters permit an operation; returns whether they permit creation only.
fn permit(operation: Operation, permissions: &str) -> Result<bool, BlobError> {
    let needed = letters(operation);
    match needed.chars().any(|letter| permissions.contains(letter)) {
        true => Ok(needed == "cw" && !permissions.contains('w')),
        false => Err(BlobError::forbidden()),
    }
}

fn permit_account(
    operation: Operation,
    target: &Target,
    services: &str,
    types: &str,
    permissions: &str,
) -> Result<bool, BlobError> {
    if !services.contains('b') {
        return Err(BlobError::service_mismatch());
    }
    let needed = match (target, operation) {
        (Target::Service, _) => 's',
        // Listing blobs is an operation on their container.
        (Target::Container(_), _) => 'c',
        (Target::Blob(..), _) => 'o',
    };
    match types.contains(needed) {
        true => permit(operation, permissions),
        false => Err(BlobError::resource_type_mismatch()),
    }
}

fn permit_service(
    operation: Operation,
    target: &Target,
    resource: &str,
    permissions: &str,
) -> Result<bool, BlobError> {
    let inside = match (resource, target) {
        ("c", Target::Container(_)) => operation == Operation::ListBlobs,
        ("c" | "b", Target::Blob(..)) => true,
        _ => false,
    };
    match inside {
        true => permit(operation, permissions),
        false => Err(BlobError::resource_type_mismatch()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_seconds_minutes_or_only_a_day() {
        for text in ["2026-11-18T12:30:00Z", "2026-11-18T12:30Z", "2026-11-18"] {
            assert!(moment(text).is_some(), "{text}");
        }
        assert_eq!(moment("2026-11-18T00:00Z"), moment("2026-11-18"));
        for text in ["", "soon", "2026-13-01", "12:30"] {
            assert!(moment(text).is_none(), "{text}");
        }
    }

    #[test]
    fn letters_permit_their_operations_only() {
        assert!(!permit(Operation::GetBlob, "r").unwrap());
        assert!(permit(Operation::PutBlob, "r").is_err());
        assert!(permit(Operation::PutBlob, "c").unwrap());
        assert!(!permit(Operation::PutBlob, "cw").unwrap());
        assert!(permit(Operation::DeleteBlob, "rcw").is_err());
        assert!(permit(Operation::SetContainerAcl, "racwdl").is_err());
    }

    #[test]
    fn a_container_signature_lists_and_a_blob_signature_does_not() {
        let container = Target::Container("c".to_owned());
        let blob = Target::Blob("c".to_owned(), "b".to_owned());
        assert!(permit_service(Operation::ListBlobs, &container, "c", "l").is_ok());
        assert!(permit_service(Operation::DeleteContainer, &container, "c", "d").is_err());
        assert!(permit_service(Operation::ListBlobs, &container, "b", "l").is_err());
        assert!(permit_service(Operation::GetBlob, &blob, "b", "r").is_ok());
        assert!(permit_account(Operation::GetBlob, &blob, "b", "co", "r").is_ok());
        assert!(permit_account(Operation::GetBlob, &blob, "b", "sc", "r").is_err());
        assert!(permit_account(Operation::GetBlob, &blob, "qt", "o", "r").is_err());
    }
}
