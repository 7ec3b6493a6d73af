//! Break-glass credentials. The API stores requests and revocations; the pipelines issue and revoke.

use aro_base::SignedDuration;
use aro_ocm::{BreakGlassCredential, BreakGlassCredentialStatus, ClusterState, Code, CredentialId, Problem};
use http::StatusCode;
use uuid::Uuid;

use super::Api;
use super::call::Call;
use super::clusters::is_leaving;
use super::listing::{Listing, page};
use super::reply::{Failure, Reply};
use crate::records::{BreakGlassRecord, Record as _, cluster_partition, credential_key};
use crate::search::Table;

/// How long a credential is valid.
const VALID: SignedDuration = SignedDuration::from_hours(24);
/// Credentials of a cluster that are kept.
const MAX_CREDENTIALS: u64 = 1000;
const MAX_USERNAME: usize = 63;

pub(super) async fn list(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let cluster = api.cluster(call).await?;
    let listing = Listing::parse(call, Table::Credentials)?;
    let credentials = &api.shared.records.credentials;
    let (total, records) =
        page(credentials, credentials.in_partition(&cluster.key.partition), &listing).await?;
    let view = api.view(call);
    // A list shows who has a credential, not the credentials.
    let shown = |record| BreakGlassCredential { kubeconfig: None, ..view.credential(record) };
    let items: Vec<BreakGlassCredential> = records.iter().map(shown).collect();
    listing.reply("BreakGlassCredential", total, &items)
}

pub(super) async fn get(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let cluster = api.cluster(call).await?;
    let absent = || Failure::not_found("Break glass credential", call.param(1));
    let id = CredentialId::parse(call.param(1)).map_err(|_| absent())?;
    let found = api.shared.records.credentials.find(&credential_key(&cluster.value.id, &id)).await?;
    Reply::ok(&api.view(call).credential(&found.ok_or_else(absent)?.value))
}

pub(super) async fn create(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let wanted: BreakGlassCredential = call.typed()?;
    let cluster = api.cluster(call).await?.value;
    let state = cluster.state();
    if is_leaving(&cluster) || !matches!(state, ClusterState::Ready | ClusterState::Updating) {
        let reason = format!(
            "Break glass credentials can only be created on ready clusters, cluster requested is in '{state}' state."
        );
        return Err(Failure::wrong_state(reason));
    }
    let id = Uuid::now_v7().simple().to_string();
    let username =
        wanted.username.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("break-glass-{id}"));
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    if username.len() > MAX_USERNAME || !username.chars().all(word) {
        let reason =
            format!("'username' must have at most {MAX_USERNAME} letters, digits, '-', '_', '.' and '@'");
        return Err(Failure::bad_request(vec![Problem::new(Code::InvalidValue, "username", reason)]));
    }
    let credentials = &api.shared.records.credentials;
    let partition = cluster_partition(&cluster.id);
    if credentials.store().count(&credentials.in_partition(&partition)).await? >= MAX_CREDENTIALS {
        return Err(Failure::wrong_state(
            "the cluster has too many break glass credentials, revoke them first",
        ));
    }
    let latest = call.now.0.saturating_add(VALID).unwrap_or(call.now.0);
    let expires = wanted.expiration_timestamp.map_or(latest, |wanted| wanted.0.min(latest));
    let record = BreakGlassRecord {
        cluster_id: cluster.id,
        id: CredentialId::parse(&id).map_err(|error| Failure::caused("no id can be made", error))?,
        credential: BreakGlassCredential {
            username: Some(username),
            status: Some(BreakGlassCredentialStatus::Created),
            expiration_timestamp: Some(expires.into()),
            ..BreakGlassCredential::default()
        },
        created: call.now,
        trace: call.trace.clone(),
    };
    let broken = |error| Failure::caused("the credential cannot be stored", error);
    let batch =
        credentials.batch(&partition).with(credentials.create(record.names(), &record).map_err(broken)?);
    credentials.store().write(batch).await.map_err(|error| Failure::of_creation(error.into()))?;
    Reply::json(StatusCode::CREATED, &api.view(call).credential(&record))
}

/// Asks for the revocation of all credentials of a cluster.
pub(super) async fn revoke(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let cluster = api.cluster(call).await?;
    let credentials = &api.shared.records.credentials;
    let all = credentials.all(&credentials.in_partition(&cluster.key.partition)).await?.items;
    for record in all {
        let changed = credentials.update(&record.key, |record| {
            let status = record.credential.status;
            let revocable = matches!(
                status,
                Some(BreakGlassCredentialStatus::Created | BreakGlassCredentialStatus::Issued) | None
            );
            if revocable {
                record.credential.status = Some(BreakGlassCredentialStatus::AwaitingRevocation);
                record.credential.revocation_timestamp = Some(call.now);
                // What is being revoked is not handed out any more.
                record.credential.kubeconfig = None;
            }
            revocable
        });
        changed.await?;
    }
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}
