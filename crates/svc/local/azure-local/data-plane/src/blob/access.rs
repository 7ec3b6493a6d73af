//! Who may do what: a bearer token and role assignments, a signature with a key of the account, or a shared access signature.

use super::error::BlobError;
use super::{Operation, Service, Target, sas, shared_key};
use crate::guard::{Principal, Refusal, Storage};
use crate::http::Head;

const AUDIENCE: &str = "https://storage.azure.com";

/// An authorized request.
#[derive(Debug, Default)]
pub(super) struct Access {
    /// The caller, if it came with a token.
    pub caller: Option<Principal>,
    /// Blobs may be created but not overwritten.
    pub create_only: bool,
}

pub(super) async fn authorize(
    service: &Service,
    storage: &Storage,
    head: &Head,
    target: &Target,
    operation: Operation,
) -> Result<Access, BlobError> {
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
        by_roles(service, storage, target, operation, &caller).await?;
        return Ok(Access { caller: Some(caller), create_only: false });
    }
    if sas::is_signed(head) {
        let permitted = sas::check(head, storage, target, operation, service.clock.now())?;
        match permitted.user {
            Some(user) if user.tenant_id != storage.tenant_id => return Err(BlobError::signature()),
            Some(user) => by_roles(service, storage, target, operation, &user).await?,
            None => {}
        }
        return Ok(Access { caller: None, create_only: permitted.create_only });
    }
    match head.header("authorization") {
        Some(value) if value.starts_with("SharedKey ") => {
            if !storage.allow_shared_key {
                return Err(BlobError::no_shared_key());
            }
            // A delegation key is given to a user, and a key of the account names none.
            if operation == Operation::GetUserDelegationKey {
                return Err(BlobError::forbidden());
            }
            shared_key::check(head, &storage.keys, service.clock.now())?;
            Ok(Access::default())
        }
        _ => Err(BlobError::challenge(&login)),
    }
}

async fn by_roles(
    service: &Service,
    storage: &Storage,
    target: &Target,
    operation: Operation,
    caller: &Principal,
) -> Result<(), BlobError> {
    let decided = service.guard.authorize(caller, &scope(storage, target), operation.action()).await;
    decided.map_err(|refusal| match refusal {
        Refusal::Unavailable => BlobError::unavailable(),
        _ => BlobError::forbidden(),
    })
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
