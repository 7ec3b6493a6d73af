//! The original's own source client, unmodified, at our server.

use anyhow::{Context, Result, ensure};
use aro_fixtures::wait;
use aro_maestro_e2e::chain::{BrokerKind, Chain, Cluster};
use aro_maestro_e2e::peers::{Peer, binaries, run};
use aro_maestro_e2e::pki::text;
use serde_json::{Value, json};

fn work(value: &str) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "work", "labels": {"api.openshift.com/id": "x"}},
        "spec": {
            "workload": {"manifests": [{
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "one", "namespace": "default"}, "data": {"value": value},
            }]},
            "manifestConfigs": [{
                "resourceIdentifier": {"group": "", "resource": "configmaps", "name": "one", "namespace": "default"},
                "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "value", "path": ".data.value"}]}],
                "updateStrategy": {"type": "ServerSideApply"},
            }],
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn original_source_client_works_with_our_server() -> Result<()> {
    let Some(bin) = binaries()? else { return Ok(()) };
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let _agent = chain.agent("c1", &cluster).await?;
    let dir = tempfile::tempdir()?;
    let identity = chain.sources.identity("src")?;
    let server = chain.servers[0].addr("maestro").context("REST")?;
    let grpc = chain.servers[0].addr("maestro-grpc").context("gRPC")?;
    let flags = [
        "-source=src".to_owned(),
        "-consumer-name=c1".to_owned(),
        format!("-maestro-server=http://{server}"),
        format!("-grpc-server={grpc}"),
        format!("-grpc-server-ca-file={}", text(&chain.sources.bundle())),
        format!("-grpc-client-cert-file={}", text(&identity.certificate)),
        format!("-grpc-client-key-file={}", text(&identity.key)),
    ];
    let client = bin.join("maestro-source");
    let call = |words: &[&str]| {
        let args: Vec<String> = words.iter().map(|word| (*word).to_owned()).chain(flags.clone()).collect();
        run(&client, &args, dir.path())
    };
    let file = dir.path().join("work.json");
    let apply = |value: &str| {
        std::fs::write(&file, work(value).to_string())?;
        call(&["apply", &file.display().to_string()])
    };
    let id = chain.source("src", 0)?.id("c1", "work");

    let mut watching: Vec<String> = vec!["watch".to_owned()];
    watching.extend(flags.clone());
    let watcher = Peer::start(&client, &watching, dir.path())?;

    ensure!(apply("a")?.contains(&format!("uid={id}) created")), "the id is the one the client makes");
    chain.settled(&id, 1).await?;
    ensure!(cluster.config_map("default", "one").await? == Some(json!({"value": "a"})));
    // Patch: what Clusters Service uses for every change.
    ensure!(apply("b")?.contains("updated successfully"));
    chain.settled(&id, 2).await?;
    let got = call(&["get", "work"])?;
    ensure!(got.contains("\"generation\": 2") && got.contains("ResourcesAvailable"), "{got}");
    ensure!(call(&["list"])?.contains(&id));
    ensure!(call(&["delete", "work"])?.contains("deleted successfully"));
    chain.gone(&id).await?;
    ensure!(call(&["list"])?.contains("No manifestworks found"));
    let missing = call(&["get", "work"]).unwrap_err().to_string();
    ensure!(missing.contains("not found"), "{missing}");
    wait::until("the watch to tell the end", || async {
        let said = watcher.said_all();
        Ok((said.contains("[MODIFIED]") && said.contains("[DELETED]")).then_some(()))
    })
    .await
    .with_context(|| watcher.said())
}
