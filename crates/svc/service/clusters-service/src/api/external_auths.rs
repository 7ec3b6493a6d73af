//! External auths.

use aro_ocm::{
    Code, ExternalAuth, ExternalAuthId, ExternalAuthStateValue, NodePoolStateValue, Problem, patch,
};
use aro_store::{Attempts, StoreError, Typed};
use http::StatusCode;

use super::Api;
use super::call::{Call, typed};
use super::clusters::is_leaving;
use super::listing::{Listing, page};
use super::reply::{Failure, Reply};
use super::validate;
use crate::records::{
    ClusterRecord, DeletionRequest, ExternalAuthRecord, Record as _, cluster_partition, external_auth_key,
};
use crate::search::Table;

/// The component whose client needs nodes: the console runs on them.
const CONSOLE: &str = "console";

impl Api {
    /// The external auth that the path names.
    async fn external_auth(&self, call: &Call<'_>) -> Result<Typed<ExternalAuthRecord>, Failure> {
        let cluster = self.cluster(call).await?;
        let text = call.param(1);
        let absent = || Failure::not_found("External auth", text);
        let id = ExternalAuthId::parse(text).map_err(|_| absent())?;
        let key = external_auth_key(&cluster.value.id, &id);
        self.shared.records.auths.find(&key).await?.ok_or_else(absent)
    }
}

pub(super) async fn config(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let cluster = api.cluster(call).await?;
    Reply::ok(&api.view(call).external_auth_config(&cluster.value.id))
}

pub(super) async fn list(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let cluster = api.cluster(call).await?;
    let listing = Listing::parse(call, Table::ExternalAuths)?;
    let auths = &api.shared.records.auths;
    let (total, records) = page(auths, auths.in_partition(&cluster.key.partition), &listing).await?;
    let view = api.view(call);
    let items: Vec<ExternalAuth> = records.iter().map(|record| view.external_auth(record)).collect();
    listing.reply("ExternalAuth", total, &items)
}

pub(super) async fn get(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let record = api.external_auth(call).await?;
    Ok(Reply::ok(&api.view(call).external_auth(&record.value))?.with_etag(&record.etag))
}

pub(super) async fn create(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let auth: ExternalAuth = call.typed()?;
    let mut attempts = Attempts::default();
    loop {
        let cluster = api.cluster(call).await?;
        let record = admitted(api, call, &cluster.value, auth.clone()).await?;
        if call.is_dry_run() {
            return Ok(Reply::empty(StatusCode::NO_CONTENT));
        }
        let records = &api.shared.records;
        let broken = |error| Failure::caused("the external auth cannot be stored", error);
        // The cluster is written, not only checked: two creations at once conflict there, and a cluster has one external auth.
        let batch = records
            .auths
            .batch(&cluster_partition(&cluster.value.id))
            .with(records.auths.create(record.names(), &record).map_err(broken)?)
            .with(records.clusters.replace(&cluster).map_err(broken)?);
        match records.store().write(batch).await {
            Ok(_) => return Reply::json(StatusCode::ACCEPTED, &api.view(call).external_auth(&record)),
            Err(StoreError::Conflict { index: 0, .. }) => {
                let reason = format!("External auth '{}' already exists", record.id);
                return Err(Failure::conflict(Code::AlreadyExists, reason));
            }
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => {
                let key = external_auth_key(&record.cluster_id, &record.id);
                return match records.auths.find(&key).await {
                    Ok(Some(stored)) if stored.value.trace == record.trace => {
                        Reply::json(StatusCode::ACCEPTED, &api.view(call).external_auth(&record))
                    }
                    _ => Err(Failure::of_creation(error.into())),
                };
            }
        }
        if !attempts.wait_for_next().await {
            return Err(Failure::internal("other writers keep changing the cluster"));
        }
    }
}

async fn admitted(
    api: &Api,
    call: &Call<'_>,
    cluster: &ClusterRecord,
    mut auth: ExternalAuth,
) -> Result<ExternalAuthRecord, Failure> {
    if is_leaving(cluster) {
        return Err(Failure::wrong_state(format!(
            "ExternalAuths can't be created on clusters that are being deleted, cluster requested is in '{}' state.",
            cluster.state()
        )));
    }
    let mut found = validate::external_auth(&auth);
    let id = ExternalAuthId::parse(auth.id.as_deref().unwrap_or_default());
    if let Err(error) = &id {
        found.push(Problem::new(Code::InvalidValue, "id", error.to_string()));
    }
    let (id, problems) = (id, found.into_problems());
    let id = match id {
        Ok(id) if problems.is_empty() => id,
        _ => return Err(Failure::bad_request(problems)),
    };
    let auths = &api.shared.records.auths;
    let others = auths.all(&auths.in_partition(&cluster_partition(&cluster.id))).await?.items;
    if let Some(other) = others.iter().find(|other| other.value.id != id) {
        let reason = format!("Cluster '{}' already has the external auth '{}'", cluster.id, other.value.id);
        return Err(Failure::conflict(Code::Duplicate, reason));
    }
    (auth.kind, auth.href, auth.status) = (None, None, None);
    auth.id = Some(id.to_string());
    without_secrets(&mut auth);
    let mut record = ExternalAuthRecord {
        cluster_id: cluster.id.clone(),
        id,
        auth,
        created: call.now,
        generation: 1,
        trace: call.trace.clone(),
        deletion: None,
    };
    record.set_state(ExternalAuthStateValue::Ready, "", call.now);
    Ok(record)
}

/// Secrets of clients are in the cluster; they are neither stored nor returned.
fn without_secrets(auth: &mut ExternalAuth) {
    for client in auth.clients.iter_mut().flatten() {
        client.secret = None;
    }
}

pub(super) async fn update(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let mut attempts = Attempts::default();
    loop {
        let cluster = api.cluster(call).await?;
        let mut record = api.external_auth(call).await?;
        call.check_etag(&record.etag)?;
        let state = cluster.value.state();
        if !state.is_updatable() || is_leaving(&cluster.value) || record.value.deletion.is_some() {
            return Err(Failure::wrong_state(format!(
                "ExternalAuths can only be updated on clusters in an updatable state, cluster requested is in '{state}' state."
            )));
        }
        let changed = merged(&record.value.auth, call)?;
        check_console(api, &cluster.value, &changed).await?;
        if changed != record.value.auth {
            record.value.auth = changed;
            record.value.generation += 1;
            record.value.trace = call.trace.clone();
            let auths = &api.shared.records.auths;
            let batch = auths
                .batch(&record.key.partition)
                .with(auths.replace(&record)?)
                .with(api.shared.records.clusters.check(&cluster));
            match api.shared.records.store().write(batch).await {
                Ok(written) => {
                    if let Some(written) = written.into_iter().next() {
                        record.etag = written.etag;
                    }
                }
                Err(StoreError::Conflict { .. }) => {
                    if attempts.wait_for_next().await {
                        continue;
                    }
                    return Err(Failure::internal("other writers keep changing the external auth"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let reply = Reply::json(StatusCode::ACCEPTED, &api.view(call).external_auth(&record.value))?;
        return Ok(reply.with_etag(&record.etag));
    }
}

fn merged(auth: &ExternalAuth, call: &Call<'_>) -> Result<ExternalAuth, Failure> {
    let stored = serde_json::to_value(auth)
        .map_err(|error| Failure::caused("the external auth cannot be read", error))?;
    let merged =
        patch::merge(patch::EXTERNAL_AUTH, &stored, call.raw_body()).map_err(Failure::bad_request)?;
    let mut merged: ExternalAuth = typed(&merged)?;
    without_secrets(&mut merged);
    let problems = validate::external_auth(&merged).into_problems();
    if problems.is_empty() { Ok(merged) } else { Err(Failure::bad_request(problems)) }
}

/// The console runs on nodes, so its client needs a node pool that is ready.
async fn check_console(api: &Api, cluster: &ClusterRecord, auth: &ExternalAuth) -> Result<(), Failure> {
    let is_console = |client: &aro_ocm::ExternalAuthClientConfig| {
        client.component.as_ref().and_then(|component| component.name.as_deref()) == Some(CONSOLE)
    };
    if !auth.clients.as_deref().unwrap_or_default().iter().any(is_console) {
        return Ok(());
    }
    let pools = &api.shared.records.pools;
    let pools = pools.all(&pools.in_partition(&cluster_partition(&cluster.id))).await?.items;
    if pools.iter().any(|pool| pool.value.state() == NodePoolStateValue::Ready) {
        return Ok(());
    }
    Err(Failure::wrong_state(
        "console clients cannot be configured without a ready node pool. Please ensure at least one node pool is in 'ready' state before configuring console authentication",
    ))
}

pub(super) async fn delete(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let cluster = api.cluster(call).await?.value;
    let record = api.external_auth(call).await?;
    call.check_etag(&record.etag)?;
    if is_leaving(&cluster) {
        return Err(Failure::wrong_state(format!(
            "Cannot delete ExternalAuth: its parent cluster must be in deletable state. Parent cluster state: '{}'",
            cluster.state()
        )));
    }
    if call.is_dry_run() {
        return Ok(Reply::empty(StatusCode::NO_CONTENT));
    }
    let changed = api.shared.records.auths.update(&record.key, |record| {
        let accepted = record.deletion.is_none();
        if accepted {
            record.deletion = Some(DeletionRequest { requested: call.now, trace: call.trace.clone() });
            record.trace = call.trace.clone();
            record.generation += 1;
            record.set_state(ExternalAuthStateValue::Uninstalling, "", call.now);
        }
        accepted
    });
    changed.await?.ok_or_else(|| Failure::not_found("External auth", call.param(1)))?;
    Ok(Reply::empty(StatusCode::ACCEPTED))
}
