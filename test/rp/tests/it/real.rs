//! The same life with the real Clusters Service, over a socket. It does no work in the cloud and in Maestro; what the
//! management cluster would report is written into its records.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use aro_clusters_service::records::{ClusterRecord, Records, cluster_key};
use aro_clusters_service::{ClustersService as Role, ClustersServiceConfig, ClustersServicePorts};
use aro_fixtures::wait::until;
use aro_fixtures::{cluster_body, external_auth_body, node_pool_body};
use aro_net::SystemResolve;
use aro_ocm::{ClusterId, Condition, Endpoint, VersionHistoryEntry};
use aro_peers::{ClustersService, ClustersServiceOptions};
use aro_rp_e2e::clusters_service::ScriptedClustersService;
use aro_runtime::{Listener, Metrics, Readiness, Scope, Section as _, SystemClock};
use aro_store::SharedStore;
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use serde_json::json;

use crate::region::{GA, Region, at};

pub struct Real {
    pub region: Region,
    pub client: ClustersService,
    records: Records,
    scope: Scope,
    _directory: tempfile::TempDir,
}

impl Real {
    /// Clusters Service with one active shard, a frontend and a backend.
    pub async fn start() -> Result<(Self, Scope)> {
        let directory = tempfile::tempdir()?;
        let store: SharedStore =
            SqliteStore::open(SqliteOptions::new(directory.path()), SystemClock::shared())?;
        let http =
            Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), "clusters_service.listen").await?;
        let address = http.local_addr().to_string();
        let (scope, readiness) = (Scope::root("clusters-service"), Readiness::new());
        let ports = ClustersServicePorts {
            http,
            store: store.clone(),
            resolve: Arc::new(SystemResolve),
            cloud: None,
            clock: SystemClock::shared(),
            metrics: Metrics::new(),
            readiness: readiness.clone(),
        };
        let config = ClustersServiceConfig { noop: true, ..ClustersServiceConfig::default() };
        aro_runtime::launch::<Role>(&scope, config.check()?, ports)?;
        tokio::time::timeout(Duration::from_secs(10), readiness.differs_from(false)).await?;

        let options = ClustersServiceOptions { address, deadline: Duration::from_secs(5) };
        let client = ClustersService::new(&options, Arc::new(SystemResolve));
        let shard = client.create_shard(&shard()).await?;
        client.set_shard_status(&shard.id.context("no id")?, "active").await?;
        let region = Region::over(ScriptedClustersService::default(), client.clone()).await?;
        let backend = region.backend().await?;
        let records = Records::new(store, &Metrics::new());
        Ok((Self { region, client, records, scope, _directory: directory }, backend))
    }

    /// What the management cluster reports of a control plane that works.
    pub async fn report(&self, id: &ClusterId) -> Result<()> {
        let report = |record: &mut ClusterRecord| {
            let text = |text: &str| Some(text.to_owned());
            record.observed.conditions =
                vec![Condition { r#type: text("Available"), status: text("True"), ..Condition::default() }];
            record.observed.version_history = vec![VersionHistoryEntry {
                version: record.cluster.openshift_version.clone(),
                state: text("Completed"),
                ..VersionHistoryEntry::default()
            }];
            record.observed.endpoint = Some(Endpoint { host: text("api.example.com"), port: Some(443) });
            record.observed.serving_ca = text("-----BEGIN CERTIFICATE-----");
            true
        };
        self.records.clusters.update(&cluster_key(id), report).await?.context("no record")?;
        Ok(())
    }

    /// The Clusters Service id of a cluster, once it is recorded.
    async fn id_of(&self, name: &str) -> Result<ClusterId> {
        until("the cluster to be recorded", || async {
            let cluster = self.region.cluster(name).await?;
            let href = cluster.service.cluster_service_id.as_deref().and_then(|href| href.rsplit('/').next());
            Ok(href.and_then(|id| ClusterId::parse(id).ok()))
        })
        .await
    }

    pub async fn stop(self, backend: Scope) -> Result<()> {
        Region::stop(backend).await?;
        Region::stop(self.scope).await
    }
}

fn shard() -> serde_json::Value {
    let azure = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers";
    json!({
        "kind": "ProvisionShard", "cloud_provider": {"id": "azure"}, "region": {"id": "uksouth"}, "topology": "shared",
        "azure_shard": {
            "aks_management_cluster_resource_id":
                format!("{azure}/Microsoft.ContainerService/managedClusters/dev-uksouth-mgmt-1"),
            "public_dns_zone_resource_id": format!("{azure}/Microsoft.Network/dnszones/uksouth.aroapp-hcp.io"),
            "cx_secrets_key_vault_url": "https://cx-secrets-1.vault.azure.net/",
            "cx_managed_identities_key_vault_url": "https://cx-mi-1.vault.azure.net/",
            "cx_secrets_key_vault_managed_identity_client_id": "00000000-0000-0000-0000-000000000002",
        },
        "maestro_config": {
            "consumer_name": "mgmt-1",
            "rest_api_config": {"url": "http://maestro.maestro.svc.cluster.local:8000"},
            "grpc_api_config": {"url": "maestro-grpc.maestro.svc.cluster.local:8090"},
        },
    })
}

#[tokio::test]
async fn a_cluster_with_children_lives_and_dies_through_the_real_clusters_service() -> Result<()> {
    let (real, backend) = Real::start().await?;
    let region = &real.region;
    let (name, pool, auth) = (
        region.names.cluster("blue"),
        region.names.node_pool("blue", "np-1"),
        region.names.external_auth("blue", "entra"),
    );
    let created = region.put_cluster("blue").await?;
    let id = real.id_of("blue").await?;
    region.state(&name, "Provisioning").await?;
    real.report(&id).await?;
    assert_eq!(region.ended(&created).await?["status"], "Succeeded");
    let body = region.state(&name, "Succeeded").await?;
    assert_eq!(body["properties"]["dns"]["baseDomainPrefix"], "blue");
    let url = body["properties"]["api"]["url"].as_str().context("no API URL")?;
    assert!(url.starts_with("https://api.blue.") && url.ends_with(".uksouth.aroapp-hcp.io:443"), "{url}");

    for (path, body) in [(&pool, node_pool_body(GA)), (&auth, external_auth_body(GA))] {
        region.arm.put(&at(path), &body).await?.expect(201)?;
        region.state(path, "Succeeded").await?;
    }
    for (path, patch) in [
        (
            &name,
            json!({"properties": {"nodeDrainTimeoutMinutes": 30, "api": {"authorizedCidrs": ["203.0.113.0/24"]}}}),
        ),
        (&pool, json!({"properties": {"replicas": 3, "labels": [{"key": "a", "value": "b"}]}})),
        (&pool, json!({"properties": {"labels": []}})),
        (&auth, json!({"properties": {"claim": {"mappings": {"groups": null}}}})),
    ] {
        let accepted = region.arm.patch(&at(path), &patch).await?.expect(202)?;
        let status = region.ended(&accepted).await?;
        assert_eq!(status["status"], "Succeeded", "{path}: {patch}: {status}");
    }
    let stored = real.client.find_cluster(&id).await?.context("no cluster")?;
    assert_eq!(stored.node_drain_grace_period.and_then(|drain| drain.value).map(|value| value.0), Some(30.0));

    let deleted = region.arm.delete(&at(&name)).await?.expect(202)?;
    region.gone(&name).await?;
    assert_eq!(region.ended(&deleted).await?["status"], "Succeeded");
    assert_eq!(real.client.clusters(None).await?, []);
    region.settled().await?;
    until("no document to be left", || async { Ok(region.left().await?.is_empty().then_some(())) }).await?;
    real.stop(backend).await
}

#[tokio::test]
async fn the_real_preflight_refuses_with_targets_and_stores_nothing() -> Result<()> {
    let (real, backend) = Real::start().await?;
    let region = &real.region;
    let mut body = cluster_body(&region.names, "blue", GA);
    body["properties"]["api"]["authorizedCidrs"] = json!(["203.0.113.0/24", "203.0.113.128/25"]);
    let refused = region.arm.put(&at(&region.names.cluster("blue")), &body).await?.expect(400)?;
    assert_eq!(refused.json()["error"]["target"], "properties.api.authorizedCidrs", "{}", refused.json());
    assert_eq!(region.left().await?, Vec::<String>::new());

    let listed = region
        .arm
        .get(&at(&format!(
            "/subscriptions/{}/providers/Microsoft.RedHatOpenShift/locations/uksouth/hcpOpenShiftVersions",
            region.names.subscription
        )))
        .await?
        .expect(200)?;
    let count = listed.json()["value"].as_array().map(Vec::len);
    assert_eq!(count, Some(119), "each release once, whatever channel groups it is in");
    real.stop(backend).await
}

#[tokio::test]
async fn a_region_without_room_is_refused_before_anything_is_stored() -> Result<()> {
    let (real, backend) = Real::start().await?;
    for shard in real.client.shards().await? {
        real.client.set_shard_status(&shard.id.context("no id")?, "offline").await?;
    }
    let body = cluster_body(&real.region.names, "blue", GA);
    let refused = real.region.arm.put(&at(&real.region.names.cluster("blue")), &body).await?.expect(503)?;
    assert_eq!(
        refused.json()["error"]["message"],
        "Capacity is currently restricted, please try again later"
    );
    real.stop(backend).await
}
