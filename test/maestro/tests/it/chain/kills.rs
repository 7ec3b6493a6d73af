//! Processes that are killed in the middle of a storm.

use anyhow::{Result, ensure};
use aro_harness::StoreChoice;
use aro_maestro_e2e::chain::{BrokerKind, Chain, Cluster, Progress, Storm, config_map, spec};
use aro_store::testing::postgres::TestPostgres;

const WISHES: usize = 200;
/// In the middle of a storm; about one in ten wishes finds its work gone and is none.
const MOMENTS: [usize; 3] = [40, 80, 120];

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_in_a_storm_loses_nothing() -> Result<()> {
    killed(1, false, true).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_in_a_storm_loses_nothing() -> Result<()> {
    killed(2, true, false).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_and_an_agent_killed_in_a_storm_lose_nothing() -> Result<()> {
    killed(3, true, true).await
}

async fn killed(seed: u64, server: bool, agent: bool) -> Result<()> {
    let Some(mut chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let mut working = chain.agent("c1", &cluster).await?;
    let progress = Progress::default();
    let raging = Storm::new(seed, "c1", 80, WISHES).rage(chain.source("src", 0)?, progress.clone());
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
    let (truth, ()) = tokio::try_join!(raging, kills)?;
    truth.holds(&chain, &cluster).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_killed_for_good_leaves_its_rows_to_the_other() -> Result<()> {
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
    // Stored by the second while nobody hears, and it dies: only the row knows.
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

    // And in a storm through the survivor, with statuses that went to the dead one.
    chain.servers[1].start_again().await?;
    let progress = Progress::default();
    let raging = Storm::new(4, "c1", 40, 120).rage(first, progress.clone());
    let dying = &mut chain.servers[1];
    let kill = async {
        progress.reaches(40).await?;
        dying.kill()
    };
    let (truth, ()) = tokio::try_join!(raging, kill)?;
    truth.holds(&chain, &cluster).await
}
