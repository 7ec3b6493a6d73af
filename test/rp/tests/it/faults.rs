//! Lost replies, failing stores, an unreachable Clusters Service, restarts between two steps.

use std::time::Duration;

use anyhow::Result;
use aro_fixtures::wait::until;
use aro_rp_e2e::clusters_service::Fault;
use aro_store::fault::{Call, Fault as StoreFault, Rates};
use http::Method;
use serde_json::json;

use crate::region::{Region, at};

#[tokio::test]
async fn a_create_whose_reply_is_lost_makes_one_cluster() -> Result<()> {
    let region = Region::start().await?;
    region.put_cluster("blue").await?;
    region.cs.fault(Method::POST, "/clusters", [Fault::LostReply]);
    let backend = region.backend().await?;
    let path = region.cluster_in_service("blue").await?;
    region.finish_cluster(&path);
    region.state(&region.names.cluster("blue"), "Succeeded").await?;
    let clusters = region.cs.objects("/api/aro_hcp/v1alpha1/clusters");
    assert_eq!(clusters.iter().filter(|(_, object)| object["kind"] == "Cluster").count(), 1);
    region.settled().await?;
    Region::stop(backend).await
}

#[tokio::test]
async fn a_create_that_was_sent_before_a_crash_is_found_by_the_next_process() -> Result<()> {
    let region = Region::start().await?;
    region.put_cluster("blue").await?;
    let first = region.backend().await?;
    let path = region.cluster_in_service("blue").await?;
    // From here on nothing is recorded: the process dies between the request and the record.
    region.faults.random(Rates { fail_before: 1.0, ..Rates::default() });
    let _ = first.close(Duration::from_secs(5)).await;
    region.faults.heal();
    let mut cluster = region.cluster("blue").await?;
    cluster.service.cluster_service_id = None;
    forget_record(&region, cluster).await?;
    let second = region.backend().await?;
    region.finish_cluster(&path);
    region.state(&region.names.cluster("blue"), "Succeeded").await?;
    assert_eq!(region.cluster("blue").await?.service.cluster_service_id.as_deref(), Some(path.as_str()));
    assert_eq!(region.cs.count(&Method::POST, "/clusters"), 2, "the dry run and one create");
    Region::stop(second).await
}

/// Puts the document back to what it was before the record.
async fn forget_record(region: &Region, cluster: aro_arm::hcp::cluster::Cluster) -> Result<()> {
    let key = aro_rp_store::key_of(&cluster.id);
    let documents = region.documents();
    let collection = documents.of::<aro_arm::hcp::cluster::Cluster>();
    collection
        .update(&key, |stored| {
            *stored = cluster.clone();
            true
        })
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_create_that_clusters_service_refuses_fails_with_its_reason() -> Result<()> {
    let region = Region::start().await?;
    let accepted = region.put_cluster("blue").await?;
    let reason = "The network security group is not attached to the subnet";
    region.cs.fault(Method::POST, "/clusters", [Fault::Refuse(400, reason.to_owned())]);
    let backend = region.backend().await?;
    let status = region.ended(&accepted).await?;
    assert_eq!(
        (&status["error"]["code"], &status["error"]["message"]),
        (&json!("InvalidRequestContent"), &json!(reason))
    );
    region.state(&region.names.cluster("blue"), "Failed").await?;
    region.settled().await?;

    // It can be deleted at once: nothing was created.
    region.arm.delete(&at(&region.names.cluster("blue"))).await?.expect(202)?;
    region.gone(&region.names.cluster("blue")).await?;
    Region::stop(backend).await
}

#[tokio::test]
async fn lack_of_capacity_is_a_service_unavailable_for_the_caller() -> Result<()> {
    let region = Region::start().await?;
    let accepted = region.put_cluster("blue").await?;
    region.cs.fault(
        Method::POST,
        "/clusters",
        [Fault::Refuse(404, "Unable to find shard for uksouth".to_owned())],
    );
    let backend = region.backend().await?;
    assert_eq!(region.ended(&accepted).await?["error"]["code"], "ServiceUnavailable");
    Region::stop(backend).await
}

#[tokio::test]
async fn a_cluster_that_exists_under_another_id_is_adopted() -> Result<()> {
    let region = Region::start().await?;
    region.put_cluster("blue").await?;
    let subscription = region.names.subscription.to_lowercase();
    let other = "/api/aro_hcp/v1alpha1/clusters/2qrppk0otds3rdmdcojqcqkqq8f0s591";
    region.cs.put(
        other,
        json!({"kind": "Cluster", "id": "2qrppk0otds3rdmdcojqcqkqq8f0s591", "href": other, "state": "installing",
               "status": {"state": "installing"}, "version": {"id": "openshift-v4.22.10"}, "api": {},
               "azure": {"subscription_id": subscription, "resource_group_name": "rg-test", "resource_name": "blue"}}),
    );
    region.cs.fault(
        Method::POST,
        "/clusters",
        [Fault::Refuse(409, "the managed resource group is in use".to_owned())],
    );
    let backend = region.backend().await?;
    until("the cluster to be adopted", || async {
        Ok((region.cluster("blue").await?.service.cluster_service_id.as_deref() == Some(other)).then_some(()))
    })
    .await?;
    region.state(&region.names.cluster("blue"), "Provisioning").await?;
    Region::stop(backend).await
}

#[tokio::test]
async fn work_goes_on_when_clusters_service_returns() -> Result<()> {
    let region = Region::start().await?;
    region.put_cluster("blue").await?;
    region.cs.set_away(true);
    let backend = region.backend().await?;
    region.state(&region.names.cluster("blue"), "Accepted").await?;
    region.cs.set_away(false);
    let path = region.cluster_in_service("blue").await?;
    region.finish_cluster(&path);
    region.state(&region.names.cluster("blue"), "Succeeded").await?;
    Region::stop(backend).await
}

#[tokio::test]
async fn an_operation_fails_at_its_deadline_also_without_clusters_service() -> Result<()> {
    let region = Region::start().await?;
    let accepted = region.put_cluster("blue").await?;
    region.cs.set_away(true);
    region.advance(Duration::from_secs(3601))?;
    let backend = region.backend().await?;
    let status = region.ended(&accepted).await?;
    assert!(status["error"]["message"].as_str().unwrap().contains("before the deadline"), "{status}");
    Region::stop(backend).await
}

#[tokio::test]
async fn an_expired_event_cursor_loses_no_change() -> Result<()> {
    let (region, backend) = Region::with_backend().await?;
    region.put_cluster("blue").await?;
    let path = region.cluster_in_service("blue").await?;
    region.state(&region.names.cluster("blue"), "Provisioning").await?;
    region.cs.expire_cursors();
    region.finish_cluster(&path);
    region.state(&region.names.cluster("blue"), "Succeeded").await?;
    Region::stop(backend).await
}

#[tokio::test]
async fn a_faulty_store_and_lost_replies_change_nothing_in_the_end() -> Result<()> {
    let region = Region::start().await?;
    region.faults.random(Rates {
        fail_before: 0.05,
        lost_reply: 0.2,
        conflict: 0.1,
        redeliver: 0.2,
        ..Rates::default()
    });
    region.faults.script(Call::Write, [StoreFault::LostReply, StoreFault::Conflict]);
    for method in [Method::POST, Method::PATCH, Method::DELETE] {
        region.cs.fault(method, "/clusters/", [Fault::LostReply, Fault::Unreachable, Fault::LostReply]);
    }
    let backend = region.backend().await?;
    let path = region.ready_cluster("blue").await?;
    let name = region.names.cluster("blue");
    region
        .arm
        .patch(&at(&name), &json!({"properties": {"nodeDrainTimeoutMinutes": 5}}))
        .await?
        .expect(202)?;
    until("the update in Clusters Service", || async {
        Ok((region.cs.objects(&path)[0].1["node_drain_grace_period"]["value"] == 5).then_some(()))
    })
    .await?;
    region.set_cluster_state(&path, "ready");
    region.state(&name, "Succeeded").await?;
    region.arm.delete(&at(&name)).await?.expect(202)?;
    until("the deletion to be dispatched", || async {
        Ok((region.cs.objects(&path)[0].1["state"] == "uninstalling").then_some(()))
    })
    .await?;
    region.cs.remove(&path);
    region.gone(&name).await?;
    region.settled().await?;
    region.faults.heal();
    Region::stop(backend).await
}
