//! Many clusters made and deleted while every replica is killed again and again and the store fails at random.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aro_fixtures::wait::until;
use aro_fixtures::{Reply, node_pool_body};
use aro_store::fault::Rates;

use crate::real::Real;
use crate::region::{GA, at};

const CLUSTERS: usize = 16;
const KILLS: usize = 20;
/// Between two kills; a replica lives for two of them.
const LIFE: Duration = Duration::from_millis(250);

#[tokio::test]
async fn everything_settles_when_replicas_are_killed_and_the_store_fails() -> Result<()> {
    let (real, first) = Real::start().await?;
    real.region.faults.random(Rates {
        fail_before: 0.02,
        lost_reply: 0.05,
        conflict: 0.05,
        ..Rates::default()
    });
    let done = tokio::sync::watch::Sender::new(false);
    let work = async {
        let worked = work(&real).await;
        done.send_replace(true);
        worked
    };
    let (worked, killed, reported) =
        tokio::join!(work, kill(&real, first, done.subscribe()), report(&real, done.subscribe()));
    reported?;
    let kills = killed?;
    worked?;
    ensure!(kills >= KILLS, "only {kills} kills");
    real.region.faults.heal();

    // The final inventory: what is not deleted is there once, in both services, and nothing else.
    let backend = real.region.backend().await?;
    real.region.settled().await?;
    let mut there: Vec<String> =
        real.client.clusters(None).await?.into_iter().filter_map(|cluster| cluster.name).collect();
    there.sort();
    let mut expected: Vec<String> = (0..CLUSTERS).filter(|number| number % 2 == 1).map(name).collect();
    expected.sort();
    assert_eq!(there, expected);
    for name in &expected {
        real.region.state(&real.region.names.cluster(name), "Succeeded").await?;
        let pool = real.region.names.node_pool(name, "np");
        real.region.state(&pool, "Succeeded").await?;
    }
    let mut left = real.region.left().await?;
    left.sort();
    left.dedup_by(|a, b| a == b);
    ensure!(!left.iter().any(|kind| kind.ends_with("/outbox") || kind.ends_with("/cascades")), "{left:?}");
    real.stop(backend).await
}

fn name(number: usize) -> String {
    format!("cluster-{number}")
}

/// Creates all clusters with a node pool each, deletes every second one while it is being made or after.
async fn work(real: &Real) -> Result<()> {
    let region = &real.region;
    let mut created: Vec<Reply> = Vec::new();
    for number in 0..CLUSTERS {
        created.push(region.put_cluster(&name(number)).await?);
        let pool = region.names.node_pool(&name(number), "np");
        // A cluster that is Provisioning takes no children; then the pool follows later.
        let _ = region.arm.put(&at(&pool), &node_pool_body(GA)).await?;
        if number % 4 == 0 {
            delete(real, number).await?;
        }
    }
    for (number, created) in created.iter().enumerate() {
        let cluster = region.names.cluster(&name(number));
        match number % 4 {
            0 => region.gone(&cluster).await.with_context(|| name(number))?,
            2 => {
                region.ended(created).await.with_context(|| name(number))?;
                delete(real, number).await?;
                region.gone(&cluster).await.with_context(|| name(number))?;
            }
            _ => {
                let status = region.ended(created).await.with_context(|| name(number))?;
                ensure!(status["status"] == "Succeeded", "{}: {status}", name(number));
                let pool = region.names.node_pool(&name(number), "np");
                if region.arm.get(&at(&pool)).await?.status == 404 {
                    region.arm.put(&at(&pool), &node_pool_body(GA)).await?.expect(201)?;
                }
                region.state(&pool, "Succeeded").await.with_context(|| pool.clone())?;
            }
        }
    }
    Ok(())
}

async fn delete(real: &Real, number: usize) -> Result<()> {
    let cluster = real.region.names.cluster(&name(number));
    until("the deletion to be accepted", || async {
        Ok((real.region.arm.delete(&at(&cluster)).await?.status == 202).then_some(()))
    })
    .await
}

/// Kills the older of two replicas and starts another, until the work is done and there were enough kills.
async fn kill(
    real: &Real,
    first: aro_runtime::Scope,
    mut done: tokio::sync::watch::Receiver<bool>,
) -> Result<usize> {
    let mut replicas = std::collections::VecDeque::from([first, real.region.backend().await?]);
    let mut kills = 0;
    while !*done.borrow() || kills < KILLS {
        let _ = tokio::time::timeout(LIFE, done.changed()).await;
        if let Some(oldest) = replicas.pop_front() {
            // No grace: whatever it does is cut off.
            let _ = oldest.close(Duration::ZERO).await;
            kills += 1;
        }
        replicas.push_back(real.region.backend().await?);
    }
    for replica in replicas {
        let _ = replica.close(Duration::ZERO).await;
    }
    Ok(kills)
}

/// Reports a working control plane for every cluster that is ready.
async fn report(real: &Real, mut done: tokio::sync::watch::Receiver<bool>) -> Result<()> {
    let mut reported = std::collections::HashSet::new();
    while !*done.borrow() {
        // Grace periods are over some rounds later; deadlines are far away.
        real.region.advance(Duration::from_secs(1))?;
        for cluster in real.client.clusters(None).await? {
            let ready = cluster.state == Some(aro_ocm::ClusterState::Ready);
            if let Some(id) = cluster.id.filter(|id| ready && !reported.contains(id)) {
                // It may be deleted meanwhile.
                if real.report(&aro_ocm::ClusterId::parse(&id)?).await.is_ok() {
                    reported.insert(id);
                }
            }
        }
        let _ = tokio::time::timeout(Duration::from_millis(20), done.changed()).await;
    }
    Ok(())
}
