//! Clusters Service's pipelines against the local cloud and a Maestro that only remembers bundles: what they make, and that
//! nothing of it is left.

mod customer;
mod maestro;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aro_azure_local::{AzureLocalConfig, FirstPartyAccount, ServiceAccount};
use aro_base::Secret;
use aro_cloud::{Cloud, Proof, SharedCredential};
use aro_cloud_e2e::Site;
use aro_clusters_service::records::{
    ClusterRecord, Record as _, Records, SHARDS, ShardRecord, TraceContext, cluster_key, cluster_partition,
};
use aro_clusters_service::{ClustersService, ClustersServiceConfig, ClustersServicePorts};
use aro_fixtures::wait;
use aro_net::SystemResolve;
use aro_ocm::{ClusterId, ClusterState, ShardId};
use aro_region_layout::{Clients, RegionConfig, RegionLayout, apply, plan};
use aro_role::{CloudAccess, FirstParty};
use aro_runtime::{Listener, Metrics, Period, Readiness, Scope, Section as _, SystemClock, launch};
use aro_store::PartitionKey;
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use customer::Customer;
use maestro::BundleKeeper;

/// A region in the local cloud, with Clusters Service in it.
struct Region {
    site: Site,
    layout: Arc<RegionLayout>,
    service_arm: aro_cloud::ArmClient,
    customer: Customer,
    maestro: Arc<BundleKeeper>,
    records: Records,
    shard: ShardId,
    scope: Scope,
    store: Arc<SqliteStore>,
    _directory: TempDir,
}

fn settings(layout: &RegionLayout, provider: std::net::SocketAddr) -> AzureLocalConfig {
    AzureLocalConfig {
        service_subscriptions: layout
            .subscriptions()
            .iter()
            .map(|(name, id)| format!("{name}={id}"))
            .collect(),
        resource_providers: vec![format!("Microsoft.RedHatOpenShift=http://{provider}")],
        ..AzureLocalConfig::default()
    }
}

impl Region {
    async fn start(step_deadline: Period) -> Result<Self> {
        let tenant: Uuid = AzureLocalConfig::default().service_tenant.parse()?;
        let layout = RegionLayout::new(RegionConfig::default().params(tenant, vec!["1".to_owned()]));
        let scope = Scope::root("region");
        let provider = customer::Provider::start(&scope).await?;
        let site = Site::start_with(settings(&layout, provider.address)).await?;
        let transport = site.transport()?;
        let cloud = site.cloud(transport)?;
        let service = ServiceAccount::read(&site.files())?;
        let credential: SharedCredential = cloud.client_secret(
            &service.tenant_id.to_string(),
            &service.client_id.to_string(),
            Secret::new(service.client_secret),
        );
        let clients = Clients { cloud: cloud.clone(), credential: credential.clone() };
        apply(&plan(&layout), &clients).await?;
        let layout = Arc::new(layout);
        let directory = tempfile::tempdir()?;
        let store = SqliteStore::open(SqliteOptions::new(directory.path()), SystemClock::shared())?;
        let (maestro, address) = BundleKeeper::start(&scope).await?;
        let access = cloud_access(&cloud, &credential, &site, &layout)?;
        let config = ClustersServiceConfig {
            maestro_grpc: address.to_string(),
            step_deadline,
            check_deadline: step_deadline,
            ..ClustersServiceConfig::default()
        };
        let metrics = Metrics::new();
        let ports = ClustersServicePorts {
            http: Listener::bind(([127, 0, 0, 1], 0).into(), "clusters_service.listen").await?,
            store: store.clone(),
            resolve: Arc::new(SystemResolve),
            cloud: Some(access),
            clock: SystemClock::shared(),
            metrics: Metrics::new(),
            readiness: Readiness::new(),
        };
        launch::<ClustersService>(&scope, config.check()?, ports)?;
        let records = Records::new(store.clone(), &metrics);
        let customer = Customer::new(&site, &cloud, provider);
        let service_arm = cloud.arm(credential);
        let shard = ShardId::new(Uuid::new_v4());
        let region = Self {
            site,
            layout,
            service_arm,
            customer,
            maestro,
            records,
            shard,
            scope,
            store,
            _directory: directory,
        };
        region.register_shard().await?;
        Ok(region)
    }

    async fn register_shard(&self) -> Result<()> {
        let (management, zone) = (&self.layout.management[0], &self.layout.regional.cluster_zone);
        let vault = |vault: &aro_arm::ResourceId| format!("https://{}.vault.azure.net/", vault.name());
        let shard = json!({
            "status": "active",
            "azure_shard": {
                "aks_management_cluster_resource_id": management.cluster,
                "public_dns_zone_resource_id": zone,
                "cx_secrets_key_vault_url": vault(&management.vaults.clusters),
                "cx_managed_identities_key_vault_url": vault(&management.vaults.identities),
                "cx_secrets_key_vault_managed_identity_client_id": "reader",
            },
            "maestro_config": {"consumer_name": "mgmt-1"},
        });
        let shard = ShardRecord {
            id: self.shard,
            shard: serde_json::from_value(shard)?,
            capacity: None,
            trace: TraceContext::default(),
        };
        let op = self.records.shards.create(shard.names(), &shard)?;
        let batch = self.records.shards.batch(&PartitionKey::new(SHARDS)).with(op);
        self.records.store().write(batch).await?;
        Ok(())
    }

    /// Stores a cluster as the API does.
    async fn create(&self, cluster: Value) -> Result<ClusterId> {
        let id = ClusterId::mint(SystemClock::shared().now(), *Uuid::new_v4().as_bytes());
        let mut record: ClusterRecord = serde_json::from_value(json!({
            "id": id, "cluster": cluster, "generation": 1, "shard": self.shard,
        }))?;
        record.set_state(ClusterState::Validating, "");
        let op = self.records.clusters.create(record.names(), &record)?;
        self.records.store().write(self.records.clusters.batch(&cluster_partition(&id)).with(op)).await?;
        Ok(id)
    }

    async fn delete(&self, id: &ClusterId) -> Result<()> {
        let requested: Value = json!({"requested": "2026-01-01T00:00:00Z"});
        let deletion = serde_json::from_value(requested)?;
        let change = |record: &mut ClusterRecord| {
            record.deletion = Some(std::clone::Clone::clone(&deletion));
            record.set_state(ClusterState::Uninstalling, "");
            true
        };
        self.records.clusters.update(&cluster_key(id), change).await?.context("the cluster is stored")?;
        Ok(())
    }

    async fn find(&self, id: &ClusterId) -> Result<Option<ClusterRecord>> {
        Ok(self.records.clusters.find(&cluster_key(id)).await?.map(|found| found.value))
    }

    async fn state(&self, id: &ClusterId, wanted: ClusterState) -> Result<ClusterRecord> {
        wait::until(&format!("the cluster is {wanted}"), || async {
            let record = self.find(id).await?.context("the cluster is stored")?;
            let error =
                record.cluster.status.as_ref().and_then(|status| status.provision_error_message.clone());
            ensure!(wanted == ClusterState::Error || error.is_none(), "creation failed: {error:?}");
            Ok((record.state() == wanted).then_some(record))
        })
        .await
    }

    async fn gone(&self, id: &ClusterId) -> Result<()> {
        wait::until("the cluster is gone", || async { Ok(self.find(id).await?.is_none().then_some(())) })
            .await
    }

    async fn stop(self) -> Result<()> {
        let closed = self.scope.close(Duration::from_secs(30)).await;
        ensure!(closed.is_ok(), "Clusters Service does not stop: {closed:?}");
        self.store.close();
        self.site.stop().await
    }
}

fn cloud_access(
    cloud: &Cloud,
    credential: &SharedCredential,
    site: &Site,
    layout: &Arc<RegionLayout>,
) -> Result<CloudAccess> {
    let first_party = FirstPartyAccount::read(&site.files())?;
    let proof = Proof::Secret(Secret::new(first_party.client_secret));
    Ok(CloudAccess {
        cloud: cloud.clone(),
        service: credential.clone(),
        first_party: FirstParty::new(cloud.clone(), first_party.client_id.to_string(), proof),
        layout: layout.clone(),
        check_access: format!("https://{}.authorization.azure.net", layout.params.location).parse()?,
        identity_audience: FirstPartyAccount::IDENTITY_AUDIENCE.to_owned(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_made_becomes_ready_and_leaves_nothing() -> Result<()> {
    let region = Region::start(Period::secs(30)).await?;
    let cluster = region.customer.prepare("c1", &region.layout).await?;
    let id = region.create(cluster.body.clone()).await?;
    region.state(&id, ClusterState::Installing).await?;

    // The managed group, its resources, and the names.
    let subscription = region.site.subscription();
    let arm = &region.customer.arm;
    let types: Vec<String> = arm
        .list_resources(&subscription, "arohcp-c1")
        .await?
        .into_iter()
        .map(|resource| resource.resource_type.to_lowercase())
        .collect();
    for wanted in ["loadbalancers", "publicipaddresses", "dnszones", "networksecuritygroups"] {
        ensure!(types.contains(&format!("microsoft.network/{wanted}")), "{wanted} in {types:?}");
    }
    let zone = &region.layout.regional.cluster_zone;
    let record = |kind: &'static str, name: &str| zone.child(kind, name);
    let api: Value = region.service_arm.get(&record("A", "api.c1.0ulz"), "2018-05-01").await?;
    ensure!(api["properties"]["ARecords"][0]["ipv4Address"].is_string(), "{api}");
    let delegation: Value = region.service_arm.get(&record("NS", "aro.c1.0ulz"), "2018-05-01").await?;
    ensure!(delegation["properties"]["NSRecords"][0]["nsdname"].is_string(), "{delegation}");
    let credentials = arm.list_federated_credentials(&cluster.identity("dp-disk-csi-driver")).await?;
    ensure!(credentials.len() == 2, "{credentials:?}");
    ensure!(region.maestro.ids().len() == 3, "{:?}", region.maestro.ids());
    let made = region.find(&id).await?.context("the cluster is stored")?;
    let azure = made.cluster.azure.context("azure")?;
    let identities =
        azure.identities().context("identities")?.control_plane_operators_managed_identities.clone();
    let client_id = identities.context("operators")?["ingress"].client_id.clone();
    ensure!(client_id.is_some_and(|id| id.parse::<Uuid>().is_ok()), "the identity is resolved");

    // The management cluster reports, also what it reported while the subscription was down.
    region.maestro.report(id.as_str(), maestro::installed("1"))?;
    region.state(&id, ClusterState::Ready).await?;

    region.delete(&id).await?;
    region.gone(&id).await?;
    ensure!(region.maestro.ids().is_empty());
    ensure!(arm.find_resource_group(&subscription, "arohcp-c1").await?.is_none());
    for (kind, name) in [("A", "api.c1.0ulz"), ("A", "oauth.c1.0ulz"), ("NS", "aro.c1.0ulz")] {
        let found: Option<Value> = region.service_arm.find(&record(kind, name), "2018-05-01").await?;
        ensure!(found.is_none(), "{kind} {name} is left");
    }
    let credentials = arm.list_federated_credentials(&cluster.identity("dp-disk-csi-driver")).await?;
    ensure!(credentials.is_empty(), "{credentials:?}");
    region.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_name_the_resource_and_the_cause_within_the_step_deadline() -> Result<()> {
    let region = Region::start(Period::secs(3)).await?;
    let mut missing = region.customer.prepare("c2", &region.layout).await?;
    let subnet =
        format!("{}-missing", missing.body["azure"]["subnet_resource_id"].as_str().context("subnet")?);
    missing.body["azure"]["subnet_resource_id"] = json!(subnet);
    let id = region.create(missing.body.clone()).await?;
    let began = tokio::time::Instant::now();
    let record = region.state(&id, ClusterState::Error).await?;
    let status = record.cluster.status.context("a status")?;
    ensure!(status.provision_error_code.as_deref() == Some("OCM4001"), "{status:?}");
    let message = status.provision_error_message.unwrap_or_default();
    ensure!(message.contains(&format!("subnet not found: {subnet}")), "{message}");

    let unassigned = region.customer.prepare_without_roles("c3", &region.layout, "cp-ingress").await?;
    let id = region.create(unassigned.body.clone()).await?;
    let record = region.state(&id, ClusterState::Error).await?;
    ensure!(began.elapsed() < Duration::from_secs(13), "{:?}", began.elapsed());
    let message = record.cluster.status.and_then(|status| status.provision_error_message).unwrap_or_default();
    ensure!(message.contains("identity of ingress") && message.contains("subnets/join/action"), "{message}");

    // What is deleted although nothing was made is simply gone.
    region.delete(&id).await?;
    region.gone(&id).await?;
    region.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_succeeds_although_the_customer_removed_everything() -> Result<()> {
    let region = Region::start(Period::secs(30)).await?;
    let cluster = region.customer.prepare("c4", &region.layout).await?;
    let id = region.create(cluster.body.clone()).await?;
    region.state(&id, ClusterState::Installing).await?;
    let (arm, subscription) = (&region.customer.arm, region.site.subscription());
    for group in ["arohcp-c4", "infra-c4", "clusters-c4"] {
        arm.delete_resource_group(&subscription, group).await?;
    }
    region.delete(&id).await?;
    region.gone(&id).await?;
    ensure!(region.maestro.ids().is_empty());
    region.stop().await
}
