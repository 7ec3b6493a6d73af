//! The static website of an account: the container `$web`, without authentication.

use std::sync::Arc;

use aro_base::SharedClock;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{Method, StatusCode};

use super::documents::check_blob;
use super::error::BlobError;
use super::{Answer, BlobStore, Call, blobs, conditions, respond};
use crate::guard::Accounts;
use crate::http::Head;

const WEB: &str = "$web";
const INDEX: &str = "index.html";

struct Website {
    store: BlobStore,
    accounts: Arc<dyn Accounts>,
    clock: SharedClock,
}

/// Static websites.
pub fn website_router(store: BlobStore, accounts: Arc<dyn Accounts>, clock: SharedClock) -> Router {
    Router::new().fallback(serve).with_state(Arc::new(Website { store, accounts, clock }))
}

async fn serve(State(website): State<Arc<Website>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let is_head = parts.method == Method::HEAD;
    let answered = match Head::of(parts) {
        Some(head) => handle(&website, &head).await,
        None => Err(BlobError::bad_uri()),
    };
    let mut response = answered.unwrap_or_else(|error| error.response());
    respond::add_common(&mut response, website.clock.now());
    if is_head {
        *response.body_mut() = Body::empty();
    }
    response
}

async fn handle(website: &Website, head: &Head) -> Answer {
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return Err(BlobError::method());
    }
    let storage = website.accounts.storage(&head.account).await.ok_or_else(BlobError::no_account)?;
    let service = website.store.service(&storage.resource_id).await?;
    if !service.website && !storage.static_website {
        return Err(BlobError::no_account());
    }
    let call = Call {
        store: &website.store,
        account: &storage.resource_id,
        now: website.clock.now(),
        head,
        caller: None,
    };
    let index = service.index_document.as_deref().unwrap_or(INDEX);
    for name in candidates(&head.path, index) {
        if check_blob(&name).is_err() {
            continue;
        }
        if let Some(found) = website.store.find_blob(call.account, WEB, &name).await? {
            conditions::check_read(head, blobs::known(&found))?;
            return blobs::content(&call, &found.value);
        }
    }
    let error = service.error_document.as_deref().filter(|name| check_blob(name).is_ok());
    if let Some(name) = error
        && let Some(found) = website.store.find_blob(call.account, WEB, name).await?
    {
        let mut response = blobs::content(&call, &found.value)?;
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    }
    Err(BlobError::no_blob())
}

/// Which blobs a path stands for: a folder is its index.
fn candidates(path: &str, index: &str) -> Vec<String> {
    match path {
        "" => vec![index.to_owned()],
        folder if folder.ends_with('/') => vec![format!("{folder}{index}")],
        file => vec![file.to_owned(), format!("{file}/{index}")],
    }
}
