//! Deletions: dispatched at once, complete when nothing is left, never undone by a create that is under way.

use std::time::Duration;

use anyhow::Result;
use aro_fixtures::wait::until;
use aro_fixtures::{external_auth_body, node_pool_body};
use aro_rp_e2e::clusters_service::Fault;
use http::Method;
use serde_json::json;

use crate::region::{GA, Region, at};

#[tokio::test]
async fn deletion_takes_children_along_and_leaves_no_document() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    let path = region.ready_cluster("blue").await?;
    for (name, body) in [
        (region.names.node_pool("blue", "np-1"), node_pool_body(GA)),
        (region.names.external_auth("blue", "entra"), external_auth_body(GA)),
    ] {
        region.arm.put(&at(&name), &body).await?.expect(201)?;
    }
    let pool = format!("{path}/node_pools/np-1");
    until("the pool in Clusters Service", || async {
        Ok((!region.cs.objects(&pool).is_empty()).then_some(()))
    })
    .await?;
    region.set_child_state(&pool, "ready");
    region.state(&region.names.node_pool("blue", "np-1"), "Succeeded").await?;
    region.state(&region.names.external_auth("blue", "entra"), "Succeeded").await?;

    let name = region.names.cluster("blue");
    let accepted = region.arm.delete(&at(&name)).await?.expect(202)?;
    until("the deletion to be dispatched", || async {
        Ok((region.cs.objects(&path)[0].1["state"] == "uninstalling").then_some(()))
    })
    .await?;
    assert_eq!(region.arm.get(&at(&name)).await?.json()["properties"]["provisioningState"], "Deleting");
    region.cs.remove(&path);
    region.gone(&name).await?;
    assert_eq!(region.ended(&accepted).await?["status"], "Succeeded");
    region.settled().await?;
    until("no document to be left", || async { Ok(region.left().await?.is_empty().then_some(())) }).await?;
    assert_eq!(region.left().await?, Vec::<String>::new(), "claims go, too");
    Region::stop(backend).await
}

#[tokio::test]
async fn a_cluster_can_be_made_again_right_after_its_deletion() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    let first = region.ready_cluster("blue").await?;
    let name = region.names.cluster("blue");
    region.arm.delete(&at(&name)).await?.expect(202)?;
    until("the deletion to be dispatched", || async {
        Ok((region.cs.objects(&first)[0].1["state"] == "uninstalling").then_some(()))
    })
    .await?;
    region.cs.remove(&first);
    region.gone(&name).await?;
    let second = region.ready_cluster("blue").await?;
    assert_ne!(first, second);
    Region::stop(backend).await
}

#[tokio::test]
async fn a_create_still_in_flight_cannot_resurrect_a_deleted_cluster() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    // The create is on its way when its sender gives up; the cluster is deleted meanwhile.
    region.delay_creates();
    let name = region.names.cluster("blue");
    region.put_cluster("blue").await?;
    until("the create to be sent", || async {
        Ok((region.cs.count(&Method::POST, "/clusters") >= 2).then_some(()))
    })
    .await?;
    let accepted = region.arm.delete(&at(&name)).await?.expect(202)?;
    until("the deletion to look", || async {
        let cluster = region.cluster("blue").await?;
        Ok(cluster.service.deletion_timestamp.map(drop))
    })
    .await?;

    // Now it arrives. Its event shows it, and it is deleted.
    region.cs.release_delayed();
    let path = region.cluster_in_service("blue").await?;
    until("the late cluster to be deleted", || async {
        Ok((region.cs.objects(&path)[0].1["state"] == "uninstalling").then_some(()))
    })
    .await?;
    assert_eq!(region.arm.get(&at(&name)).await?.status, 200, "the resource waits for its cluster");
    region.cs.remove(&path);
    region.gone(&name).await?;
    assert_eq!(region.ended(&accepted).await?["status"], "Succeeded");
    Region::stop(backend).await
}

#[tokio::test]
async fn a_cluster_that_was_never_asked_for_is_gone_at_once() -> Result<()> {
    let region = Region::start().await?;
    region.put_cluster("blue").await?;
    let accepted = region.arm.delete(&at(&region.names.cluster("blue"))).await?.expect(202)?;
    let backend = region.backend().await?;
    region.gone(&region.names.cluster("blue")).await?;
    assert_eq!(region.ended(&accepted).await?["status"], "Succeeded");
    region.settled().await?;
    assert_eq!(region.cs.count(&Method::POST, "/clusters"), 1, "the dry run only");
    Region::stop(backend).await
}

#[tokio::test]
async fn deletion_whose_time_is_over_fails_its_operation_and_still_completes() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    let path = region.ready_cluster("blue").await?;
    let name = region.names.cluster("blue");
    let accepted = region.arm.delete(&at(&name)).await?.expect(202)?;
    region.state(&name, "Deleting").await?;
    region.advance(Duration::from_hours(13))?;
    region.cs.change(&path, |cluster| {
        cluster["state"] = json!("uninstalling");
        cluster["status"] =
            json!({"state": "uninstalling", "description": "managed resource group is locked"});
    });
    let status = region.ended(&accepted).await?;
    let message = status["error"]["message"].as_str().unwrap();
    assert!(message.contains("deletion did not complete before the deadline"), "{message}");
    assert!(message.contains("managed resource group is locked"), "{message}");
    region.cs.remove(&path);
    region.gone(&name).await?;
    Region::stop(backend).await
}

#[tokio::test]
async fn clusters_of_a_deleted_subscription_are_deleted() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    let path = region.ready_cluster("blue").await?;
    let body = aro_fixtures::subscription_body("Deleted");
    let name = region.names.cluster("blue");
    region
        .arm
        .put(&at(&format!("/subscriptions/{}", region.names.subscription)), &body)
        .await?
        .expect(200)?;
    let cascade = region.frontend_scope().await?;
    until("the deletion to be dispatched", || async {
        Ok((region.cs.objects(&path)[0].1["state"] == "uninstalling").then_some(()))
    })
    .await?;
    region.cs.remove(&path);
    let id = aro_arm::ResourceId::parse(&name)?;
    until("the document to be gone", || async { Ok((!region.documents().exists(&id).await?).then_some(())) })
        .await?;
    Region::stop(cascade).await?;
    Region::stop(backend).await
}

#[tokio::test]
async fn old_clusters_without_a_resource_are_swept() -> Result<()> {
    let region = Region::start().await?;
    let orphan = |id: &str, created: &str| {
        json!({"kind": "Cluster", "id": id, "state": "ready", "status": {"state": "ready"}, "creation_timestamp": created,
               "azure": {"subscription_id": region.names.subscription, "resource_group_name": "g", "resource_name": id}})
    };
    let at = |id: &str| format!("/api/aro_hcp/v1alpha1/clusters/{id}");
    region.cs.put(&at("old"), orphan("old", "2026-11-15T10:00:00Z"));
    region.cs.put(&at("new"), orphan("new", "2027-01-15T07:59:00Z"));
    let backend = region.backend().await?;
    until("the orphan to be deleted", || async {
        Ok((region.cs.objects(&at("old"))[0].1["state"] == "uninstalling").then_some(()))
    })
    .await?;
    assert_eq!(region.cs.objects(&at("new"))[0].1["state"], "ready", "its resource may not be stored yet");
    Region::stop(backend).await
}

#[tokio::test]
async fn a_deletion_that_clusters_service_refuses_fails_at_its_deadline_and_is_still_asked_for() -> Result<()>
{
    let (region, backend) = Region::with_backend().await?;
    let path = region.ready_cluster("blue").await?;
    let name = region.names.cluster("blue");
    let reason = "Cluster 'c1' has delete protection enabled and can't be deleted";
    let refusals = std::iter::repeat_n(Fault::Refuse(400, reason.to_owned()), 2);
    region.cs.fault(Method::DELETE, "/clusters/", refusals);
    let accepted = region.arm.delete(&at(&name)).await?.expect(202)?;
    until("the deletion to be refused", || async {
        Ok((region.cs.count(&Method::DELETE, "/clusters/") > 0).then_some(()))
    })
    .await?;
    region.advance(Duration::from_hours(13))?;
    let status = region.ended(&accepted).await?;
    let message = status["error"]["message"].as_str().unwrap();
    assert!(message.contains("delete protection"), "{message}");
    until("the deletion to be dispatched", || async {
        Ok((region.cs.objects(&path)[0].1["state"] == "uninstalling").then_some(()))
    })
    .await?;
    region.cs.remove(&path);
    region.gone(&name).await?;
    Region::stop(backend).await
}
