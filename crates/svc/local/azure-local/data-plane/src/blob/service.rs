//! The service properties of an account; of them the static website has an effect.

use http::StatusCode;

use super::documents::ServiceRecord;
use super::error::BlobError;
use super::{Answer, Call, empty, respond, xml};
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
