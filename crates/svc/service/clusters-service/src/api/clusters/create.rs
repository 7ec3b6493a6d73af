//! Creation of clusters.

use aro_decisions::Outcome;
use aro_ocm::{
    Cluster, ClusterAPI, ClusterConsole, ClusterId, ClusterImageRegistry, ClusterState, Code, DNS,
    Hypershift, ListeningMethod, Network, Problem, Reference, ShardId, Switch, Value, Version, names,
    property,
};
use aro_store::{CollectionError, Condition, Expr, StoreError};
use http::StatusCode;

use super::Api;
use crate::api::call::Call;
use crate::api::reply::{Failure, Reply};
use crate::api::validate::{self, ClusterRules};
use crate::placement::Wanted;
use crate::records::{
    Attribute, AttributeRecord, ClusterRecord, Record as _, ShardRecord, cluster_key, cluster_partition,
};
use crate::search;

pub(in crate::api) async fn create(api: &Api, call: &Call<'_>) -> Result<Reply, Failure> {
    let mut cluster: Cluster = call.typed()?;
    let id = examine(api, call, &cluster).await?;
    fill_defaults(api, &mut cluster);
    let wanted = wanted(&cluster);
    if call.is_dry_run() {
        if api.shared.records.clusters.find(&cluster_key(&id)).await?.is_some() {
            return Err(taken(&id));
        }
        api.shared.placement.check(&wanted).await?;
        return Ok(Reply::empty(StatusCode::NO_CONTENT));
    }
    let shard = api.shared.placement.take(&id, &wanted).await?;
    let record = record(api, call, id, cluster, &shard);
    store(api, &record).await?;
    api.record(
        &record,
        "accepted",
        Outcome::Done,
        "cluster stored; checks and provisioning follow".to_owned(),
    );
    let name = record.management_cluster.as_deref().unwrap_or("unnamed");
    let detail = format!("provision shard {} on management cluster {name}", shard.id);
    api.record(&record, "placement", Outcome::Done, detail);
    Reply::json(StatusCode::ACCEPTED, &api.view(call).cluster(&record))
}

fn taken(id: &ClusterId) -> Failure {
    Failure::conflict(Code::AlreadyExists, format!("Cluster '{id}' already exists"))
}

/// Everything that is wrong with a new cluster. Returns its id.
async fn examine(api: &Api, call: &Call<'_>, cluster: &Cluster) -> Result<ClusterId, Failure> {
    let catalogue = api.shared.versions.catalogue();
    let config = &api.shared.config;
    let rules = ClusterRules { catalogue: &catalogue, region: config.region.as_deref(), noop: config.noop };
    let mut found = validate::cluster(cluster, &rules, true);
    let id = match cluster.id.as_deref().filter(|id| !id.is_empty()) {
        None => ClusterId::mint(call.now.0, crate::random::bytes()),
        Some(text) => ClusterId::parse(text).unwrap_or_else(|error| {
            found.push(Problem::new(Code::InvalidValue, "id", error.to_string()));
            ClusterId::mint(call.now.0, crate::random::bytes())
        }),
    };
    let problems = found.into_problems();
    let mut problems = problems;
    problems.extend(in_use(api, &id, cluster).await?);
    if problems.is_empty() { Ok(id) } else { Err(Failure::bad_request(problems)) }
}

/// What another cluster has. Two requests at once are told apart by the cloud itself and by the resource provider's claims.
async fn in_use(api: &Api, id: &ClusterId, cluster: &Cluster) -> Result<Vec<Problem>, Failure> {
    let Some(azure) = &cluster.azure else { return Ok(Vec::new()) };
    let mut problems = Vec::new();
    for attribute in [Attribute::ManagedResourceGroup, Attribute::Subnet, Attribute::NetworkSecurityGroup] {
        let Some(value) = attribute.of(cluster) else { continue };
        let same = || Expr::is(path(attribute.field()), value);
        let expr = match (&azure.subscription_id, attribute) {
            (Some(subscription), Attribute::ManagedResourceGroup) => {
                same().and(Expr::is(path("azure.subscription_id"), subscription))
            }
            _ => same(),
        };
        // What cannot be searched for was reported already.
        let Ok(condition) = expr.check() else { continue };
        if let Some(other) = other_with(api, id, condition).await? {
            let shown = aro_ocm::shape::shortened(value);
            let reason = format!("'{}' '{shown}' is used by cluster '{other}'", attribute.field());
            problems.push(Problem::new(Code::Duplicate, attribute.field(), reason));
        }
    }
    Ok(problems)
}

fn path(dotted: &str) -> aro_store::Path {
    let names = std::iter::once("cluster").chain(dotted.split('.'));
    aro_store::Path::new(names).unwrap_or(aro_store::Path::member("cluster"))
}

async fn other_with(
    api: &Api,
    id: &ClusterId,
    condition: Condition,
) -> Result<Option<String>, CollectionError> {
    let found = search::run(&api.shared.records, Some(condition), Vec::new(), 0, 2).await?;
    let others = found.documents.iter().map(|document| document.key.partition.as_str());
    Ok(others.filter(|other| *other != id.as_str()).map(str::to_owned).next())
}

/// What a cluster gets that leaves it out.
fn fill_defaults(api: &Api, cluster: &mut Cluster) {
    let catalogue = api.shared.versions.catalogue();
    let id = cluster.version.as_ref().and_then(|version| version.id.clone()).unwrap_or_default();
    let release = if id.is_empty() { catalogue.default_release() } else { catalogue.find(&id) };
    if let Some(release) = release {
        cluster.version = Some(Version {
            id: Some(release.id()),
            raw_id: Some(release.number.to_string()),
            channel_group: Some(release.channel_group.clone()),
            ..Version::default()
        });
        cluster.openshift_version = Some(release.number.to_string());
    }
    cluster.cloud_provider.get_or_insert_with(|| Reference::new("CloudProvider", "azure"));
    cluster.product.get_or_insert_with(|| Reference::new("Product", "aro"));
    cluster.hypershift = Some(Hypershift { enabled: Some(true) });
    cluster.managed = Some(true);
    cluster.multi_az = Some(true);
    cluster.etcd_encryption = Some(true);
    cluster.fips.get_or_insert(false);
    cluster.billing_model.get_or_insert_with(|| "marketplace-azure".to_owned());
    let network = cluster.network.get_or_insert_with(Network::default);
    for (member, default) in [
        (&mut network.r#type, "OVNKubernetes"),
        (&mut network.pod_cidr, "10.128.0.0/14"),
        (&mut network.service_cidr, "172.30.0.0/16"),
        (&mut network.machine_cidr, "10.0.0.0/16"),
    ] {
        if member.as_deref().is_none_or(str::is_empty) {
            *member = Some(default.to_owned());
        }
    }
    network.host_prefix.get_or_insert(23);
    let api = cluster.api.get_or_insert_with(ClusterAPI::default);
    api.listening.get_or_insert(ListeningMethod::External);
    cluster.image_registry.get_or_insert(ClusterImageRegistry { state: Some(Switch::Enabled) });
    cluster
        .node_drain_grace_period
        .get_or_insert_with(|| Value { unit: Some("minutes".to_owned()), value: Some(aro_ocm::Float(0.0)) });
}

fn wanted(cluster: &Cluster) -> Wanted {
    let id =
        |reference: &Option<Reference>| reference.as_ref().and_then(|one| one.id.clone()).unwrap_or_default();
    Wanted {
        region: id(&cluster.region),
        cloud_provider: id(&cluster.cloud_provider),
        pinned: cluster.provision_shard_id.as_deref().and_then(|text| ShardId::parse(text).ok()),
    }
}

fn record(
    api: &Api,
    call: &Call<'_>,
    id: ClusterId,
    mut cluster: Cluster,
    shard: &ShardRecord,
) -> ClusterRecord {
    let given = cluster.domain_prefix.take();
    let named = || names::domain_prefix_of(cluster.name.as_deref().unwrap_or_default());
    let prefix =
        given.or_else(named).unwrap_or_else(|| names::generated_domain_prefix(crate::random::bytes()));
    let base = names::base_domain(crate::random::bytes(), shard.public_zone().unwrap_or("invalid"));
    cluster.id = Some(id.to_string());
    cluster.infra_id = Some(names::infra_id(&prefix, crate::random::bytes()));
    cluster.external_id = Some(uuid::Uuid::new_v4().to_string());
    if let Some(endpoint) = &mut cluster.api {
        endpoint.url = Some(names::api_url(&prefix, &base));
    }
    cluster.console = Some(ClusterConsole { url: Some(names::console_url(&prefix, &base)) });
    cluster.dns = Some(DNS { base_domain: Some(base) });
    cluster.domain_prefix = Some(prefix);
    cluster.provision_shard_id = Some(shard.id.to_string());
    cluster.creation_timestamp = Some(call.now);
    for computed in [&mut cluster.href, &mut cluster.kind] {
        *computed = None;
    }
    (cluster.status, cluster.aro, cluster.health_state) = (None, None, None);
    (cluster.node_pools, cluster.inflight_checks, cluster.external_auth_config) = (None, None, None);
    let mut record = ClusterRecord {
        id,
        cluster,
        generation: 1,
        shard: shard.id,
        management_cluster: shard.shard.management_cluster_name().map(str::to_owned),
        trace: call.trace.clone(),
        deletion: None,
        observed: crate::records::ClusterObserved::default(),
        provisioning: crate::records::Provisioned::default(),
    };
    let noop = api.shared.config.noop && !record.cluster.has_property(property::NOOP_PROVISION);
    if noop {
        let properties = record.cluster.properties.get_or_insert_default();
        for name in [property::NOOP_PROVISION, property::NOOP_DEPROVISION] {
            properties.insert(name.to_owned(), "true".to_owned());
        }
    }
    record.set_state(ClusterState::Validating, "");
    record
}

/// Writes the cluster and its attributes in one batch.
async fn store(api: &Api, record: &ClusterRecord) -> Result<(), Failure> {
    let records = &api.shared.records;
    let broken = |error| Failure::caused("the cluster cannot be stored", error);
    let mut batch = records
        .clusters
        .batch(&cluster_partition(&record.id))
        .with(records.clusters.create(record.names(), record).map_err(broken)?);
    for attribute in AttributeRecord::of(&record.id, &record.cluster) {
        batch.push(records.attributes.create(attribute.names(), &attribute).map_err(broken)?);
    }
    match records.store().write(batch).await {
        Ok(_) => Ok(()),
        Err(StoreError::Conflict { .. }) => {
            give_back(api, record).await?;
            Err(taken(&record.id))
        }
        // The reply may have been lost, and not the write.
        Err(error @ StoreError::Unavailable(_)) => {
            match records.clusters.find(&cluster_key(&record.id)).await {
                Ok(Some(stored)) if stored.value.trace == record.trace => Ok(()),
                _ => Err(Failure::of_creation(error.into())),
            }
        }
        Err(error) => Err(Failure::of_creation(error.into())),
    }
}

/// Releases the slot of a cluster that exists already, unless it is that cluster's own.
async fn give_back(api: &Api, record: &ClusterRecord) -> Result<(), Failure> {
    let stored = api.shared.records.clusters.find(&cluster_key(&record.id)).await?;
    if stored.is_some_and(|stored| stored.value.shard != record.shard) {
        api.shared.placement.release(&record.id, record.shard).await?;
    }
    Ok(())
}
