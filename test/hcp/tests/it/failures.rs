//! Creations that cannot succeed end soon, with a message that names the resource and the cause, and `aro why` shows where.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aro_arm::ResourceId;
use aro_cloud::Precondition;
use aro_hcp_e2e::{Cluster, Customer, HcpRegion};
use serde_json::json;
use tokio::time::Instant;

use crate::flow::VERSION;

/// Deadlines short enough to wait for.
const SHORT: [(&str, &str); 2] =
    [("clusters_service.step_deadline", "5s"), ("clusters_service.check_deadline", "5s")];
/// From the PUT to the failed operation: ten seconds, and as much again where other tests share the machine.
const WITHIN: Duration = Duration::from_secs(20);

/// Puts a cluster that fails, and returns the message of its operation.
async fn failure(region: &HcpRegion, customer: &Customer, cluster: &Cluster) -> Result<String> {
    let began = Instant::now();
    let arm = customer.arm.with_operation_deadline(Duration::from_mins(1));
    let made = arm.put(&cluster.id, VERSION, &cluster.body, &Precondition::None).await;
    let took = began.elapsed();
    let error = made.err().context("the creation fails")?;
    let service = error.service_error().context("ARM reports why")?;
    let message = format!("{service:?}");
    ensure!(took < WITHIN, "{took:?}: {message}");
    let why = region.process().second(&format!("why {}", cluster.id))?;
    let why = String::from_utf8_lossy(&why.stdout).into_owned();
    ensure!(why.contains("failed: "), "{why}");
    Ok(message)
}

fn fault(region: &HcpRegion, rule: &str) -> Result<()> {
    let output = region.process().second(&format!("cloud faults add {rule}"))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_subnet_fails_the_creation_and_names_the_subnet() -> Result<()> {
    let region = HcpRegion::start(&SHORT).await?;
    let customer = region.customer().await?;
    let mut cluster = customer.prepare("nosubnet").await?;
    let subnet = format!("{}/subnets/absent", cluster.vnet()?);
    cluster.body["properties"]["platform"]["subnetId"] = json!(subnet);
    let message = failure(&region, &customer, &cluster).await?;
    ensure!(message.to_lowercase().contains("/subnets/absent"), "{message}");
    // It can be deleted.
    customer.arm.delete(&cluster.id, VERSION).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_without_its_role_fails_the_creation_and_names_the_identity() -> Result<()> {
    let region = HcpRegion::start(&SHORT).await?;
    let customer = region.customer().await?;
    let cluster = customer.prepare("norole").await?;
    let identity = customer.arm.find_identity(&cluster.identity("cp-control-plane")?).await?;
    let principal = identity.context("the identity is there")?.properties.principal_id;
    let group = ResourceId::parse(&format!("/subscriptions/{}/resourceGroups/infra", customer.subscription));
    let group = group.map_err(anyhow::Error::msg)?;
    let mut removed = 0;
    for scope in [cluster.vnet()?, cluster.nsg()?, group] {
        for assignment in customer.arm.list_role_assignments(&scope, &principal).await? {
            let id = ResourceId::parse(assignment.id.as_str()).map_err(anyhow::Error::msg)?;
            customer.arm.delete(&id, aro_cloud::api_version::AUTHORIZATION).await?;
            removed += 1;
        }
    }
    ensure!(removed > 0, "the identity had roles");
    let message = failure(&region, &customer, &cluster).await?;
    ensure!(message.contains("control-plane"), "{message}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_quota_fails_the_creation_and_names_what_there_is_too_much_of() -> Result<()> {
    let region = HcpRegion::start(&SHORT).await?;
    let customer = region.customer().await?;
    let cluster = customer.prepare("noquota").await?;
    fault(&region, "quota-exhausted --operation write --type Microsoft.Network/publicIPAddresses")?;
    let message = failure(&region, &customer, &cluster).await?;
    ensure!(
        message.to_lowercase().contains("quota") || message.to_lowercase().contains("limit"),
        "{message}"
    );
    ensure!(message.to_lowercase().contains("publicipaddresses"), "{message}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_that_throttles_everything_fails_the_creation_by_its_deadline() -> Result<()> {
    let region = HcpRegion::start(&SHORT).await?;
    let customer = region.customer().await?;
    let cluster = customer.prepare("storm").await?;
    fault(&region, "throttle --delay 30s --operation write --type Microsoft.Network/loadBalancers")?;
    let message = failure(&region, &customer, &cluster).await?;
    // The subscription is throttled, so that the first call after it is named.
    ensure!(
        message.contains("throttled") && message.to_lowercase().contains("microsoft.network/"),
        "{message}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_region_without_capacity_and_an_unknown_version_are_refused_before_anything_is_stored() -> Result<()>
{
    let region = HcpRegion::start(&SHORT).await?;
    let customer = region.customer().await?;
    let mut cluster = customer.prepare("refused").await?;
    cluster.body["properties"]["version"]["id"] = json!("4.99");
    let refused = customer.arm.put(&cluster.id, VERSION, &cluster.body, &Precondition::None).await;
    let refused = refused.err().context("an unknown version is refused")?;
    ensure!(refused.status().is_some_and(|status| status.as_u16() == 400), "{refused}");

    cluster.body["properties"]["version"]["id"] = json!("4.22");
    let clusters_service = region.http("clusters-service")?;
    let shards = clusters_service.get("/api/aro_hcp/v1alpha1/provision_shards").await?.expect(200)?.json();
    let href = shards["items"][0]["href"].as_str().context("the region has a shard")?.to_owned();
    clusters_service
        .patch(&href, &json!({"kind": "ProvisionShard", "status": "maintenance"}))
        .await?
        .expect(200)?;
    // Without ARM, which would repeat the request for as long as it may.
    let arm = region.arm()?;
    let path = format!("{}?api-version={VERSION}", cluster.id);
    let reply = arm.put(&path, &cluster.body).await?;
    ensure!(reply.status.as_u16() == 503 && reply.header("retry-after").is_some(), "{reply:?}");
    arm.get(&path).await?.expect(404)?;
    Ok(())
}
