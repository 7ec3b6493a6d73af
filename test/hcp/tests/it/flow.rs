//! From a PUT to a hosted cluster on a management cluster, the status back, changes, and deletion.

use anyhow::{Context, Result, ensure};
use aro_cloud::Precondition;
use aro_crds::hypershift::v1beta1::{HostedCluster, NodePool};
use aro_crds::work::v1::ManifestWork;
use aro_fixtures::wait;
use aro_hcp_e2e::{Cluster, Customer, HcpRegion, Inventory};
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

/// The api-version of these tests.
pub const VERSION: &str = "2026-10-01";

/// The record of a cluster in Clusters Service.
pub async fn record(region: &HcpRegion, cluster: &Cluster) -> Result<Option<Value>> {
    let search = format!(
        "azure.subscription_id='{}' and azure.resource_name='{}'",
        cluster.id.subscription().unwrap_or_default(),
        cluster.id.name()
    );
    let query = search.replace(' ', "%20").replace('\'', "%27").replace('=', "%3D");
    let path = format!("/api/clusters_mgmt/v1/clusters?search={query}");
    let listed = region.http("clusters-service")?.get(&path).await?.expect(200)?.json();
    Ok(listed["items"].as_array().and_then(|items| items.first().cloned()))
}

pub async fn hosted_clusters(region: &HcpRegion) -> Result<Vec<HostedCluster>> {
    let api: Api<HostedCluster> = Api::all(region.kube("mgmt-1").await?);
    Ok(api.list(&ListParams::default()).await?.items)
}

/// The hosted cluster of a record, once it is on the management cluster.
async fn hosted_cluster(region: &HcpRegion, id: &str) -> Result<HostedCluster> {
    wait::until("the hosted cluster on the management cluster", || async {
        let all = hosted_clusters(region).await?;
        Ok(all.into_iter().find(|cluster| cluster.namespace().is_some_and(|name| name.ends_with(id))))
    })
    .await
}

async fn put(customer: &Customer, cluster: &Cluster, body: &Value) -> Result<Value> {
    Ok(customer.arm.put(&cluster.id, VERSION, body, &Precondition::None).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_lands_as_a_hosted_cluster_and_a_delete_leaves_nothing() -> Result<()> {
    let region = HcpRegion::start(&[]).await?;
    let customer = region.customer().await?;
    let cluster = customer.prepare("demo").await?;
    let before = Inventory::of(&region).await?;

    region.hypershift().hold(true);
    let watch = async {
        let record = wait::until("the record in Clusters Service", || record(&region, &cluster)).await?;
        let id = record["id"].as_str().context("a record has an id")?.to_owned();
        let hosted = hosted_cluster(&region, &id).await?;
        while_provisioning(&region, &cluster, &id, &hosted).await?;
        region.hypershift().hold(false);
        anyhow::Ok(id)
    };
    let (made, id) = futures::future::try_join(put(&customer, &cluster, &cluster.body), watch).await?;
    ensure!(made["properties"]["provisioningState"] == "Succeeded", "{made}");
    let api = made["properties"]["api"]["url"].as_str().context("a ready cluster has an API")?;
    let domain = made["properties"]["dns"]["baseDomain"].as_str().context("and a domain")?;
    ensure!(api.starts_with("https://api.demo.") && api.ends_with(&format!(".{domain}:443")), "{api}");
    ensure!(made["properties"]["platform"]["issuerUrl"].as_str().is_some_and(|url| url.ends_with(&id)));

    node_pool(&region, &customer, &cluster).await?;
    update(&region, &customer, &cluster, &made).await?;

    customer.arm.delete(&cluster.id, VERSION).await?;
    let gone = customer.arm.find::<Value>(&cluster.id, VERSION).await?;
    ensure!(gone.is_none(), "{gone:?}");
    let after = wait::until("everything to be gone", || async {
        let now = Inventory::of(&region).await?;
        Ok((now == before).then_some(()))
    })
    .await;
    if after.is_err() {
        let now = Inventory::of(&region).await?;
        anyhow::bail!("left: {:#?}\nmissing: {:#?}", now.beyond(&before), now.lacks(&before));
    }
    Ok(())
}

/// What can be seen while the control plane comes up: the operation is honest, and every object is where the guide says.
async fn while_provisioning(
    region: &HcpRegion,
    cluster: &Cluster,
    id: &str,
    hosted: &HostedCluster,
) -> Result<()> {
    ensure!(hosted.name_any() == "demo", "{}", hosted.name_any());
    ensure!(hosted.labels().get("api.openshift.com/id").map(String::as_str) == Some(id));
    let namespace = hosted.namespace().unwrap_or_default();
    let mgmt_kube = region.kube("mgmt-1").await?;
    let secrets: Api<Secret> = Api::namespaced(mgmt_kube.clone(), &namespace);
    let pull_secret = hosted.spec.pull_secret.name.clone();
    ensure!(secrets.get_opt(&pull_secret).await?.is_some(), "{namespace} has the pull secret {pull_secret}");
    let works: Api<ManifestWork> = Api::namespaced(mgmt_kube.clone(), "local-cluster");
    let of_cluster = ListParams::default().labels(&format!("api.openshift.com/id={id}"));
    ensure!(works.list(&of_cluster).await?.items.len() >= 2);
    let search =
        format!("payload-%3E%27metadata%27-%3E%27labels%27-%3E%3E%27api.openshift.com%2Fid%27%3D%27{id}%27");
    let maestro = region.http("maestro")?;
    let bundles = maestro.get(&format!("/api/maestro/v1/resource-bundles?search={search}")).await?;
    ensure!(bundles.expect(200)?.json()["total"].as_u64() >= Some(3));
    let clusters_service = region.http("clusters-service")?;
    let shard =
        clusters_service.get(&format!("//api/aro_hcp/v1alpha1/clusters/{id}/provision_shard")).await?;
    let shard = shard.expect(200)?.json();
    let vault = shard["azure_shard"]["cx_managed_identities_key_vault_url"].as_str().unwrap_or_default();
    ensure!(vault.ends_with("-1.vault.azure.net/"), "{shard}");
    let shown =
        region.arm()?.get(&format!("{}?api-version={VERSION}", cluster.id)).await?.expect(200)?.json();
    ensure!(shown["properties"]["provisioningState"] == "Provisioning", "{shown}");
    let why = region.process().second(&format!("why {}", cluster.id))?;
    let why = String::from_utf8_lossy(&why.stdout).into_owned();
    ensure!(why.contains("clusters-service") && why.contains("not finished"), "{why}");
    Ok(())
}

/// A pool is made, scaled and deleted.
async fn node_pool(region: &HcpRegion, customer: &Customer, cluster: &Cluster) -> Result<()> {
    let pool =
        aro_arm::ResourceId::parse(&format!("{}/nodePools/np1", cluster.id)).map_err(anyhow::Error::msg)?;
    let mut body = json!({
        "location": "westus3",
        "properties": {
            "version": {"channelGroup": "stable", "id": "4.22.0"},
            "platform": {"vmSize": "Standard_D8s_v3", "osDisk": {"sizeGiB": 64, "diskStorageAccountType": "Premium_LRS"}},
            "replicas": 2, "autoRepair": true,
        },
    });
    let release = customer.arm.get::<Value>(&cluster.id, VERSION).await?;
    if let Some(version) =
        release.pointer("/properties/status/activeVersions/0/version").and_then(Value::as_str)
    {
        ensure!(version.starts_with("4.22"), "{release}");
    }
    let made = customer.arm.put(&pool, VERSION, &body, &Precondition::None).await?;
    ensure!(made["properties"]["provisioningState"] == "Succeeded", "{made}");
    body["properties"]["replicas"] = json!(5);
    customer.arm.put(&pool, VERSION, &body, &Precondition::None).await?;
    let api: Api<NodePool> = Api::all(region.kube("mgmt-1").await?);
    let scaled = api.list(&ListParams::default()).await?.items;
    ensure!(scaled.iter().any(|pool| pool.spec.replicas == Some(5)), "{scaled:?}");
    let other =
        aro_arm::ResourceId::parse(&format!("{}/nodePools/np2", cluster.id)).map_err(anyhow::Error::msg)?;
    customer.arm.put(&other, VERSION, &body, &Precondition::None).await?;
    // A cluster keeps its last pool.
    customer.arm.delete(&pool, VERSION).await?;
    ensure!(api.list(&ListParams::default()).await?.items.len() == 1);
    Ok(())
}

/// A change reaches the hosted cluster before its operation succeeds.
async fn update(region: &HcpRegion, customer: &Customer, cluster: &Cluster, made: &Value) -> Result<()> {
    let mut body = cluster.body.clone();
    body["properties"]["dns"] = json!({"baseDomainPrefix": made["properties"]["dns"]["baseDomainPrefix"]});
    body["properties"]["api"] = json!({"visibility": "Public", "authorizedCidrs": ["203.0.113.0/24"]});
    let changed = put(customer, cluster, &body).await?;
    ensure!(changed["properties"]["provisioningState"] == "Succeeded", "{changed}");
    let hosted = hosted_clusters(region).await?;
    let allowed = hosted.first().and_then(|one| one.spec.networking.api_server.clone());
    let allowed = allowed.unwrap_or_default().allowed_cidr_blocks;
    ensure!(allowed.contains(&"203.0.113.0/24".to_owned()), "{allowed:?}");
    Ok(())
}
