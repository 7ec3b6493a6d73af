//! Open Cluster Management's work agent, as the original Maestro ships it, at our server through mosquitto.

use anyhow::{Context, Result, ensure};
use aro_fixtures::{free_port, wait};
use aro_maestro_e2e::chain::{BrokerKind, Chain, Cluster, config_map, spec};
use aro_maestro_e2e::peers::{Peer, binaries, broker_file};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn original_agent_works_with_our_server() -> Result<()> {
    let Some(bin) = binaries()? else { return Ok(()) };
    let Some(chain) = Chain::start(BrokerKind::Mosquitto, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let dir = tempfile::tempdir()?;
    let broker = broker_file(&chain.pki, "c1", &chain.broker.address().to_string(), "c1", dir.path())?;
    let args = [
        "agent".to_owned(),
        "--consumer-name=c1".to_owned(),
        "--cloudevents-client-id=c1-work-agent".to_owned(),
        "--workload-source-driver=mqtt".to_owned(),
        format!("--workload-source-config={}", broker.display()),
        format!("--kubeconfig={}", cluster.own_kubeconfig().display()),
        "--namespace=default".to_owned(),
        "--status-sync-interval=5s".to_owned(),
        format!("--listen=127.0.0.1:{}", free_port()?),
    ];
    let agent = Peer::start(&bin.join("maestro"), &args, dir.path())?;
    let source = chain.source("src", 0)?;

    let works = async {
        let id = source.create("c1", "work", &spec(vec![config_map("default", "one", "a")])).await?;
        let bundle = chain.settled(&id, 1).await?;
        ensure!(cluster.config_map("default", "one").await? == Some(json!({"value": "a"})));
        let value = &bundle["status"]["resourceStatus"][0]["statusFeedback"]["values"][0];
        ensure!(value["fieldValue"]["string"] == "a", "{bundle:#}");
        source.update("c1", "work", 1, &spec(vec![config_map("default", "two", "b")])).await?;
        chain.settled(&id, 2).await?;
        wait::until("what is not wanted to be gone", || async {
            Ok(cluster.config_map("default", "one").await?.is_none().then_some(()))
        })
        .await?;
        source.delete("c1", "work").await?;
        chain.gone(&id).await?;
        ensure!(cluster.config_map("default", "two").await?.is_none());
        chain.all_delivered().await
    };
    works.await.with_context(|| format!("the agent said:\n{}", agent.said()))
}
