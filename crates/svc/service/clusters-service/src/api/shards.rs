//! Provision shards.

use aro_decisions::{Entry, Outcome};
use aro_ocm::{Code, Href, ProvisionShard, Root, ShardId, ShardStatus, patch};
use aro_store::{DocId, DocKey, NewDocument, Op, PartitionKey, Raw, StoreError, Typed};
use http::StatusCode;
use uuid::Uuid;

use super::Api;
use super::call::{Call, typed};
use super::listing::{Listing, page};
use super::reply::{Failure, Reply};
use super::{present, validate};
use crate::records::{Record as _, SHARD_PREFIX, SHARDS, ShardRecord, shard_key};
use crate::search::Table;

const KIND: &str = "Provision shard";
/// The namespace of the claims on what only one shard may have.
const CLAIMS: Uuid = Uuid::from_u128(0x84d6_1f0c_35a7_4c52_8e11_09bf_6c1d_77e0);

async fn find(api: &Api, text: &str) -> Result<Typed<ShardRecord>, Failure> {
    let absent = || Failure::not_found(KIND, text);
    let id = ShardId::parse(text).map_err(|_| absent())?;
    api.shared.placement.find(id).await?.ok_or_else(absent)
}

pub(super) async fn list(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let listing = Listing::parse(call, Table::Shards)?;
    let shards = &api.shared.records.shards;
    let query = shards.in_partition(&PartitionKey::new(SHARDS)).under(SHARD_PREFIX);
    let (total, records) = page(shards, query, &listing).await?;
    let items: Vec<ProvisionShard> = records.iter().map(present::shard).collect();
    listing.reply("ProvisionShard", total, &items)
}

pub(super) async fn get(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let record = find(api, call.param(0)).await?;
    Ok(Reply::ok(&present::shard(&record.value))?.with_etag(&record.etag))
}

/// Where a cluster is placed.
pub(super) async fn of_cluster(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let cluster = api.cluster(call).await?;
    let shard = api.shared.records.shards.find(&shard_key(cluster.value.shard)).await?;
    let shard = shard.ok_or_else(|| Failure::not_found(KIND, &cluster.value.shard.to_string()))?;
    Reply::ok(&present::shard(&shard.value))
}

/// What only one shard may have, as ids of claims: the AKS cluster, and its consumer at each of Maestro's addresses.
fn unique(shard: &ProvisionShard) -> Vec<(&'static str, String)> {
    let azure = shard.azure_shard.as_ref();
    let maestro = shard.maestro_config.as_ref();
    let text = |text: Option<&String>| text.map(|text| text.to_lowercase()).unwrap_or_default();
    let consumer = text(maestro.and_then(|one| one.consumer_name.as_ref()));
    let url = |config: Option<&aro_ocm::ServerUrl>| text(config.and_then(|config| config.url.as_ref()));
    let aks = text(azure.and_then(|one| one.aks_management_cluster_resource_id.as_ref()));
    let rest = url(maestro.and_then(|one| one.rest_api_config.as_ref()));
    let grpc = url(maestro.and_then(|one| one.grpc_api_config.as_ref()));
    vec![
        ("azure_shard.aks_management_cluster_resource_id", format!("aks {aks}")),
        ("maestro_config.rest_api_config.url", format!("rest {consumer} {rest}")),
        ("maestro_config.grpc_api_config.url", format!("grpc {consumer} {grpc}")),
    ]
}

pub(super) async fn create(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let mut shard: ProvisionShard = call.typed()?;
    let mut found = validate::shard(&shard);
    let given = shard.id.take().filter(|id| !id.is_empty());
    let id = given.as_deref().map_or_else(|| Ok(ShardId::new(Uuid::new_v4())), ShardId::parse);
    if let Err(error) = &id {
        found.push(aro_ocm::Problem::new(Code::InvalidValue, "id", error.to_string()));
    }
    let problems = found.into_problems();
    let id = match id {
        Ok(id) if problems.is_empty() => id,
        _ => return Err(Failure::bad_request(problems)),
    };
    (shard.kind, shard.href, shard.management_cluster) = (None, None, None);
    shard.status = Some(ShardStatus::Maintenance);
    shard.topology.get_or_insert(aro_ocm::ShardTopology::Shared);
    shard.creation_timestamp = Some(call.now);
    shard.last_update_timestamp = Some(call.now);
    let record = ShardRecord { id, shard, capacity: None, trace: call.trace.clone() };
    store(api, &record).await?;
    journal(api, &record, "registration", "provision shard registered in maintenance".to_owned());
    Reply::json(StatusCode::CREATED, &present::shard(&record))
}

/// Writes the shard unless another one has something that only one may have. All shards are in one partition, and each writes
/// a document per unique value there, so two requests at once cannot both succeed.
async fn store(api: &Api, record: &ShardRecord) -> Result<(), Failure> {
    let shards = &api.shared.records.shards;
    let broken = |error| Failure::caused("the provision shard cannot be stored", error);
    let unique = unique(&record.shard);
    let mut batch =
        shards.batch(&PartitionKey::new(SHARDS)).with(shards.create(record.names(), record).map_err(broken)?);
    for (_, value) in &unique {
        batch.push(Op::Create(claim(record, value)?));
    }
    match shards.store().write(batch).await {
        Ok(_) => Ok(()),
        Err(StoreError::Conflict { index: 0, .. }) => {
            let reason = format!("Provision shard '{}' already exists", record.id);
            Err(Failure::conflict(Code::AlreadyExists, reason))
        }
        Err(StoreError::Conflict { index, .. }) => {
            let field = unique.get(index - 1).map_or("", |(field, _)| *field);
            let reason = format!("another provision shard has the same '{field}'");
            let problems = vec![aro_ocm::Problem::new(Code::Duplicate, field, reason.clone())];
            Err(Failure { problems, ..Failure::conflict(Code::Duplicate, reason) })
        }
        Err(error) => Err(Failure::of_creation(error.into())),
    }
}

fn claim_id(value: &str) -> DocId {
    DocId::new(&format!("claim.{}", Uuid::new_v5(&CLAIMS, value.as_bytes())))
}

/// The document of a unique value. It is found by its key only.
fn claim(record: &ShardRecord, value: &str) -> Result<NewDocument, Failure> {
    let body = serde_json::json!({"shard": record.id, "value": value});
    Ok(NewDocument {
        id: claim_id(value),
        resource_type: "ClustersService/shardClaims".to_owned(),
        resource_id: String::new(),
        ttl: None,
        body: Raw::of(&body).map_err(|error| Failure::caused("a claim cannot be stored", error))?,
    })
}

fn journal(api: &Api, record: &ShardRecord, step: &'static str, detail: String) {
    let subjects = vec![Href::Shard(record.id).under(Root::AroHcp)];
    let correlation_id = record.trace.correlation_id.clone();
    api.shared.decisions.record(Entry { correlation_id, subjects, step, outcome: Outcome::Done, detail });
}

/// Changes the status; all else is immutable.
pub(super) async fn update(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let record = find(api, call.param(0)).await?;
    call.check_etag(&record.etag)?;
    let stored = serde_json::to_value(present::shard(&record.value))
        .map_err(|error| Failure::caused("the provision shard cannot be read", error))?;
    let merged = patch::merge(patch::SHARD, &stored, call.raw_body()).map_err(Failure::bad_request)?;
    let merged: ProvisionShard = typed(&merged)?;
    let status = merged.status.unwrap_or(ShardStatus::Maintenance);
    let mut changed = false;
    let update = api.shared.records.shards.update(&record.key, |record| {
        changed = record.shard.status != Some(status);
        if changed {
            record.shard.status = Some(status);
            record.shard.last_update_timestamp = Some(call.now);
            record.trace = call.trace.clone();
        }
        changed
    });
    let record = update.await?.ok_or_else(|| Failure::not_found(KIND, call.param(0)))?;
    if changed {
        journal(api, &record.value, "status", format!("provision shard is {status}"));
    }
    Ok(Reply::ok(&present::shard(&record.value))?.with_etag(&record.etag))
}

pub(super) async fn delete(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let record = find(api, call.param(0)).await?;
    call.check_etag(&record.etag)?;
    let clusters = api.shared.placement.load_of(record.value.id).await?;
    if clusters > 0 {
        let id = record.value.id;
        let reason = format!("Provision shard '{id}' has {clusters} clusters and can't be deleted");
        return Err(Failure::conflict(Code::WrongState, reason));
    }
    let claims = claims(api, &record.value).await?;
    if !api.shared.placement.remove(&record, claims).await? {
        let reason = format!("Provision shard '{}' changed meanwhile", record.value.id);
        return Err(Failure::conflict(Code::WrongState, reason));
    }
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

/// The operations that remove the claims of a shard.
async fn claims(api: &Api, record: &ShardRecord) -> Result<Vec<Op>, Failure> {
    let mut removals = Vec::new();
    for (_, value) in unique(&record.shard) {
        let key = DocKey { id: claim_id(&value), ..shard_key(record.id) };
        if let Some(document) = api.shared.records.store().get(&key).await? {
            removals.push(Op::Delete(key.id, document.etag));
        }
    }
    Ok(removals)
}
