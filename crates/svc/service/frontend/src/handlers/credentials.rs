//! Admin credentials: asking for one, revoking all.

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::credential;
use aro_arm::hcp::operation::{CredentialRequest, Request as Asked};
use aro_arm::hcp::resource::Resource;
use aro_arm::hcp::version::ApiVersion;
use aro_arm_server::{Answer, Failure, retry_conflicts};
use aro_rp_store::Write;
use aro_store::Typed;
use http::StatusCode;

use super::delete::active_operations;
use super::resources::commit;
use crate::conflict;
use crate::operations::{self, Cause};
use crate::shared::{Request, Shared};

/// Since this version the caller keeps its private key and sends a certificate request.
const CSR_SINCE: ApiVersion = ApiVersion::V2026_09_01Preview;

pub async fn request(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    let csr = match request.version >= CSR_SINCE {
        true => Some(credential::decode_request(&request.json()?).map_err(Failure::Problems)?),
        false => None,
    };
    retry_conflicts(|_| async {
        let cluster = cluster_at_rest(shared, request).await?;
        let id = &cluster.value.id;
        let mut operation = operations::begin(
            shared,
            &Cause::Request(request),
            Asked::RequestCredential,
            id,
            shared.clock.now(),
        );
        operation.system_admin_credential_request =
            csr.clone().map(|certificate_signing_request| CredentialRequest { certificate_signing_request });
        let mut write = Write::new(request.matched.subscription());
        write.create_operation(&operation)?.owe(&operations::owed(&operation))?;
        // A deletion or a revocation that starts meanwhile must win.
        write.unchanged(id, &cluster.etag);
        commit(shared, write, &operation, 0).await?;
        Ok(operations::follow(Answer::empty(StatusCode::ACCEPTED), request, &operation, true))
    })
    .await
}

pub async fn revoke(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    retry_conflicts(|_| async {
        let cluster = cluster_at_rest(shared, request).await?;
        let (id, now) = (&cluster.value.id, shared.clock.now());
        let operation =
            operations::begin(shared, &Cause::Request(request), Asked::RevokeCredentials, id, now);
        let mut write = Write::new(request.matched.subscription());
        let mut revoking = cluster.value.clone();
        revoking.hosting.revoke_credentials_operation_id = Some(operation.operation_id.name().to_owned());
        write.replace(id, &revoking, &cluster.etag)?;
        write.create_operation(&operation)?.owe(&operations::owed(&operation))?;
        for active in active_operations(shared, id).await? {
            let mut ended = active.value.clone();
            if ended.request == Asked::RequestCredential && ended.supersede(now) {
                write.replace_operation(&ended, &active.etag)?;
            }
        }
        commit(shared, write, &operation, 0).await?;
        Ok(operations::follow(Answer::empty(StatusCode::ACCEPTED), request, &operation, true))
    })
    .await
}

async fn cluster_at_rest(shared: &Shared, request: &Request) -> Result<Typed<Cluster>, Failure> {
    let id = request.matched.root_id();
    let cluster = shared.documents.find::<Cluster>(&id).await?.ok_or(Failure::NotFound(id))?;
    let revoking = cluster.value.hosting.revoke_credentials_operation_id.is_some();
    conflict::check_credential_action(&cluster.value.id, cluster.value.provisioning_state(), revoking)?;
    Ok(cluster)
}
