//! Lists of containers and blobs.

use std::collections::BTreeMap;

use aro_store::{Page, PageToken};
use http::StatusCode;

use super::documents::{BlobRecord, ContainerRecord, blob_prefix, encoded, partition};
use super::error::BlobError;
use super::{Answer, Call, respond, xml};

const LARGEST_PAGE: usize = 5000;
/// Documents read for one page of a list at most: names that a delimiter folds into one prefix count here only.
const MOST_READ: usize = 10_000;

fn page_size(call: &Call<'_>) -> Result<usize, BlobError> {
    match call.head.parameter("maxresults") {
        None => Ok(LARGEST_PAGE),
        Some(text) => match text.parse::<usize>() {
            Ok(0) | Err(_) => Err(BlobError::query("maxresults")),
            Ok(size) => Ok(size.min(LARGEST_PAGE)),
        },
    }
}

fn marker(call: &Call<'_>) -> Option<PageToken> {
    call.head.parameter("marker").filter(|marker| !marker.is_empty()).map(PageToken::new)
}

fn includes(call: &Call<'_>, what: &str) -> bool {
    call.head
        .parameter("include")
        .is_some_and(|list| list.split(',').any(|one| one.trim().eq_ignore_ascii_case(what)))
}

fn metadata(metadata: &BTreeMap<String, String>) -> String {
    // Names of elements: digits and dashes at the front would not be well-formed.
    let named =
        metadata.iter().filter(|(name, _)| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
    let items: String = named.map(|(name, value)| xml::element(name, value)).collect();
    format!("<Metadata>{items}</Metadata>")
}

pub(super) async fn containers(call: &Call<'_>) -> Answer {
    let size = page_size(call)?;
    let prefix = call.head.parameter("prefix").unwrap_or_default();
    let query =
        call.store.containers().in_partition(&partition(call.account)).under(format!("/containers/{prefix}"));
    let page = call.store.containers().page(&query, Page { size, after: marker(call) }).await?;
    let with_metadata = includes(call, "metadata");
    let shown = |container: &ContainerRecord| {
        let extra = if with_metadata { metadata(&container.metadata) } else { String::new() };
        format!(
            "<Container>{}<Properties>{}{}<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState></Properties>{extra}</Container>",
            xml::element("Name", &container.name),
            xml::element("Last-Modified", &respond::http_time(container.modified)),
            xml::element("Etag", &container.etag),
        )
    };
    let items: String = page.items.iter().map(|container| shown(&container.value)).collect();
    let next = page.next.map(|next| next.as_str().to_owned()).unwrap_or_default();
    let text = format!(
        "{}<EnumerationResults ServiceEndpoint=\"https://{}/\">{}{}<Containers>{items}</Containers>{}</EnumerationResults>",
        xml::DECLARATION,
        xml::escaped(&call.head.host),
        xml::element("Prefix", prefix),
        xml::element("MaxResults", &size.to_string()),
        xml::element("NextMarker", &next),
    );
    Ok(respond::document(StatusCode::OK, text))
}

fn shown(blob: &BlobRecord, with_metadata: bool) -> String {
    let extra = if with_metadata { metadata(&blob.metadata) } else { String::new() };
    let optional =
        |name: &str, value: &Option<String>| xml::element(name, value.as_deref().unwrap_or_default());
    let properties = &blob.properties;
    format!(
        "<Blob>{}<Properties>{}{}{}{}{}{}{}{}{}{}<BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState><ServerEncrypted>true</ServerEncrypted></Properties>{extra}</Blob>",
        xml::element("Name", &blob.name),
        xml::element("Creation-Time", &respond::http_time(blob.created)),
        xml::element("Last-Modified", &respond::http_time(blob.modified)),
        xml::element("Etag", blob.etag.trim_matches('"')),
        xml::element("Content-Length", &blob.size.to_string()),
        xml::element(
            "Content-Type",
            properties.content_type.as_deref().unwrap_or("application/octet-stream")
        ),
        optional("Content-Encoding", &properties.content_encoding),
        optional("Content-Language", &properties.content_language),
        optional("Content-MD5", &properties.content_md5),
        optional("Cache-Control", &properties.cache_control),
        optional("Content-Disposition", &properties.content_disposition),
    )
}

/// One page of blobs. The delimiter folds names that go on after it into one prefix; a page ends between two documents of the
/// store, so a prefix may appear on two pages, as clients expect.
pub(super) async fn blobs(call: &Call<'_>, container: &str) -> Answer {
    call.store.get_container(call.account, container).await?;
    let size = page_size(call)?;
    let prefix = call.head.parameter("prefix").unwrap_or_default();
    let delimiter = call.head.parameter("delimiter").filter(|delimiter| !delimiter.is_empty());
    let under = format!("{}{}", blob_prefix(container), encoded(prefix));
    // A longer name than any blob's matches nothing.
    let under = if under.len() > 1990 { format!("{}\u{7f}", blob_prefix(container)) } else { under };
    let query = call.store.blobs().in_partition(&partition(call.account)).under(under);
    let with_metadata = includes(call, "metadata");
    let (mut items, mut entries, mut read) = (String::new(), 0, 0);
    let mut last_prefix: Option<String> = None;
    let mut after = marker(call);
    loop {
        let page = call.store.blobs().page(&query, Page { size: (size - entries).min(1000), after }).await?;
        read += page.items.len();
        for blob in page.items.iter().map(|blob| &blob.value) {
            let rest = blob.name.get(prefix.len()..).unwrap_or_default();
            let folded = delimiter.and_then(|delimiter| rest.find(delimiter).map(|at| at + delimiter.len()));
            match folded.and_then(|end| blob.name.get(..prefix.len() + end)) {
                Some(name) if last_prefix.as_deref() == Some(name) => {}
                Some(name) => {
                    items.push_str("<BlobPrefix>");
                    items.push_str(&xml::element("Name", name));
                    items.push_str("</BlobPrefix>");
                    last_prefix = Some(name.to_owned());
                    entries += 1;
                }
                None => {
                    items.push_str(&shown(blob, with_metadata));
                    entries += 1;
                }
            }
        }
        after = page.next;
        if after.is_none() || entries >= size || read >= MOST_READ {
            break;
        }
    }
    let next = after.map(|next| next.as_str().to_owned()).unwrap_or_default();
    let text = format!(
        "{}<EnumerationResults ServiceEndpoint=\"https://{}/\" ContainerName=\"{}\">{}{}{}<Blobs>{items}</Blobs>{}</EnumerationResults>",
        xml::DECLARATION,
        xml::escaped(&call.head.host),
        xml::escaped(container),
        xml::element("Prefix", prefix),
        xml::element("MaxResults", &size.to_string()),
        delimiter.map(|delimiter| xml::element("Delimiter", delimiter)).unwrap_or_default(),
        xml::element("NextMarker", &next),
    );
    Ok(respond::document(StatusCode::OK, text))
}
