//! Node pools and external auths.

use anyhow::Result;
use aro_fixtures::wait::until;
use aro_fixtures::{external_auth_body, node_pool_body};
use aro_rp_e2e::clusters_service::Fault;
use http::Method;
use serde_json::json;

use crate::region::{GA, Region, at};

async fn in_service(region: &Region, path: &str) -> Result<()> {
    until("the object in Clusters Service", || async {
        Ok((!region.cs.objects(path).is_empty()).then_some(()))
    })
    .await
}

#[tokio::test]
async fn a_node_pool_of_a_cluster_that_is_being_made_waits_for_it() -> Result<()> {
    let region = Region::start().await?;
    region.put_cluster("blue").await?;
    let name = region.names.node_pool("blue", "np-1");
    let accepted = region.arm.put(&at(&name), &node_pool_body(GA)).await?.expect(201)?;
    let backend = region.backend().await?;
    let path = region.cluster_in_service("blue").await?;
    let pool = format!("{path}/node_pools/np-1");
    in_service(&region, &pool).await?;
    region.state(&name, "Provisioning").await?;
    region.set_child_state(&pool, "ready");
    assert_eq!(region.ended(&accepted).await?["status"], "Succeeded");
    let body = region.state(&name, "Succeeded").await?;
    assert_eq!(body["properties"]["status"]["conditions"][0]["type"], "RequirementsValid");
    Region::stop(backend).await
}

#[tokio::test]
async fn clearing_the_last_taint_of_a_node_pool_converges() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    let path = region.ready_cluster("blue").await?;
    let name = region.names.node_pool("blue", "np-1");
    let mut body = node_pool_body(GA);
    body["properties"]["taints"] = json!([{"key": "k", "value": "v", "effect": "NoSchedule"}]);
    region.arm.put(&at(&name), &body).await?.expect(201)?;
    let pool = format!("{path}/node_pools/np-1");
    in_service(&region, &pool).await?;
    region.set_child_state(&pool, "ready");
    region.state(&name, "Succeeded").await?;

    let accepted = region.arm.patch(&at(&name), &json!({"properties": {"taints": []}})).await?.expect(202)?;
    region.state(&name, "Updating").await?;
    assert_eq!(region.cs.objects(&pool)[0].1["taints"], json!([]));
    region.set_child_state(&pool, "ready");
    assert_eq!(region.ended(&accepted).await?["status"], "Succeeded");
    region.settled().await?;
    Region::stop(backend).await
}

#[tokio::test]
async fn a_node_pool_that_is_refused_fails_with_the_reason() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    region.ready_cluster("blue").await?;
    let reason = "The subnet 'nodes' has no address left";
    region.cs.fault(Method::POST, "/node_pools", [Fault::Refuse(400, reason.to_owned())]);
    let name = region.names.node_pool("blue", "np-1");
    let accepted = region.arm.put(&at(&name), &node_pool_body(GA)).await?.expect(201)?;
    let status = region.ended(&accepted).await?;
    assert_eq!(
        (&status["error"]["code"], &status["error"]["message"]),
        (&json!("InvalidRequestContent"), &json!(reason))
    );
    region.state(&name, "Failed").await?;
    region.settled().await?;
    Region::stop(backend).await
}

#[tokio::test]
async fn a_change_that_the_state_forbids_is_repeated_until_it_is_taken() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    let path = region.ready_cluster("blue").await?;
    let name = region.names.external_auth("blue", "entra");
    let phrase = "console clients cannot be configured without a ready node pool. Please ensure at least one node pool is in 'ready' state before configuring console authentication";
    region.cs.fault(Method::POST, "/external_auths", [Fault::Refuse(400, phrase.to_owned())]);
    let accepted = region.arm.put(&at(&name), &external_auth_body(GA)).await?.expect(201)?;
    in_service(&region, &format!("{path}/external_auth_config/external_auths/entra")).await?;
    assert_eq!(region.ended(&accepted).await?["status"], "Succeeded");
    Region::stop(backend).await
}

#[tokio::test]
async fn a_node_pool_is_deleted_alone() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    let path = region.ready_cluster("blue").await?;
    for pool in ["np-1", "np-2"] {
        let name = region.names.node_pool("blue", pool);
        region.arm.put(&at(&name), &node_pool_body(GA)).await?.expect(201)?;
        in_service(&region, &format!("{path}/node_pools/{pool}")).await?;
        region.set_child_state(&format!("{path}/node_pools/{pool}"), "ready");
        region.state(&name, "Succeeded").await?;
    }
    let name = region.names.node_pool("blue", "np-1");
    let accepted = region.arm.delete(&at(&name)).await?.expect(202)?;
    let pool = format!("{path}/node_pools/np-1");
    until("the deletion to be dispatched", || async {
        Ok((region.cs.objects(&pool)[0].1["status"]["state"]["value"] == "uninstalling").then_some(()))
    })
    .await?;
    region.cs.remove(&pool);
    region.gone(&name).await?;
    assert_eq!(region.ended(&accepted).await?["status"], "Succeeded");
    region.state(&region.names.node_pool("blue", "np-2"), "Succeeded").await?;
    region.settled().await?;
    Region::stop(backend).await
}

#[tokio::test]
async fn children_of_a_cluster_that_could_not_be_created_fail_with_it() -> Result<()> {
    let region = Region::start().await?;
    region.put_cluster("blue").await?;
    let name = region.names.node_pool("blue", "np-1");
    let accepted = region.arm.put(&at(&name), &node_pool_body(GA)).await?.expect(201)?;
    region.cs.fault(Method::POST, "/clusters", [Fault::Refuse(400, "no".to_owned())]);
    let backend = region.backend().await?;
    let status = region.ended(&accepted).await?;
    assert_eq!(status["error"]["message"], "The cluster could not be created");
    Region::stop(backend).await
}
