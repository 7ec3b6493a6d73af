//! Several replicas share the work by a lease.

use std::time::Duration;

use anyhow::Result;
use aro_fixtures::wait::until;
use http::Method;

use crate::region::{Region, at};

#[tokio::test]
async fn two_replicas_create_every_cluster_once() -> Result<()> {
    let region = Region::start().await?;
    let (first, second) = (region.backend().await?, region.backend().await?);
    let names: Vec<String> = (0..12).map(|number| format!("cluster-{number}")).collect();
    for name in &names {
        region.put_cluster(name).await?;
    }
    for name in &names {
        let path = region.cluster_in_service(name).await?;
        region.finish_cluster(&path);
    }
    for name in &names {
        region.state(&region.names.cluster(name), "Succeeded").await?;
    }
    let clusters = region.cs.objects("/api/aro_hcp/v1alpha1/clusters");
    assert_eq!(clusters.iter().filter(|(_, object)| object["kind"] == "Cluster").count(), names.len());
    region.settled().await?;
    Region::stop(first).await?;
    Region::stop(second).await
}

#[tokio::test]
async fn work_of_a_replica_that_stops_moves_to_another() -> Result<()> {
    let region = Region::start().await?;
    let (first, second) = (region.backend().await?, region.backend().await?);
    let names: Vec<String> = (0..8).map(|number| format!("cluster-{number}")).collect();
    for name in &names {
        region.put_cluster(name).await?;
    }
    // Whatever the first one is in the middle of stays as it is.
    let _ = first.close(Duration::from_millis(1)).await;
    for name in &names {
        let path = region.cluster_in_service(name).await?;
        region.finish_cluster(&path);
        region.state(&region.names.cluster(name), "Succeeded").await?;
    }
    assert_eq!(region.cs.count(&Method::POST, "/clusters") % 8, 0, "one dry run and one create for each");
    Region::stop(second).await
}

#[tokio::test]
async fn restarts_during_a_deletion_lose_nothing() -> Result<()> {
    let region = Region::start().await?;
    let mut backend = region.backend().await?;
    let path = region.ready_cluster("blue").await?;
    let name = region.names.cluster("blue");
    region.arm.delete(&at(&name)).await?.expect(202)?;
    for _ in 0..3 {
        let _ = backend.close(Duration::from_millis(1)).await;
        backend = region.backend().await?;
    }
    until("the deletion to be dispatched", || async {
        Ok((region.cs.objects(&path)[0].1["state"] == "uninstalling").then_some(()))
    })
    .await?;
    let _ = backend.close(Duration::from_millis(1)).await;
    // It ends while no backend runs: the next one looks.
    region.cs.remove(&path);
    let backend = region.backend().await?;
    region.gone(&name).await?;
    region.settled().await?;
    Region::stop(backend).await
}
