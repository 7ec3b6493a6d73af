//! Upgrade policies of control planes and node pools. They stay listed when they are done: the resource provider compares the
//! newest one with what it wants.

use aro_ocm::{
    Code, NodePoolId, Problem, UpgradePolicy, UpgradePolicyState, UpgradePolicyStateValue, VERSION_PREFIX,
};
use aro_store::{Attempts, Query, StoreError, Typed};
use http::StatusCode;
use uuid::Uuid;

use super::Api;
use super::call::Call;
use super::clusters::is_leaving;
use super::listing::{Listing, page};
use super::reply::{Failure, Reply};
use crate::records::{
    ClusterRecord, NodePoolRecord, Record as _, UpgradePolicyRecord, cluster_partition, policy_key,
};
use crate::search::Table;
use crate::versions::VersionNumber;

const KIND: &str = "Upgrade policy";

/// What the path names: a cluster, perhaps a node pool, perhaps a policy.
struct Place {
    cluster: Typed<ClusterRecord>,
    pool: Option<Typed<NodePoolRecord>>,
    policy: String,
}

impl Place {
    async fn of(api: &Api, call: &Call<'_>) -> Result<Self, Failure> {
        let cluster = api.cluster(call).await?;
        let of_pool = call.head.raw_path.split('/').any(|segment| segment == "node_pools");
        let pool = if of_pool { Some(api.node_pool(call).await?) } else { None };
        let policy = call.param(if of_pool { 2 } else { 1 }).to_owned();
        Ok(Self { cluster, pool, policy })
    }

    fn pool_id(&self) -> Option<&NodePoolId> {
        self.pool.as_ref().map(|pool| &pool.value.id)
    }

    fn query(&self, api: &Api) -> Query {
        let of = self.pool_id().map_or_else(|| "-".to_owned(), ToString::to_string);
        let prefix = format!("/clusters/{}/upgrade_policies/{of}/", self.cluster.value.id);
        api.shared.records.policies.in_partition(&self.cluster.key.partition).under(prefix)
    }

    async fn policy(&self, api: &Api) -> Result<Typed<UpgradePolicyRecord>, Failure> {
        let absent = || Failure::not_found(KIND, &self.policy);
        let id = Uuid::try_parse(&self.policy).map_err(|_| absent())?.to_string();
        let found = api.shared.records.policies.find(&policy_key(&self.cluster.value.id, &id)).await?;
        found.filter(|found| found.value.pool.as_ref() == self.pool_id()).ok_or_else(absent)
    }
}

pub(super) async fn list(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let place = Place::of(api, call).await?;
    let listing = Listing::parse(call, Table::UpgradePolicies)?;
    let (total, records) = page(&api.shared.records.policies, place.query(api), &listing).await?;
    let view = api.view(call);
    let items: Vec<UpgradePolicy> = records.iter().map(|record| view.policy(record)).collect();
    let kind = if place.pool.is_some() { "NodePoolUpgradePolicy" } else { "ControlPlaneUpgradePolicy" };
    listing.reply(kind, total, &items)
}

pub(super) async fn get(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let record = Place::of(api, call).await?.policy(api).await?;
    Ok(Reply::ok(&api.view(call).policy(&record.value))?.with_etag(&record.etag))
}

pub(super) async fn create(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let wanted: UpgradePolicy = call.typed()?;
    let id = Uuid::now_v7().to_string();
    let mut attempts = Attempts::default();
    loop {
        let place = Place::of(api, call).await?;
        if is_leaving(&place.cluster.value)
            || place.pool.as_ref().is_some_and(|pool| pool.value.deletion.is_some())
        {
            return Err(Failure::wrong_state("Upgrade policies can't be created for what is being deleted"));
        }
        let version = examined(api, &place, &wanted)?;
        let record = UpgradePolicyRecord {
            cluster_id: place.cluster.value.id.clone(),
            pool: place.pool_id().cloned(),
            id: id.clone(),
            policy: UpgradePolicy {
                version: Some(version),
                creation_timestamp: Some(call.now),
                last_update_timestamp: Some(call.now),
                state: Some(UpgradePolicyState {
                    value: Some(UpgradePolicyStateValue::Pending),
                    ..UpgradePolicyState::default()
                }),
                ..UpgradePolicy::default()
            },
            trace: call.trace.clone(),
        };
        let records = &api.shared.records;
        let broken = |error| Failure::caused("the upgrade policy cannot be stored", error);
        let batch = records
            .policies
            .batch(&cluster_partition(&record.cluster_id))
            .with(records.policies.create(record.names(), &record).map_err(broken)?)
            .with(records.clusters.check(&place.cluster));
        match records.store().write(batch).await {
            Ok(_) => return Reply::json(StatusCode::CREATED, &api.view(call).policy(&record)),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => {
                let key = policy_key(&record.cluster_id, &record.id);
                return match records.policies.find(&key).await {
                    Ok(Some(_)) => Reply::json(StatusCode::CREATED, &api.view(call).policy(&record)),
                    _ => Err(Failure::of_creation(error.into())),
                };
            }
        }
        if !attempts.wait_for_next().await {
            return Err(Failure::internal("other writers keep changing the cluster"));
        }
    }
}

/// The wanted version, if the object can be upgraded to it.
fn examined(api: &Api, place: &Place, wanted: &UpgradePolicy) -> Result<String, Failure> {
    let refused =
        |code: Code, reason: String| Failure::bad_request(vec![Problem::new(code, "version", reason)]);
    let text = wanted.version.as_deref().unwrap_or_default();
    if text.is_empty() {
        return Err(refused(Code::Required, "'version' is required".to_owned()));
    }
    let raw = text.strip_prefix(VERSION_PREFIX).unwrap_or(text);
    let catalogue = api.shared.versions.catalogue();
    let of_cluster = place.cluster.value.cluster.version.as_ref();
    let of_pool = place.pool.as_ref().and_then(|pool| pool.value.pool.version.as_ref());
    let group = of_cluster.and_then(|version| version.channel_group.as_deref()).unwrap_or_default();
    let Some(release) = catalogue.find_in(raw, group).filter(|release| release.enabled) else {
        let shown = aro_ocm::shape::shortened(raw);
        return Err(refused(
            Code::NotFound,
            format!("Version '{shown}' not found in channel group '{group}'"),
        ));
    };
    let number = |version: Option<&aro_ocm::Version>| VersionNumber::parse(version?.raw_id.as_deref()?);
    let current = if place.pool.is_some() { number(of_pool) } else { number(of_cluster) };
    if let Some(current) = current
        && (release.number < current || release.number.line().1 > current.line().1 + 1)
    {
        let reason = format!("version {} is no upgrade of {current}", release.number);
        return Err(refused(Code::InvalidValue, reason));
    }
    Ok(release.number.to_string())
}

fn state(record: &UpgradePolicyRecord) -> UpgradePolicyStateValue {
    let state = record.policy.state.as_ref().and_then(|state| state.value);
    state.unwrap_or(UpgradePolicyStateValue::Pending)
}

fn has_begun(record: &UpgradePolicyRecord) -> bool {
    state(record) == UpgradePolicyStateValue::Started
}

/// Changes the version of a policy that has not begun.
pub(super) async fn update(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let place = Place::of(api, call).await?;
    let record = place.policy(api).await?;
    call.check_etag(&record.etag)?;
    let wanted: UpgradePolicy = call.typed()?;
    let version = match &wanted.version {
        Some(_) => Some(examined(api, &place, &wanted)?),
        None => None,
    };
    let mut refused = None;
    let changed = api.shared.records.policies.update(&record.key, |record| {
        let Some(version) =
            version.as_ref().filter(|version| record.policy.version.as_ref() != Some(version))
        else {
            return false;
        };
        if !matches!(
            state(record),
            UpgradePolicyStateValue::Pending
                | UpgradePolicyStateValue::Scheduled
                | UpgradePolicyStateValue::Delayed
        ) {
            refused = Some(state(record));
            return false;
        }
        record.policy.version = Some(version.clone());
        record.policy.last_update_timestamp = Some(call.now);
        true
    });
    let record = changed.await?.ok_or_else(|| Failure::not_found(KIND, &place.policy))?;
    if let Some(state) = refused {
        return Err(Failure::wrong_state(format!("Upgrade policy is in state '{state}', can't update")));
    }
    Ok(Reply::ok(&api.view(call).policy(&record.value))?.with_etag(&record.etag))
}

pub(super) async fn delete(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let place = Place::of(api, call).await?;
    let mut attempts = Attempts::default();
    loop {
        let record = place.policy(api).await?;
        call.check_etag(&record.etag)?;
        if has_begun(&record.value) {
            return Err(Failure::wrong_state("Upgrade policy is in state 'started', can't delete"));
        }
        let policies = &api.shared.records.policies;
        let batch = policies.batch(&record.key.partition).with(policies.delete(&record));
        match api.shared.records.store().write(batch).await {
            Ok(_) => return Ok(Reply::empty(StatusCode::NO_CONTENT)),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if !attempts.wait_for_next().await {
            return Err(Failure::internal("other writers keep changing the upgrade policy"));
        }
    }
}
