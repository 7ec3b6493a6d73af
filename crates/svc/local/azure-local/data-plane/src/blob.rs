//! Blob Storage: containers and block blobs, and the static website of an account.
//!
//! A blob is a document with its properties and the list of its chunks; the bytes are in chunk documents. Writes to one account
//! happen one after the other, which makes its byte budget and its conditions exact; reads need no lock.

mod access;
mod blobs;
mod blocks;
mod conditions;
mod containers;
mod documents;
mod error;
mod lists;
mod properties;
mod ranges;
mod respond;
mod sas;
mod service;
mod shared_key;
mod store;
mod website;
mod writer;
mod xml;

use std::sync::Arc;

use aro_base::SharedClock;
use aro_web::BodyLimits;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{Method, StatusCode};

pub use store::BlobStore;
pub use website::website_router;

use crate::guard::{Accounts, Action, Guard, Principal, Storage};
use crate::http::{Head, read_body};
use error::BlobError;

struct Service {
    store: BlobStore,
    accounts: Arc<dyn Accounts>,
    guard: Arc<dyn Guard>,
    bodies: BodyLimits,
    clock: SharedClock,
    login_host: String,
}

/// A request of an authorized caller.
struct Call<'a> {
    store: &'a BlobStore,
    /// The resource id of the account.
    account: &'a str,
    now: aro_base::Timestamp,
    head: &'a Head,
    /// The caller, if it came with a token.
    caller: Option<Principal>,
}

type Answer = Result<Response, BlobError>;

/// Blob Storage's data plane.
pub fn blob_router(
    store: BlobStore,
    accounts: Arc<dyn Accounts>,
    guard: Arc<dyn Guard>,
    bodies: BodyLimits,
    clock: SharedClock,
    login_host: String,
) -> Router {
    let service = Service { store, accounts, guard, bodies, clock, login_host };
    Router::new().fallback(serve).with_state(Arc::new(service))
}

async fn serve(State(service): State<Arc<Service>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let is_head = parts.method == Method::HEAD;
    let answered = match Head::of(parts) {
        Some(head) => handle(&service, &head, body).await,
        None => Err(BlobError::bad_uri()),
    };
    let mut response = answered.unwrap_or_else(|error| error.response());
    respond::add_common(&mut response, service.clock.now());
    if is_head {
        *response.body_mut() = Body::empty();
    }
    response
}

async fn handle(service: &Service, head: &Head, body: Body) -> Answer {
    let storage = service.accounts.storage(&head.account).await.ok_or_else(BlobError::no_account)?;
    let target = Target::of(head)?;
    let operation = Operation::of(head, &target)?;
    let access = access::authorize(service, &storage, head, &target, operation).await?;
    let call = Call {
        store: &service.store,
        account: &storage.resource_id,
        now: service.clock.now(),
        head,
        caller: access.caller,
    };
    if access.create_only
        && let Target::Blob(container, blob) = &target
        && call.store.find_blob(call.account, container, blob).await?.is_some()
    {
        return Err(BlobError::forbidden());
    }
    let held = match operation.has_body() {
        true => read_body(&service.bodies, body).await.map_err(BlobError::body)?,
        false => aro_web::HeldBody::default(),
    };
    perform(&call, &storage, operation, &target, held.bytes()).await
}

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Service,
    Container(String),
    Blob(String, String),
}

impl Target {
    fn of(head: &Head) -> Result<Self, BlobError> {
        let path = head.path.as_str();
        match path.split_once('/') {
            _ if path.is_empty() => Ok(Self::Service),
            None | Some((_, "")) => {
                let name = path.trim_end_matches('/');
                // One segment is a container, or a blob of the root container.
                if head.parameter("restype").is_some_and(|kind| kind.eq_ignore_ascii_case("container")) {
                    documents::check_container(name)?;
                    return Ok(Self::Container(name.to_owned()));
                }
                documents::check_blob(name)?;
                Ok(Self::Blob("$root".to_owned(), name.to_owned()))
            }
            Some((container, blob)) => {
                documents::check_container(container)?;
                documents::check_blob(blob)?;
                Ok(Self::Blob(container.to_owned(), blob.to_owned()))
            }
        }
    }
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    ListContainers,
    GetServiceProperties,
    SetServiceProperties,
    CreateContainer,
    GetContainer,
    DeleteContainer,
    SetContainerMetadata,
    GetContainerAcl,
    SetContainerAcl,
    ListBlobs,
    PutBlob,
    PutBlock,
    PutBlockList,
    GetBlockList,
    GetBlob,
    GetBlobProperties,
    DeleteBlob,
    SetBlobMetadata,
    SetBlobProperties,
    GetUserDelegationKey,
}

impl Operation {
    fn of(head: &Head, target: &Target) -> Result<Self, BlobError> {
        let comp = head.parameter("comp").unwrap_or_default().to_ascii_lowercase();
        let method = head.method.as_str();
        Ok(match (target, method, comp.as_str()) {
            (Target::Service, "GET", "list") => Self::ListContainers,
            (Target::Service, "GET", "properties") => Self::GetServiceProperties,
            (Target::Service, "PUT", "properties") => Self::SetServiceProperties,
            (Target::Service, "POST", "userdelegationkey") => Self::GetUserDelegationKey,
            (Target::Container(_), "PUT", "") => Self::CreateContainer,
            (Target::Container(_), "GET" | "HEAD", "" | "metadata") => Self::GetContainer,
            (Target::Container(_), "DELETE", "") => Self::DeleteContainer,
            (Target::Container(_), "PUT", "metadata") => Self::SetContainerMetadata,
            (Target::Container(_), "GET" | "HEAD", "acl") => Self::GetContainerAcl,
            (Target::Container(_), "PUT", "acl") => Self::SetContainerAcl,
            (Target::Container(_), "GET", "list") => Self::ListBlobs,
            (Target::Blob(..), "PUT", "") => Self::PutBlob,
            (Target::Blob(..), "PUT", "block") => Self::PutBlock,
            (Target::Blob(..), "PUT", "blocklist") => Self::PutBlockList,
            (Target::Blob(..), "GET", "blocklist") => Self::GetBlockList,
            (Target::Blob(..), "GET", "") => Self::GetBlob,
            (Target::Blob(..), "HEAD" | "GET", "" | "metadata") => Self::GetBlobProperties,
            (Target::Blob(..), "DELETE", "") => Self::DeleteBlob,
            (Target::Blob(..), "PUT", "metadata") => Self::SetBlobMetadata,
            (Target::Blob(..), "PUT", "properties") => Self::SetBlobProperties,
            (_, "GET" | "HEAD" | "PUT" | "DELETE" | "POST", "") => return Err(BlobError::method()),
            (_, "GET" | "HEAD" | "PUT" | "DELETE" | "POST", _) => return Err(BlobError::query("comp")),
            _ => return Err(BlobError::method()),
        })
    }

    fn has_body(self) -> bool {
        matches!(
            self,
            Self::SetServiceProperties
                | Self::GetUserDelegationKey
                | Self::SetContainerAcl
                | Self::PutBlob
                | Self::PutBlock
                | Self::PutBlockList
        )
    }

    /// Containers are managed by `actions`, blobs by `dataActions`.
    fn action(self) -> Action {
        let data = |name| Action { name, is_data: true };
        let control = |name| Action { name, is_data: false };
        match self {
            Self::ListContainers | Self::GetContainer | Self::GetContainerAcl => {
                control("Microsoft.Storage/storageAccounts/blobServices/containers/read")
            }
            Self::GetServiceProperties => control("Microsoft.Storage/storageAccounts/blobServices/read"),
            Self::SetServiceProperties => control("Microsoft.Storage/storageAccounts/blobServices/write"),
            Self::GetUserDelegationKey => {
                control("Microsoft.Storage/storageAccounts/blobServices/generateUserDelegationKey/action")
            }
            Self::CreateContainer | Self::SetContainerMetadata | Self::SetContainerAcl => {
                control("Microsoft.Storage/storageAccounts/blobServices/containers/write")
            }
            Self::DeleteContainer => {
                control("Microsoft.Storage/storageAccounts/blobServices/containers/delete")
            }
            Self::ListBlobs | Self::GetBlob | Self::GetBlobProperties | Self::GetBlockList => {
                data("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read")
            }
            Self::PutBlob
            | Self::PutBlock
            | Self::PutBlockList
            | Self::SetBlobMetadata
            | Self::SetBlobProperties => {
                data("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/write")
            }
            Self::DeleteBlob => {
                data("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/delete")
            }
        }
    }
}

async fn perform(
    call: &Call<'_>,
    storage: &Storage,
    operation: Operation,
    target: &Target,
    body: bytes::Bytes,
) -> Answer {
    let (container, blob) = match target {
        Target::Service => ("", ""),
        Target::Container(container) => (container.as_str(), ""),
        Target::Blob(container, blob) => (container.as_str(), blob.as_str()),
    };
    match operation {
        Operation::ListContainers => lists::containers(call).await,
        Operation::GetServiceProperties => service::get(call, storage).await,
        Operation::SetServiceProperties => service::set(call, &body).await,
        Operation::GetUserDelegationKey => service::delegation_key(call, storage, &body),
        Operation::CreateContainer => containers::create(call, container).await,
        Operation::GetContainer => containers::get(call, container).await,
        Operation::DeleteContainer => containers::delete(call, container).await,
        Operation::SetContainerMetadata => containers::set_metadata(call, container).await,
        Operation::GetContainerAcl => containers::get_acl(call, container).await,
        Operation::SetContainerAcl => containers::set_acl(call, container).await,
        Operation::ListBlobs => lists::blobs(call, container).await,
        Operation::PutBlob => blobs::put(call, container, blob, &body).await,
        Operation::PutBlock => blocks::put(call, container, blob, &body).await,
        Operation::PutBlockList => blocks::commit(call, container, blob, &body).await,
        Operation::GetBlockList => blocks::list(call, container, blob).await,
        Operation::GetBlob => blobs::get(call, container, blob).await,
        Operation::GetBlobProperties => blobs::properties(call, container, blob).await,
        Operation::DeleteBlob => blobs::delete(call, container, blob).await,
        Operation::SetBlobMetadata => blobs::set_metadata(call, container, blob).await,
        Operation::SetBlobProperties => blobs::set_properties(call, container, blob).await,
    }
}

/// An answer without a body.
fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
