//! Deletion of clusters.

use aro_decisions::Outcome;
use aro_ocm::{ClusterState, Code, ExternalAuthStateValue, NodePoolStateValue, Time};
use aro_store::{Attempts, Batch, CollectionError, MAX_BATCH, StoreError, Typed};
use http::StatusCode;

use super::Api;
use crate::api::call::Call;
use crate::api::reply::{Failure, Reply};
use crate::records::{
    ClusterRecord, DeletionRequest, ExternalAuthRecord, NodePoolRecord, Records, cluster_partition,
};

/// Accepts the deletion of a cluster in any state. Its node pools and external auths are marked in the same batch; more than
/// fit are marked in further ones, and by the pipeline if this process dies in between. No new ones can be created meanwhile.
pub(in crate::api) async fn delete(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    if call.query("deprovision").is_some_and(|value| value.eq_ignore_ascii_case("false")) {
        let reason = "'deprovision=false' is not supported: it would leave resources of the cluster behind";
        return Err(Failure::new(StatusCode::BAD_REQUEST, Code::NotSupported, reason));
    }
    let mut attempts = Attempts::default();
    loop {
        let mut record = api.cluster(call).await?;
        call.check_etag(&record.etag)?;
        if record.value.cluster.delete_protection.as_ref().and_then(|one| one.enabled) == Some(true) {
            let reason =
                format!("Cluster '{}' has delete protection enabled and can't be deleted", record.value.id);
            return Err(Failure::wrong_state(reason));
        }
        if call.is_dry_run() {
            return Ok(Reply::empty(StatusCode::NO_CONTENT));
        }
        if record.value.deletion.is_none() {
            record.value.deletion = Some(DeletionRequest { requested: call.now, trace: call.trace.clone() });
            record.value.trace = call.trace.clone();
            record.value.generation += 1;
            record.value.set_state(ClusterState::Uninstalling, "");
            match mark(api, call, &record).await {
                Ok(()) => {
                    let detail =
                        "deletion accepted; node pools and external auths are deleted, too".to_owned();
                    api.record(&record.value, "deletion", Outcome::Started, detail);
                }
                Err(CollectionError::Store(StoreError::Conflict { .. })) => {
                    if attempts.wait_for_next().await {
                        continue;
                    }
                    return Err(Failure::internal("other writers keep changing the cluster"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        mark_children(&api.shared.records, &record.value, call.now).await?;
        return Ok(Reply::empty(StatusCode::ACCEPTED));
    }
}

/// The deletion of the cluster and, as far as they fit, of its children.
async fn mark(api: &Api, call: &Call<'_>, record: &Typed<ClusterRecord>) -> Result<(), CollectionError> {
    let records = &api.shared.records;
    let mut batch = records.clusters.batch(&record.key.partition).with(records.clusters.replace(record)?);
    push_children(records, &record.value, call.now, &mut batch).await?;
    records.store().write(batch).await?;
    Ok(())
}

/// Marks the children of a cluster that is being deleted, those that are not marked yet. Repeating it is safe.
pub(crate) async fn mark_children(
    records: &Records,
    cluster: &ClusterRecord,
    now: Time,
) -> Result<(), CollectionError> {
    let mut attempts = Attempts::default();
    loop {
        let mut batch = records.clusters.batch(&cluster_partition(&cluster.id));
        if push_children(records, cluster, now, &mut batch).await? == 0 {
            return Ok(());
        }
        match records.store().write(batch).await {
            Ok(_) => {}
            // A pipeline wrote a status; read again.
            Err(StoreError::Conflict { key, .. }) => {
                if !attempts.wait_for_next().await {
                    return Err(CollectionError::Contended { key });
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Adds the marks that fit. Returns how many.
async fn push_children(
    records: &Records,
    cluster: &ClusterRecord,
    now: Time,
    batch: &mut Batch,
) -> Result<usize, CollectionError> {
    let partition = cluster_partition(&cluster.id);
    let request = || {
        cluster.deletion.clone().unwrap_or(DeletionRequest { requested: now, trace: cluster.trace.clone() })
    };
    let mut added = 0;
    let pools: Vec<Typed<NodePoolRecord>> =
        records.pools.all(&records.pools.in_partition(&partition)).await?.items;
    for mut pool in pools.into_iter().filter(|pool| pool.value.deletion.is_none()) {
        if batch.len() >= MAX_BATCH {
            return Ok(added);
        }
        pool.value.deletion = Some(request());
        pool.value.generation += 1;
        pool.value.set_state(NodePoolStateValue::Uninstalling, "", now);
        batch.push(records.pools.replace(&pool)?);
        added += 1;
    }
    let auths: Vec<Typed<ExternalAuthRecord>> =
        records.auths.all(&records.auths.in_partition(&partition)).await?.items;
    for mut auth in auths.into_iter().filter(|auth| auth.value.deletion.is_none()) {
        if batch.len() >= MAX_BATCH {
            return Ok(added);
        }
        auth.value.deletion = Some(request());
        auth.value.generation += 1;
        auth.value.set_state(ExternalAuthStateValue::Uninstalling, "", now);
        batch.push(records.auths.replace(&auth)?);
        added += 1;
    }
    Ok(added)
}
