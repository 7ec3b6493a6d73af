//! Our agent at the original server, through mosquitto, on PostgreSQL.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use aro_bundle::Action;
use aro_event_service::{Client, Target};
use aro_fixtures::{TestClient, free_port, wait};
use aro_maestro_e2e::chain::{Broker, BrokerKind, Cluster, Source, agent_of, condition, config_map, spec};
use aro_maestro_e2e::peers::{Peer, binaries, broker_file, run};
use aro_maestro_e2e::pki::Pki;
use aro_net::SystemResolve;
use aro_runtime::SystemClock;
use aro_store::testing::postgres::TestPostgres;
use serde_json::{Value, json};

/// The files by which the original finds its database.
fn database(postgres: &TestPostgres, dir: &Path) -> Result<Vec<String>> {
    let mut flags = vec!["--db-sslmode=disable".to_owned()];
    let parts = [
        ("host", postgres.socket().display().to_string()),
        ("port", "5432".to_owned()),
        ("user", "aro".to_owned()),
        ("password", "none".to_owned()),
        ("name", "postgres".to_owned()),
    ];
    for (name, value) in parts {
        let path = dir.join(format!("db.{name}"));
        std::fs::write(&path, value)?;
        flags.push(format!("--db-{name}-file={}", path.display()));
    }
    Ok(flags)
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agent_works_with_the_original_server() -> Result<()> {
    let Some(bin) = binaries()? else { return Ok(()) };
    let pki = Pki::new()?;
    let Some(broker) = Broker::start(BrokerKind::Mosquitto, &pki).await? else { return Ok(()) };
    let (dir, postgres) = (tempfile::tempdir()?, TestPostgres::launch()?);
    let database = database(&postgres, dir.path())?;
    let maestro = bin.join("maestro");
    let migrate: Vec<String> = ["migration".to_owned()].into_iter().chain(database.clone()).collect();
    run(&maestro, &migrate, dir.path())?;
    let config = broker_file(&pki, "maestro", &broker.address().to_string(), "+", dir.path())?;
    let (rest, grpc) = (free_port()?, free_port()?);
    let mut args = vec![
        "server".to_owned(),
        "--server-hostname=127.0.0.1".to_owned(),
        format!("--http-server-bindport={rest}"),
        format!("--grpc-server-bindport={grpc}"),
        format!("--health-check-server-bindport={}", free_port()?),
        format!("--metrics-server-bindport={}", free_port()?),
        "--enable-https=false".to_owned(),
        "--disable-grpc-tls=true".to_owned(),
        "--message-broker-type=mqtt".to_owned(),
        format!("--message-broker-config-file={}", config.display()),
        "--client-id=maestro-server".to_owned(),
    ];
    args.extend(database);
    let server = Peer::start(&maestro, &args, dir.path())?;
    let works = async {
        let api = TestClient::new(format!("http://127.0.0.1:{rest}"));
        wait::until("the original server to answer", || async {
            Ok(api.get("/api/maestro/v1/consumers").await.ok().filter(|reply| reply.status == 200))
        })
        .await?;
        api.post("/api/maestro/v1/consumers", Some(&json!({"name": "c1"}))).await?.expect(201)?;
        let cluster = Cluster::start("c1").await?;
        let _agent = agent_of(&pki, "c1", &cluster, &broker.address().to_string()).await?;
        let target = Target { address: format!("127.0.0.1:{grpc}"), credentials: None, server_name: None };
        let source = Source {
            name: "src".to_owned(),
            client: Client::to(target, Arc::new(SystemResolve), SystemClock::shared())?,
        };

        let id = source.create("c1", "work", &spec(vec![config_map("default", "one", "a")])).await?;
        let bundle = until(&api, &id, 1).await?;
        let value = &bundle["status"]["resourceStatus"][0]["statusFeedback"]["values"][0];
        ensure!(value["fieldValue"]["string"] == "a", "{bundle:#}");
        // This version of the original allows manifests to change, not to be replaced.
        source.update("c1", "work", 1, &spec(vec![config_map("default", "one", "b")])).await?;
        let bundle = until(&api, &id, 2).await?;
        let value = &bundle["status"]["resourceStatus"][0]["statusFeedback"]["values"][0];
        ensure!(value["fieldValue"]["string"] == "b", "{bundle:#}");
        ensure!(cluster.config_map("default", "one").await? == Some(json!({"value": "b"})));
        // A delete as the original's own client sends it.
        let mut event = source.event(Action::Delete, "c1", "work", 2, None)?;
        event.deletion_timestamp = event.time;
        source.client.clone().publish(&event).await?;
        wait::until("the bundle to be gone", || async {
            let reply = api.get(&format!("/api/maestro/v1/resource-bundles/{id}")).await?;
            Ok((reply.status == 404).then_some(()))
        })
        .await?;
        ensure!(cluster.config_map("default", "one").await?.is_none());
        Ok::<_, anyhow::Error>(())
    };
    works.await.with_context(|| format!("the server said:\n{}", server.said()))
}

async fn until(api: &TestClient, id: &str, version: i64) -> Result<Value> {
    wait::until("the bundle to be applied and available", || async {
        let bundle = api.get(&format!("/api/maestro/v1/resource-bundles/{id}")).await?.json();
        let settled = bundle["status"]["ObservedVersion"] == version
            && condition(&bundle, "Applied") == Some("True")
            && condition(&bundle, "Available") == Some("True");
        Ok(settled.then_some(bundle))
    })
    .await
}
