//! Processes that are killed during a workload.

use anyhow::{Result, ensure};
use aro_harness::StoreChoice;
use aro_maestro_e2e::chain::{BrokerKind, Chain, Cluster, Progress, Workload, config_map, spec};
use aro_store::testing::postgres::TestPostgres;

const WISHES: usize = 200;
/// In the middle of the workload; about one in ten operations finds its work deleted and does not count.
const MOMENTS: [usize; 3] = [40, 80, 120];

#[tokio::test(flavor = "multi_thread")]
async fn agent_killed_under_load_loses_nothing() -> Result<()> {
    killed(1, false, true).await
}

#[tokio::test(flavor = "multi_thread")]
async fn server_killed_under_load_loses_nothing() -> Result<()> {
    killed(2, true, false).await
}

#[tokio::test(flavor = "multi_thread")]
async fn server_and_agent_killed_under_load_lose_nothing() -> Result<()> {
    killed(3, true, true).await
}

async fn killed(seed: u64, server: bool, agent: bool) -> Result<()> {
    let Some(mut chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let mut working = chain.agent("c1", &cluster).await?;
    let progress = Progress::default();
    let raging = Workload::new(seed, "c1", 80, WISHES).run(chain.source("src", 0)?, progress.clone());
    let serving = &mut chain.servers[0];
    let kills = async {
        for moment in MOMENTS {
            progress.reaches(moment).await?;
            if server {
                serving.kill()?;
            }
            if agent {
                working.kill()?;
                working.start_again().await?;
            }
            if server {
                serving.start_again().await?;
            }
        }
        Ok::<_, anyhow::Error>(())
    };
    let (expected, ()) = tokio::try_join!(raging, kills)?;
    expected.holds(&chain, &cluster).await
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_lost_replica_are_published_by_the_other() -> Result<()> {
    let postgres = TestPostgres::launch()?;
    let store = StoreChoice::Postgres { url: postgres.fresh_schema()? };
    let Some(mut chain) = Chain::on(BrokerKind::Ours, store, &["c1"]).await? else { return Ok(()) };
    chain.add_server().await?;
    let cluster = Cluster::start("c1").await?;
    let mut agent = chain.agent("c1", &cluster).await?;
    // Both serve the same rows.
    let (first, second) = (chain.source("src", 0)?, chain.source("src", 1)?);
    let id = second.create("c1", "before", &spec(vec![config_map("default", "before", "a")])).await?;
    chain.settled(&id, 1).await?;
    // Stored by the second replica while no agent is connected, and it is killed: only the row is left.
    agent.kill()?;
    let mut ids = Vec::new();
    for number in 0..20 {
        let work = format!("left-{number}");
        ids.push(second.create("c1", &work, &spec(vec![config_map("default", &work, "a")])).await?);
    }
    second.delete("c1", "before").await?;
    chain.servers[1].kill()?;
    agent.start_again().await?;
    for id in &ids {
        chain.settled(id, 1).await?;
    }
    chain.gone(&id).await?;
    ensure!(cluster.config_map("default", "before").await?.is_none());

    // And a workload through the survivor, with statuses that were sent to the killed one.
    chain.servers[1].start_again().await?;
    let progress = Progress::default();
    let raging = Workload::new(4, "c1", 40, 120).run(first, progress.clone());
    let dying = &mut chain.servers[1];
    let kill = async {
        progress.reaches(40).await?;
        dying.kill()
    };
    let (expected, ()) = tokio::try_join!(raging, kill)?;
    expected.holds(&chain, &cluster).await
}
