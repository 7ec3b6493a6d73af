//! `kill -9` in the middle of a storm of writes loses nothing that was acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use aro_fixtures::{Names, cluster_body, wait};
use aro_harness::{Process, StoreChoice};
use aro_store::testing::postgres::TestPostgres;

use crate::support::{GA, at};

/// How many writes are acknowledged before the kill.
const BEFORE_THE_KILL: usize = 60;

async fn storm(store: StoreChoice) -> Result<()> {
    let mut process = Process::start(store).await?;
    let names = Names::default();
    process.arm()?.register(&names.subscription).await?;
    for round in 0..3 {
        let acknowledged = write_until_killed(&mut process, &names, round).await?;
        ensure!(acknowledged.len() >= BEFORE_THE_KILL, "the storm was one");
        process.start_again().await?;
        let arm = process.arm()?;
        for name in &acknowledged {
            let shown = arm.get(&at(&names.cluster(name), GA)).await?.expect(200)?;
            let operation = shown.json()["properties"]["provisioningState"].clone();
            ensure!(operation == "Accepted", "{name} is {operation}");
        }
    }
    // What was written around the kill is whole: a cluster that exists can be deleted, so its claims and operation are right.
    let arm = process.arm()?;
    let mut next = Some(format!(
        "/subscriptions/{}/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters?api-version={GA}&$top=100",
        names.subscription
    ));
    let mut found = 0;
    while let Some(path) = next {
        let page = arm.get(&path).await?.expect(200)?.json();
        for cluster in page["value"].as_array().into_iter().flatten() {
            found += 1;
            arm.delete(&at(cluster["id"].as_str().unwrap_or_default(), GA)).await?.expect(202)?;
        }
        next = page["nextLink"].as_str().map(str::to_owned);
    }
    ensure!(found >= 3 * BEFORE_THE_KILL, "every acknowledged cluster is listed");
    ensure!(process.interrupt()?.success(), "a clean stop");
    Ok(())
}

/// Writes from several clients at once, kills the process while they write, and tells what was acknowledged.
async fn write_until_killed(process: &mut Process, names: &Names, round: usize) -> Result<Vec<String>> {
    let count = Arc::new(AtomicUsize::new(0));
    let stopped = Arc::new(AtomicBool::new(false));
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let (arm, names, count, stopped) = (process.arm()?, names.clone(), count.clone(), stopped.clone());
        writers.spawn(async move {
            let mut acknowledged = Vec::new();
            for index in 0.. {
                let name = format!("r{round}w{writer}n{index}");
                let reply = arm.put(&at(&names.cluster(&name), GA), &cluster_body(&names, &name, GA)).await;
                match reply {
                    Ok(reply) if reply.status.as_u16() == 201 => {
                        acknowledged.push(name);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    // The connection broke: it was killed. Anything else would be a bug.
                    Ok(reply) => anyhow::bail!("{name}: {}", reply.status),
                    Err(_) if stopped.load(Ordering::Relaxed) => break,
                    Err(error) => return Err(error),
                }
            }
            Ok(acknowledged)
        });
    }
    wait::until("the storm to be in full swing", || async {
        Ok((count.load(Ordering::Relaxed) >= BEFORE_THE_KILL).then_some(()))
    })
    .await?;
    stopped.store(true, Ordering::Relaxed);
    process.kill()?;
    let mut acknowledged = Vec::new();
    while let Some(writer) = writers.join_next().await {
        acknowledged.extend(writer??);
    }
    Ok(acknowledged)
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_dash_nine_loses_no_acknowledged_write_on_the_embedded_store() -> Result<()> {
    storm(StoreChoice::Embedded).await
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_dash_nine_loses_no_acknowledged_write_on_postgres() -> Result<()> {
    let postgres = TestPostgres::launch()?;
    storm(StoreChoice::Postgres { url: postgres.fresh_schema()? }).await
}
