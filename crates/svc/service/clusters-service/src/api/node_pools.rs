//! Node pools.

use aro_decisions::{Entry, Outcome};
use aro_ocm::{
    AzureNodePool, AzureNodePoolEncryptionAtHost, AzureNodePoolOsDisk, Code, DiskPersistence, Href, NodePool,
    NodePoolId, NodePoolStateValue, Problem, Root, Switch, Version, patch,
};
use aro_store::{Attempts, StoreError, Typed};
use http::StatusCode;

use super::Api;
use super::call::{Call, typed};
use super::clusters::is_leaving;
use super::listing::{Listing, page};
use super::reply::{Failure, Reply};
use super::validate::{self, NodePoolRules};
use crate::records::{
    ClusterRecord, DeletionRequest, NodePoolObserved, NodePoolProvisioned, NodePoolRecord, Record as _,
    cluster_partition, node_pool_key,
};
use crate::search::Table;

/// The most node pools of a cluster: their deletion fits few batches.
const MAX_POOLS: u64 = 200;

impl Api {
    /// The node pool that the path names.
    pub(super) async fn node_pool(&self, call: &Call<'_>) -> Result<Typed<NodePoolRecord>, Failure> {
        let cluster = self.cluster(call).await?;
        let text = call.param(1);
        let absent = || Failure::not_found("Node pool", text);
        let id = NodePoolId::parse(text).map_err(|_| absent())?;
        let key = node_pool_key(&cluster.value.id, &id);
        self.shared.records.pools.find(&key).await?.ok_or_else(absent)
    }

    fn record_pool(
        &self,
        cluster: &ClusterRecord,
        pool: &NodePoolRecord,
        step: &'static str,
        detail: String,
    ) {
        let arm_id = cluster.arm_id().map(|arm_id| format!("{arm_id}/nodePools/{}", pool.id));
        let mut subjects: Vec<String> = arm_id.into_iter().collect();
        subjects.push(Href::NodePool(pool.cluster_id.clone(), pool.id.clone()).under(Root::AroHcp));
        let correlation_id = pool.trace.correlation_id.clone();
        self.shared.decisions.record(Entry {
            correlation_id,
            subjects,
            step,
            outcome: Outcome::Done,
            detail,
        });
    }
}

pub(super) async fn list(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let cluster = api.cluster(call).await?;
    let listing = Listing::parse(call, Table::NodePools)?;
    let pools = &api.shared.records.pools;
    let (total, records) = page(pools, pools.in_partition(&cluster.key.partition), &listing).await?;
    let view = api.view(call);
    let items: Vec<NodePool> = records.iter().map(|record| view.node_pool(record)).collect();
    listing.reply("NodePool", total, &items)
}

pub(super) async fn get(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let record = api.node_pool(call).await?;
    Ok(Reply::ok(&api.view(call).node_pool(&record.value))?.with_etag(&record.etag))
}

pub(super) async fn status(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let record = api.node_pool(call).await?;
    Reply::ok(&api.view(call).node_pool_status(&record.value))
}

pub(super) async fn create(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let pool: NodePool = call.typed()?;
    let mut attempts = Attempts::default();
    loop {
        // The batch depends on the cluster as it was read: none is created in a cluster whose deletion was accepted.
        let cluster = api.cluster(call).await?;
        let record = admitted(api, call, &cluster.value, pool.clone()).await?;
        if call.is_dry_run() {
            return Ok(Reply::empty(StatusCode::NO_CONTENT));
        }
        let records = &api.shared.records;
        let broken = |error| Failure::caused("the node pool cannot be stored", error);
        let batch = records
            .pools
            .batch(&cluster_partition(&cluster.value.id))
            .with(records.pools.create(record.names(), &record).map_err(broken)?)
            .with(records.clusters.check(&cluster));
        match records.store().write(batch).await {
            Ok(_) => {
                api.record_pool(&cluster.value, &record, "accepted", "node pool stored".to_owned());
                return Reply::json(StatusCode::ACCEPTED, &api.view(call).node_pool(&record));
            }
            Err(StoreError::Conflict { index: 0, .. }) => {
                let reason = format!("Node pool '{}' already exists", record.id);
                return Err(Failure::conflict(Code::AlreadyExists, reason));
            }
            Err(StoreError::Conflict { .. }) => {}
            Err(error @ StoreError::Unavailable(_)) => {
                let key = node_pool_key(&record.cluster_id, &record.id);
                return match records.pools.find(&key).await {
                    Ok(Some(stored)) if stored.value.trace == record.trace => {
                        Reply::json(StatusCode::ACCEPTED, &api.view(call).node_pool(&record))
                    }
                    _ => Err(Failure::of_creation(error.into())),
                };
            }
            Err(error) => return Err(Failure::of_creation(error.into())),
        }
        if !attempts.wait_for_next().await {
            return Err(Failure::internal("other writers keep changing the cluster"));
        }
    }
}

/// The record of a new node pool, if nothing is wrong with it.
async fn admitted(
    api: &Api,
    call: &Call<'_>,
    cluster: &ClusterRecord,
    pool: NodePool,
) -> Result<NodePoolRecord, Failure> {
    if is_leaving(cluster) {
        return Err(Failure::wrong_state(format!(
            "Node pools can't be created on clusters that are being deleted, cluster requested is in '{}' state.",
            cluster.state()
        )));
    }
    let catalogue = api.shared.versions.catalogue();
    let rules = NodePoolRules { catalogue: &catalogue, cluster: &cluster.cluster };
    let mut found = validate::node_pool(&pool, &rules, true);
    let id = NodePoolId::parse(pool.id.as_deref().unwrap_or_default());
    if let Err(error) = &id {
        found.push(Problem::new(Code::InvalidValue, "id", error.to_string()));
    }
    let pools = &api.shared.records.pools;
    let partition = cluster_partition(&cluster.id);
    if pools.store().count(&pools.in_partition(&partition)).await? >= MAX_POOLS {
        let reason = format!("a cluster has at most {MAX_POOLS} node pools");
        found.push(Problem::new(Code::InvalidValue, "", reason));
    }
    match (id, found.into_problems()) {
        (Ok(id), problems) if problems.is_empty() => Ok(record(api, call, cluster, id, pool)),
        (_, problems) => Err(Failure::bad_request(problems)),
    }
}

fn record(
    api: &Api,
    call: &Call<'_>,
    cluster: &ClusterRecord,
    id: NodePoolId,
    mut pool: NodePool,
) -> NodePoolRecord {
    let catalogue = api.shared.versions.catalogue();
    let given = pool.version.as_ref().and_then(|version| version.id.clone()).filter(|id| !id.is_empty());
    let version = given.and_then(|id| catalogue.find(&id)).map(|release| Version {
        id: Some(release.id()),
        raw_id: Some(release.number.to_string()),
        channel_group: Some(release.channel_group.clone()),
        ..Version::default()
    });
    pool.version = version.or_else(|| cluster.cluster.version.clone());
    pool.id = Some(id.to_string());
    (pool.kind, pool.href, pool.status) = (None, None, None);
    pool.auto_repair.get_or_insert(true);
    // Returned from now on; the cluster's later changes do not reach it.
    if pool.node_drain_grace_period.is_none() {
        pool.node_drain_grace_period.clone_from(&cluster.cluster.node_drain_grace_period);
    }
    let azure = pool.azure_node_pool.get_or_insert_with(AzureNodePool::default);
    azure.resource_name.get_or_insert_with(|| id.to_string());
    azure.encryption_at_host.get_or_insert(AzureNodePoolEncryptionAtHost { state: Some(Switch::Disabled) });
    let disk = azure.os_disk.get_or_insert_with(AzureNodePoolOsDisk::default);
    disk.size_gibibytes.get_or_insert(64);
    if disk.storage_account_type.as_deref().is_none_or(str::is_empty) {
        disk.storage_account_type = Some("Premium_LRS".to_owned());
    }
    disk.persistence.get_or_insert(DiskPersistence::Persistent);
    let mut record = NodePoolRecord {
        cluster_id: cluster.id.clone(),
        id,
        pool,
        created: call.now,
        generation: 1,
        trace: call.trace.clone(),
        deletion: None,
        observed: NodePoolObserved::default(),
        provisioning: NodePoolProvisioned::default(),
    };
    record.set_state(NodePoolStateValue::Validating, "", call.now);
    record
}

pub(super) async fn update(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let mut attempts = Attempts::default();
    loop {
        let cluster = api.cluster(call).await?;
        let mut record = api.node_pool(call).await?;
        call.check_etag(&record.etag)?;
        let parent = cluster.value.state();
        if !parent.is_updatable() || is_leaving(&cluster.value) {
            return Err(Failure::wrong_state(format!(
                "Node pools can only be updated on clusters in an updatable state, cluster requested is in '{parent}' state."
            )));
        }
        let state = record.value.state();
        if !state.is_updatable() || record.value.deletion.is_some() {
            return Err(Failure::wrong_state(format!(
                "Node pool can only be updated in an updatable state, the node pool requested is in '{state}' state."
            )));
        }
        let changed = merged(api, &cluster.value, &record.value.pool, call)?;
        if changed != record.value.pool {
            record.value.pool = changed;
            record.value.generation += 1;
            record.value.trace = call.trace.clone();
            // The states before this one must not be seen again once an operation saw it.
            record.value.set_state(NodePoolStateValue::Updating, "", call.now);
            let pools = &api.shared.records.pools;
            let batch = pools
                .batch(&record.key.partition)
                .with(pools.replace(&record)?)
                .with(api.shared.records.clusters.check(&cluster));
            match api.shared.records.store().write(batch).await {
                Ok(written) => {
                    if let Some(written) = written.into_iter().next() {
                        record.etag = written.etag;
                    }
                    let detail = format!("desired state has generation {}", record.value.generation);
                    api.record_pool(&cluster.value, &record.value, "update", detail);
                }
                Err(StoreError::Conflict { .. }) => {
                    if attempts.wait_for_next().await {
                        continue;
                    }
                    return Err(Failure::internal("other writers keep changing the node pool"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let reply = Reply::json(StatusCode::ACCEPTED, &api.view(call).node_pool(&record.value))?;
        return Ok(reply.with_etag(&record.etag));
    }
}

fn merged(api: &Api, cluster: &ClusterRecord, pool: &NodePool, call: &Call<'_>) -> Result<NodePool, Failure> {
    let stored =
        serde_json::to_value(pool).map_err(|error| Failure::caused("the node pool cannot be read", error))?;
    let merged = patch::merge_node_pool(&stored, call.raw_body()).map_err(Failure::bad_request)?;
    let mut merged: NodePool = typed(&merged)?;
    if let Some(autoscaling) = &mut merged.autoscaling {
        (autoscaling.kind, autoscaling.id, autoscaling.href) = (None, None, None);
    }
    if merged.node_drain_grace_period.is_none() {
        // Cleared: the cluster's value is inherited again.
        merged.node_drain_grace_period.clone_from(&cluster.cluster.node_drain_grace_period);
    }
    let catalogue = api.shared.versions.catalogue();
    let rules = NodePoolRules { catalogue: &catalogue, cluster: &cluster.cluster };
    let problems = validate::node_pool(&merged, &rules, false).into_problems();
    if problems.is_empty() { Ok(merged) } else { Err(Failure::bad_request(problems)) }
}

pub(super) async fn delete(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let cluster = api.cluster(call).await?.value;
    let record = api.node_pool(call).await?;
    call.check_etag(&record.etag)?;
    if is_leaving(&cluster) {
        return Err(Failure::wrong_state(format!(
            "Cannot delete node pool: its parent cluster must be in a deletable state. Parent cluster state: '{}'",
            cluster.state()
        )));
    }
    if call.is_dry_run() {
        return Ok(Reply::empty(StatusCode::NO_CONTENT));
    }
    let mut accepted = false;
    let changed = api.shared.records.pools.update(&record.key, |record| {
        accepted = record.deletion.is_none();
        if accepted {
            record.deletion = Some(DeletionRequest { requested: call.now, trace: call.trace.clone() });
            record.trace = call.trace.clone();
            record.generation += 1;
            record.set_state(NodePoolStateValue::Uninstalling, "", call.now);
        }
        accepted
    });
    let record = changed.await?.ok_or_else(|| Failure::not_found("Node pool", call.param(1)))?;
    if accepted {
        api.record_pool(&cluster, &record.value, "deletion", "deletion accepted".to_owned());
    }
    Ok(Reply::empty(StatusCode::ACCEPTED))
}
