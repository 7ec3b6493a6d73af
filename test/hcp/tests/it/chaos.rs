//! Creations and deletions in flight while the region is killed again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aro_cloud::Precondition;
use aro_fixtures::wait;
use aro_hcp_e2e::{Cluster, Customer, HcpRegion, Inventory};
use futures::{StreamExt as _, stream};
use serde_json::Value;
use tokio::sync::RwLock;
use tokio::time::Instant;

use crate::flow::VERSION;

/// Clusters at once: with a release build, and with the debug build that tests use without one.
const CLUSTERS: (usize, usize) = (100, 20);
/// How often everything is killed. All roles of the region are in the one process.
const KILLS: usize = 20;
/// Between two kills.
const ALIVE: Duration = Duration::from_millis(1500);
/// Until everything has settled after the last kill.
const SETTLE: Duration = Duration::from_mins(3);

/// One cluster's life: made, and deleted if its number is even.
async fn live(
    customer: &RwLock<Customer>,
    cluster: &Cluster,
    delete: bool,
    stop: &AtomicBool,
) -> Result<String> {
    let state = repeat(stop, || async {
        let arm = customer.read().await.arm.clone();
        let put = arm.put(&cluster.id, VERSION, &cluster.body, &Precondition::None).await;
        match put {
            Ok(made) => Some(made["properties"]["provisioningState"].as_str().unwrap_or("?").to_owned()),
            // A failed operation, not a connection that ended.
            Err(error) if error.code().is_some_and(|code| code == "Failed") => {
                Some(format!("Failed: {error}"))
            }
            Err(_) => state_of(&arm, cluster).await,
        }
    })
    .await?;
    if !delete {
        return Ok(state);
    }
    repeat(stop, || async {
        let arm = customer.read().await.arm.clone();
        let _ = arm.delete(&cluster.id, VERSION).await;
        match arm.find::<Value>(&cluster.id, VERSION).await {
            Ok(None) => Some("gone".to_owned()),
            _ => None,
        }
    })
    .await
}

async fn state_of(arm: &aro_cloud::ArmClient, cluster: &Cluster) -> Option<String> {
    let found = arm.find::<Value>(&cluster.id, VERSION).await.ok()??;
    let state = found["properties"]["provisioningState"].as_str()?;
    (state == "Succeeded" || state == "Failed").then(|| state.to_owned())
}

/// Asks until there is an answer, or time is up.
async fn repeat<F: Future<Output = Option<String>>>(
    stop: &AtomicBool,
    mut ask: impl FnMut() -> F,
) -> Result<String> {
    loop {
        if let Some(answer) = ask().await {
            return Ok(answer);
        }
        ensure!(!stop.load(Ordering::Relaxed), "not settled in time");
        // A pause between two looks, while the region starts again.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_region_that_is_killed_again_and_again_loses_no_cluster_and_leaves_nothing() -> Result<()> {
    let mut region = HcpRegion::start_fixed(&[]).await?;
    let customer = region.customer().await?;
    let clusters = if aro_harness::is_given() { CLUSTERS.0 } else { CLUSTERS.1 };
    let names: Vec<String> = (0..clusters).map(|number| format!("chaos-{number}")).collect();
    let prepared: Vec<Cluster> = stream::iter(&names)
        .map(|name| customer.prepare(name))
        .buffer_unordered(8)
        .collect::<Vec<_>>()
        .await
        .into_iter()
        .collect::<Result<_>>()?;
    let before = Inventory::of(&region).await?;
    for rule in [
        "server-error --operation write --probability 0.02 --resource */resourceGroups/mrg-*",
        "lost-reply --operation write --probability 0.02 --resource */resourceGroups/mrg-*",
        "throttle --delay 200ms --operation write --probability 0.02 --resource */resourceGroups/mrg-*",
    ] {
        let added = region.process().second(&format!("cloud faults add {rule}"))?;
        ensure!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    }

    let customer = Arc::new(RwLock::new(customer));
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let lives = stream::iter(prepared.iter().enumerate())
        .map(|(number, cluster)| live(&customer, cluster, number % 2 == 0, &stop))
        .buffer_unordered(clusters)
        .collect::<Vec<_>>();
    let killer = async {
        for _ in 0..KILLS {
            tokio::time::sleep(ALIVE).await;
            region.process_mut().kill()?;
            region.start_again().await?;
            *customer.write().await = region.customer().await?;
        }
        let deadline = Instant::now() + SETTLE;
        while Instant::now() < deadline && !done.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        stop.store(true, Ordering::Relaxed);
        anyhow::Ok(())
    };
    let lives = async {
        let lives = lives.await;
        done.store(true, Ordering::Relaxed);
        lives
    };
    let (lives, killed) = futures::future::join(lives, killer).await;
    killed?;
    let lives: Vec<String> = lives.into_iter().collect::<Result<_>>().context("every life settles")?;
    let odd: Vec<&String> = lives.iter().filter(|state| *state != "gone" && *state != "Succeeded").collect();
    ensure!(odd.is_empty(), "{odd:?}");

    let customer = customer.read().await.clone();
    stream::iter(prepared.iter().skip(1).step_by(2))
        .for_each_concurrent(clusters, |cluster| async {
            let _ = customer.arm.delete(&cluster.id, VERSION).await;
        })
        .await;
    let empty = wait::until("an empty inventory", || async {
        let now = Inventory::of(&region).await?;
        Ok(now.beyond(&before).is_empty().then_some(()))
    })
    .await;
    if empty.is_err() {
        let now = Inventory::of(&region).await?;
        anyhow::bail!("left: {:#?}", now.beyond(&before));
    }
    let now = Inventory::of(&region).await?;
    ensure!(now.lacks(&before).is_empty(), "missing: {:#?}", now.lacks(&before));
    Ok(())
}
