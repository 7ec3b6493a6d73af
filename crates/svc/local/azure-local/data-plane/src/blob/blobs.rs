//! Blobs.

use aro_store::Typed;
use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE};
use http::{HeaderName, StatusCode};

use super::conditions::{self, Known};
use super::documents::{BlobRecord, Block, LARGEST, etag};
use super::error::BlobError;
use super::{Answer, Call, empty, properties, ranges, respond};

pub(super) fn known(found: &Typed<BlobRecord>) -> Known<'_> {
    Known { etag: &found.value.etag, modified: found.value.modified }
}

/// What an answer to a write of a blob carries.
pub(super) fn written(status: StatusCode, blob: &BlobRecord) -> Response {
    let mut response = empty(status);
    respond::add_state(&mut response, &blob.etag, blob.modified);
    respond::insert(&mut response, HeaderName::from_static("x-ms-request-server-encrypted"), "true");
    response
}

pub(super) async fn put(call: &Call<'_>, container: &str, name: &str, body: &[u8]) -> Answer {
    if call.head.header("x-ms-copy-source").is_some() {
        return Err(BlobError::unsupported("x-ms-copy-source"));
    }
    match call.head.header("x-ms-blob-type") {
        Some(kind) if kind.eq_ignore_ascii_case("BlockBlob") => {}
        Some(_) => return Err(BlobError::unsupported("x-ms-blob-type")),
        None => return Err(BlobError::missing_header("x-ms-blob-type")),
    }
    if body.len() as u64 > LARGEST {
        return Err(BlobError::too_large());
    }
    let metadata = properties::metadata(call.head)?;
    let writer = call.store.writer(call.account).await?;
    call.store.get_container(call.account, container).await?;
    let old = call.store.find_blob(call.account, container, name).await?;
    conditions::check_write(call.head, old.as_ref().map(known))?;
    let waiting = call.store.find_blocks(call.account, container, name).await?;
    let (chunks, recorded) = writer.write_chunks(body).await?;
    let size = body.len() as u64;
    let blob = BlobRecord {
        container: container.to_owned(),
        name: name.to_owned(),
        size,
        etag: etag(),
        created: old.as_ref().map_or(call.now, |old| old.value.created),
        modified: call.now,
        properties: properties::of_request(call.head, true),
        metadata,
        blocks: vec![Block { id: String::new(), size, chunks }],
    };
    let mut unused = old.as_ref().map(|old| old.value.blocks.clone()).unwrap_or_default();
    let mut ops = vec![writer.put_blob(old, blob.clone())?];
    ops.extend(recorded);
    if let Some(waiting) = waiting {
        ops.push(writer.delete_blocks(&waiting));
        unused.extend(waiting.value.blocks);
    }
    writer.commit_reserved(ops, &unused, body.len()).await?;
    Ok(written(StatusCode::CREATED, &blob))
}

pub(super) async fn get(call: &Call<'_>, container: &str, name: &str) -> Answer {
    let found = call.store.get_blob(call.account, container, name).await?;
    conditions::check_read(call.head, known(&found))?;
    content(call, &found.value)
}

/// The content of a blob, or the range of it that the request asks for.
pub(super) fn content(call: &Call<'_>, blob: &BlobRecord) -> Answer {
    let range = ranges::requested(call.head, blob.size)?;
    let (start, end) = range.unwrap_or((0, blob.size));
    let mut response = Response::new(Body::from_stream(call.store.content(call.account, blob, start, end)));
    respond::add_blob(&mut response, blob);
    respond::insert(&mut response, CONTENT_LENGTH, &(end - start).to_string());
    if range.is_some() {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let text = format!("bytes {start}-{}/{}", end.saturating_sub(1), blob.size);
        respond::insert(&mut response, CONTENT_RANGE, &text);
        if let Some(digest) = &blob.properties.content_md5 {
            respond::insert(&mut response, HeaderName::from_static("x-ms-blob-content-md5"), digest);
        }
    } else if let Some(digest) = &blob.properties.content_md5 {
        respond::insert(&mut response, HeaderName::from_static("content-md5"), digest);
    }
    Ok(response)
}

pub(super) async fn properties(call: &Call<'_>, container: &str, name: &str) -> Answer {
    let found = call.store.get_blob(call.account, container, name).await?;
    conditions::check_read(call.head, known(&found))?;
    let mut response = empty(StatusCode::OK);
    respond::add_blob(&mut response, &found.value);
    if call.head.method == http::Method::HEAD {
        respond::insert(&mut response, CONTENT_LENGTH, &found.value.size.to_string());
        if let Some(digest) = &found.value.properties.content_md5 {
            respond::insert(&mut response, HeaderName::from_static("content-md5"), digest);
        }
    }
    Ok(response)
}

pub(super) async fn delete(call: &Call<'_>, container: &str, name: &str) -> Answer {
    let writer = call.store.writer(call.account).await?;
    let found = call.store.get_blob(call.account, container, name).await?;
    conditions::check_write(call.head, Some(known(&found)))?;
    writer.commit(vec![call.store.blobs().delete(&found)], &found.value.blocks).await?;
    Ok(empty(StatusCode::ACCEPTED))
}

async fn change(
    call: &Call<'_>,
    container: &str,
    name: &str,
    change: impl FnOnce(&mut BlobRecord),
) -> Answer {
    let writer = call.store.writer(call.account).await?;
    let found = call.store.get_blob(call.account, container, name).await?;
    conditions::check_write(call.head, Some(known(&found)))?;
    let mut blob = found.value.clone();
    change(&mut blob);
    blob.etag = etag();
    blob.modified = call.now;
    writer.commit(vec![writer.put_blob(Some(found), blob.clone())?], &[]).await?;
    Ok(written(StatusCode::OK, &blob))
}

pub(super) async fn set_metadata(call: &Call<'_>, container: &str, name: &str) -> Answer {
    let metadata = properties::metadata(call.head)?;
    change(call, container, name, |blob| blob.metadata = metadata).await
}

pub(super) async fn set_properties(call: &Call<'_>, container: &str, name: &str) -> Answer {
    let given = properties::of_request(call.head, false);
    change(call, container, name, |blob| blob.properties = given).await
}
