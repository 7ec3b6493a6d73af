//! Containers.

use http::StatusCode;

use super::conditions::{self, Known};
use super::documents::{ContainerRecord, etag};
use super::error::BlobError;
use super::{Answer, Call, empty, properties, respond, xml};

pub(super) async fn create(call: &Call<'_>, name: &str) -> Answer {
    let metadata = properties::metadata(call.head)?;
    if call.head.header("x-ms-blob-public-access").is_some() {
        return Err(BlobError::unsupported("x-ms-blob-public-access"));
    }
    let writer = call.store.writer(call.account).await?;
    if call.store.find_container(call.account, name).await?.is_some() {
        return Err(BlobError::container_exists());
    }
    let container = ContainerRecord { name: name.to_owned(), etag: etag(), modified: call.now, metadata };
    writer.commit(vec![writer.put_container(None, container.clone())?], &[]).await?;
    let mut response = empty(StatusCode::CREATED);
    respond::add_state(&mut response, &container.etag, container.modified);
    Ok(response)
}

pub(super) async fn get(call: &Call<'_>, name: &str) -> Answer {
    let found = call.store.get_container(call.account, name).await?.value;
    conditions::check_read(call.head, Known { etag: &found.etag, modified: found.modified })?;
    let mut response = empty(StatusCode::OK);
    respond::add_container(&mut response, &found);
    Ok(response)
}

pub(super) async fn delete(call: &Call<'_>, name: &str) -> Answer {
    let writer = call.store.writer(call.account).await?;
    let found = call.store.get_container(call.account, name).await?;
    let known = Known { etag: &found.value.etag, modified: found.value.modified };
    conditions::check_write(call.head, Some(known))?;
    writer.remove_container(&found).await?;
    Ok(empty(StatusCode::ACCEPTED))
}

pub(super) async fn set_metadata(call: &Call<'_>, name: &str) -> Answer {
    let metadata = properties::metadata(call.head)?;
    let writer = call.store.writer(call.account).await?;
    let found = call.store.get_container(call.account, name).await?;
    let known = Known { etag: &found.value.etag, modified: found.value.modified };
    conditions::check_write(call.head, Some(known))?;
    let changed = ContainerRecord { metadata, etag: etag(), modified: call.now, ..found.value.clone() };
    writer.commit(vec![writer.put_container(Some(found), changed.clone())?], &[]).await?;
    let mut response = empty(StatusCode::OK);
    respond::add_state(&mut response, &changed.etag, changed.modified);
    Ok(response)
}

/// There are no stored access policies.
pub(super) async fn get_acl(call: &Call<'_>, name: &str) -> Answer {
    let found = call.store.get_container(call.account, name).await?.value;
    let mut response =
        respond::document(StatusCode::OK, format!("{}<SignedIdentifiers />", xml::DECLARATION));
    respond::add_state(&mut response, &found.etag, found.modified);
    Ok(response)
}

/// Access stays private: a request for anything else is refused.
pub(super) async fn set_acl(call: &Call<'_>, name: &str) -> Answer {
    if call.head.header("x-ms-blob-public-access").is_some() {
        return Err(BlobError::unsupported("x-ms-blob-public-access"));
    }
    let found = call.store.get_container(call.account, name).await?.value;
    let mut response = empty(StatusCode::OK);
    respond::add_state(&mut response, &found.etag, found.modified);
    Ok(response)
}
