//! The service properties of an account, of which the static website has an effect; and its user delegation keys.

use aro_base::SignedDuration;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;

use super::documents::ServiceRecord;
use super::error::BlobError;
use super::{Answer, Call, empty, respond, sas, xml};
use crate::guard::Storage;

pub(super) async fn get(call: &Call<'_>, storage: &Storage) -> Answer {
    let service = call.store.service(call.account).await?;
    let enabled = service.website || storage.static_website;
    let mut website = xml::element("Enabled", if enabled { "true" } else { "false" });
    for (name, value) in
        [("IndexDocument", &service.index_document), ("ErrorDocument404Path", &service.error_document)]
    {
        if let Some(value) = value {
            website.push_str(&xml::element(name, value));
        }
    }
    let retention = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
    let text = format!(
        "{}<StorageServiceProperties><Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete>{retention}</Logging><HourMetrics><Version>1.0</Version><Enabled>false</Enabled>{retention}</HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>{retention}</MinuteMetrics><Cors /><DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy><StaticWebsite>{website}</StaticWebsite></StorageServiceProperties>",
        xml::DECLARATION
    );
    Ok(respond::document(StatusCode::OK, text))
}

pub(super) async fn set(call: &Call<'_>, body: &[u8]) -> Answer {
    let leaves = xml::leaves(body).ok_or_else(BlobError::document)?;
    if leaves.iter().any(|(path, _)| !path.starts_with("StorageServiceProperties")) {
        return Err(BlobError::document());
    }
    let member = |name: &str| {
        let path = format!("StorageServiceProperties/StaticWebsite/{name}");
        leaves
            .iter()
            .find(|(own, _)| *own == path)
            .map(|(_, text)| text.clone())
            .filter(|text| !text.is_empty())
    };
    if leaves.iter().any(|(path, _)| path.starts_with("StorageServiceProperties/StaticWebsite")) {
        let service = ServiceRecord {
            website: member("Enabled").is_some_and(|text| text.eq_ignore_ascii_case("true")),
            index_document: member("IndexDocument").filter(|text| text.len() <= 255),
            error_document: member("ErrorDocument404Path").filter(|text| text.len() <= 255),
        };
        call.store.writer(call.account).await?.put_service(service).await?;
    }
    Ok(empty(StatusCode::ACCEPTED))
}

/// A user delegation key is valid this long at most.
const LONGEST_DELEGATION: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A key with which a user signs what its roles permit. It follows from the account's secret: nothing is stored.
pub(super) fn delegation_key(call: &Call<'_>, storage: &Storage, body: &[u8]) -> Answer {
    let (Some(caller), Some(secret)) = (&call.caller, &storage.delegation) else {
        return Err(BlobError::forbidden());
    };
    let leaves = xml::leaves(body).ok_or_else(BlobError::document)?;
    let member = |name: &str| {
        let path = format!("KeyInfo/{name}");
        leaves.iter().find(|(own, _)| *own == path).map(|(_, text)| text.trim()).unwrap_or_default()
    };
    let expiry = member("Expiry");
    let start = Some(member("Start"))
        .filter(|start| !start.is_empty())
        .map_or_else(|| call.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), str::to_owned);
    let (from, until) = (sas::moment(&start), sas::moment(expiry));
    let valid = matches!((from, until), (Some(from), Some(until))
        if from < until && until > call.now && until.duration_since(call.now) <= LONGEST_DELEGATION);
    if !valid {
        return Err(BlobError::query("KeyInfo"));
    }
    let version = call.head.header("x-ms-version").unwrap_or("2020-12-06");
    let (oid, tid) = (caller.object_id.to_string(), caller.tenant_id.to_string());
    let key = sas::delegation_key(secret, &[&oid, &tid, &start, expiry, "b", version]);
    let key = key.ok_or_else(BlobError::unavailable)?;
    let members = [
        ("SignedOid", oid.as_str()),
        ("SignedTid", &tid),
        ("SignedStart", &start),
        ("SignedExpiry", expiry),
        ("SignedService", "b"),
        ("SignedVersion", version),
        ("Value", &STANDARD.encode(key)),
    ]
    .map(|(name, value)| xml::element(name, value))
    .concat();
    let text = format!("{}<UserDelegationKey>{members}</UserDelegationKey>", xml::DECLARATION);
    Ok(respond::document(StatusCode::OK, text))
}
