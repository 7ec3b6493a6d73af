//! Statuses of an agent whose clock is set back are accepted.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aro_base::{Clock as _, ManualClock, SignedDuration};
use aro_bundle::SequenceId;
use aro_fixtures::wait;
use aro_maestro_agent::{MaestroAgent, MaestroAgentConfig, MaestroAgentPorts};
use aro_maestro_e2e::chain::{BrokerKind, Chain, Cluster, config_map, feedback, spec};
use aro_net::SystemResolve;
use aro_runtime::{Metrics, Readiness, Role as _, Scope, Section as _, SystemClock, TaskKind};
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use serde_json::Value;
use tempfile::TempDir;

/// The agent in this process, with the test's clock.
struct Agent {
    scope: Scope,
}

impl Agent {
    async fn start(
        chain: &Chain,
        cluster: &Cluster,
        data: &TempDir,
        clock: Arc<ManualClock>,
    ) -> Result<Self> {
        let identity = chain.pki.identity("c1")?;
        let config = MaestroAgentConfig {
            consumer: "c1".to_owned(),
            broker: chain.broker.address().to_string(),
            hub_id: Some("test".to_owned()),
            cert_file: Some(identity.certificate),
            key_file: Some(identity.key),
            ca_file: Some(chain.pki.bundle()),
            ..MaestroAgentConfig::default()
        };
        let readiness = Readiness::new();
        let ports = MaestroAgentPorts {
            client: cluster.client.clone(),
            store: SqliteStore::open(SqliteOptions::new(data.path()), SystemClock::shared())?,
            resolve: Arc::new(SystemResolve),
            clock,
            metrics: Metrics::new(),
            readiness: readiness.clone(),
        };
        let role = MaestroAgent::build(config.check()?, ports)?;
        let scope = Scope::root("agent");
        scope.spawn(TaskKind::Role, "run", role.run(scope.clone()));
        tokio::time::timeout(wait::DEADLINE, readiness.ready()).await.context("the agent is not ready")?;
        Ok(Self { scope })
    }

    async fn stop(self) -> Result<()> {
        self.scope.close(Duration::from_secs(10)).await.context("the agent stops")
    }
}

fn sequence(bundle: &Value) -> Result<SequenceId> {
    let text = bundle["status"]["SequenceID"].as_str().context("a sequence id")?;
    SequenceId::parse(text).context("a sequence id that can be read")
}

#[tokio::test(flavor = "multi_thread")]
async fn statuses_of_an_agent_whose_clock_is_set_back_are_accepted() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let (data, source) = (tempfile::tempdir()?, chain.source("src", 0)?);
    // The clock is two hours ahead, until it is corrected.
    let ahead = SignedDuration::from_hours(2);
    let now = SystemClock.now();
    let clock = ManualClock::at(now.saturating_add(ahead)?);
    let agent = Agent::start(&chain, &cluster, &data, clock.clone()).await?;
    let id = source.create("c1", "work", &spec(vec![config_map("default", "one", "a")])).await?;
    let first = sequence(&chain.settled(&id, 1).await?)?;
    ensure!(first.time().is_some_and(|time| time > now), "the first id is of the fast clock");

    clock.advance(-ahead);
    let told = async |turn: &str| {
        cluster.turn("default", "one", turn).await?;
        chain.until(&id, turn, |bundle| feedback(bundle, 0, "turn") == Some(turn)).await
    };
    let second = sequence(&told("after the clock was set back").await?)?;
    ensure!(second > first);

    // Also after a restart, from its records.
    agent.stop().await?;
    let agent = Agent::start(&chain, &cluster, &data, clock.clone()).await?;
    let third = sequence(&told("after a restart").await?)?;
    ensure!(third > second);

    // And after the loss of its records.
    agent.stop().await?;
    let empty = tempfile::tempdir()?;
    let agent = Agent::start(&chain, &cluster, &empty, clock).await?;
    let fourth = sequence(&told("after it forgot everything").await?)?;
    ensure!(fourth > third);
    source.delete("c1", "work").await?;
    chain.gone(&id).await?;
    agent.stop().await
}
