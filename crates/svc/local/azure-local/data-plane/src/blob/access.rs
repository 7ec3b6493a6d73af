//! Who may do what: a bearer token and role assignments, or a signature with a key of the account.

use super::error::BlobError;
use super::{Service, Target, shared_key};
use crate::guard::{Action, Refusal, Storage};
use crate::http::Head;

const AUDIENCE: &str = "https://storage.azure.com";

pub(super) async fn authorize(
    service: &Service,
    storage: &Storage,
    head: &Head,
    target: &Target,
    action: Action,
) -> Result<(), BlobError> {
    let login = format!("https://{}/{}", service.login_host, storage.tenant_id);
    if let Some(token) = head.bearer() {
        let mut caller = service.guard.authenticate(token, AUDIENCE).await;
        if caller == Err(Refusal::Unauthenticated) {
            // Some clients ask for a token for the account alone.
            let own = format!("https://{}.blob.core.windows.net", head.account);
            caller = service.guard.authenticate(token, &own).await;
        }
        let caller = match caller {
            Ok(caller) if caller.tenant_id == storage.tenant_id => caller,
            Err(Refusal::Unavailable) => return Err(BlobError::unavailable()),
            _ => return Err(BlobError::invalid_token(&login)),
        };
        let scope = scope(storage, target);
        return service.guard.authorize(&caller, &scope, action).await.map_err(|refusal| match refusal {
            Refusal::Unavailable => BlobError::unavailable(),
            _ => BlobError::forbidden(),
        });
    }
    match head.header("authorization") {
        Some(value) if value.starts_with("SharedKey ") => {
            if !storage.allow_shared_key {
                return Err(BlobError::no_shared_key());
            }
            shared_key::check(head, &storage.keys, service.clock.now())
        }
        _ => Err(BlobError::challenge(&login)),
    }
}

fn scope(storage: &Storage, target: &Target) -> String {
    let account = &storage.resource_id;
    match target {
        Target::Service => account.clone(),
        Target::Container(container) => format!("{account}/blobServices/default/containers/{container}"),
        Target::Blob(container, blob) => {
            format!("{account}/blobServices/default/containers/{container}/blobs/{blob}")
        }
    }
}
