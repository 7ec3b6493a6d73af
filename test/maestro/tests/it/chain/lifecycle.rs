//! The lifecycle of a bundle, from its creation to its final status, on both brokers.

use anyhow::{Context, Result, ensure};
use aro_bundle::BundleStatus;
use aro_event_service::ClientError;
use aro_fixtures::wait;
use aro_maestro_e2e::chain::{BrokerKind, Chain, Cluster, condition, config_map, feedback, metric, spec};
use serde_json::json;

const NAMESPACE: &str = "default";

#[tokio::test(flavor = "multi_thread")]
async fn bundle_lifecycle_over_our_broker() -> Result<()> {
    life(BrokerKind::Ours).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bundle_lifecycle_over_mosquitto() -> Result<()> {
    life(BrokerKind::Mosquitto).await
}

async fn life(kind: BrokerKind) -> Result<()> {
    let Some(chain) = Chain::start(kind, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let _agent = chain.agent("c1", &cluster).await?;
    let source = chain.source("src", 0)?;
    let mut received = source.subscribe().await?;
    ensure!(received.id.is_some(), "subscriptions have names");

    // Created: the object is applied, the status is returned by REST and by the subscription.
    let id = source.create("c1", "work", &spec(vec![config_map(NAMESPACE, "one", "a")])).await?;
    let bundle = chain.settled(&id, 1).await?;
    ensure!(cluster.config_map(NAMESPACE, "one").await? == Some(json!({"value": "a"})));
    ensure!(feedback(&bundle, 0, "value") == Some("a"), "{bundle:#}");
    let told = source.wait_for(&mut received, &id, |event| event.resource_version == Some(1)).await?;
    let status: BundleStatus = told.payload()?;
    ensure!(status.manifest_bundle.is_some() && told.sequence_id.is_some());
    ensure!(told.metadata_object()?["name"] == "work", "the source's own name of the work survives");

    // Counted under the metric names of the original's dashboards.
    for name in
        ["called_total", "processed_total", "processed_duration_seconds_count", "message_received_total"]
    {
        let name = format!("grpc_server_{name}");
        for method in ["Publish", "Subscribe"] {
            ensure!(metric(&chain.servers[0], &name, method).await? > 0, "{name} of {method}");
        }
    }

    // The debug command of the operations guide.
    let search = "payload->'metadata'->'labels'->>'api.openshift.com/id'='work'";
    let search = search.bytes().fold(String::new(), |text, byte| text + &format!("%{byte:02x}"));
    let rest = chain.rest(0)?;
    let found = rest.get(&format!("/api/maestro/v1/resource-bundles?search={search}")).await?.expect(200)?;
    ensure!(found.json()["items"][0]["id"] == id, "{:#}", found.json());

    // Created again: rejected, as Kubernetes would.
    let again = source.create("c1", "work", &spec(vec![config_map(NAMESPACE, "one", "b")])).await;
    ensure!(again.is_err_and(|error| format!("{error:#}").contains("AlreadyExists")));

    // Updated: new objects are applied, removed ones are deleted.
    let two = spec(vec![config_map(NAMESPACE, "one", "b"), config_map(NAMESPACE, "two", "c")]);
    source.update("c1", "work", 1, &two).await?;
    let bundle = chain.settled(&id, 2).await?;
    ensure!(
        feedback(&bundle, 0, "value") == Some("b") && feedback(&bundle, 1, "value") == Some("c"),
        "{bundle:#}"
    );
    let stale = source.update("c1", "work", 1, &two).await;
    let Err(ClientError::Refused(refusal)) = stale else { anyhow::bail!("a stale update was taken") };
    ensure!(refusal.message().contains("the latest version: 2"), "{}", refusal.message());
    source.update("c1", "work", 2, &spec(vec![config_map(NAMESPACE, "two", "c")])).await?;
    chain.settled(&id, 3).await?;
    wait::until("what is not wanted to be gone", || async {
        Ok(cluster.config_map(NAMESPACE, "one").await?.is_none().then_some(()))
    })
    .await?;

    // Changed by another client: repaired, and reported at once.
    let maps = cluster.api("v1", "ConfigMap", Some(NAMESPACE));
    maps.delete("two", &kube::api::DeleteParams::default()).await?;
    wait::until("the object to be back", || async {
        Ok(cluster.config_map(NAMESPACE, "two").await?.filter(|data| data["value"] == "c"))
    })
    .await?;

    // Deleted over gRPC: deleted on the cluster and from the store, and the source gets a final status.
    source.delete("c1", "work").await?;
    let told = source.wait_for(&mut received, &id, is_deleted).await?;
    ensure!(told.payload::<BundleStatus>()?.conditions.iter().any(|one| one.reason == "ManifestsDeleted"));
    chain.gone(&id).await?;
    ensure!(cluster.config_map(NAMESPACE, "two").await?.is_none());
    source.delete("c1", "work").await.context("deleting what is gone is fine")?;

    // Re-created under the same id: version 1 again.
    let same = source.create("c1", "work", &spec(vec![config_map(NAMESPACE, "one", "z")])).await?;
    ensure!(same == id);
    chain.settled(&id, 1).await?;

    // Deleted over REST.
    rest.delete(&format!("/api/maestro/v1/resource-bundles/{id}")).await?.expect(204)?;
    chain.gone(&id).await?;
    ensure!(cluster.config_map(NAMESPACE, "one").await?.is_none());

    // Orphaned: the bundle is removed, the object stays.
    let mut orphan = spec(vec![config_map(NAMESPACE, "kept", "k")]);
    orphan["deleteOption"] = json!({"propagationPolicy": "Orphan"});
    let id = source.create("c1", "orphan", &orphan).await?;
    chain.settled(&id, 1).await?;
    source.delete("c1", "orphan").await?;
    chain.gone(&id).await?;
    ensure!(cluster.config_map(NAMESPACE, "kept").await?.is_some());
    chain.all_delivered().await
}

fn is_deleted(event: &aro_bundle::Event) -> bool {
    event.payload::<BundleStatus>().is_ok_and(|status| status.is_deleted())
}

#[tokio::test(flavor = "multi_thread")]
async fn ledger_records_every_stage_of_a_delivery_in_order() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let source = chain.source("src", 0)?;
    let id = source.create("c1", "work", &spec(vec![config_map(NAMESPACE, "one", "a")])).await?;
    let line = |id: String| {
        let rest = chain.rest(0);
        async move {
            let reply = rest?.get(&format!("/api/aro/maestro/v1/deliveries/{id}")).await?.expect(200)?;
            Ok::<_, anyhow::Error>(reply.json())
        }
    };
    let waiting = line(id.clone()).await?;
    ensure!(waiting["delivered"] == false && waiting["version"] == 1, "{waiting:#}");
    let mut agent = chain.agent("c1", &cluster).await?;
    let bundle = chain.settled(&id, 1).await?;
    ensure!(condition(&bundle, "Applied") == Some("True"));
    let done = line(id.clone()).await?;
    ensure!(done["delivered"] == true && done["stage"] == "observed", "{done:#}");
    let times: Vec<&str> = ["stored", "published", "received", "applied", "observed"]
        .iter()
        .map(|stage| done[*stage].as_str().unwrap_or_default())
        .collect();
    ensure!(times.iter().all(|time| !time.is_empty()), "{done:#}");
    ensure!(times.is_sorted(), "{done:#}");

    // A deletion is a delivery of its own.
    agent.kill()?;
    source.delete("c1", "work").await?;
    let leaving = line(id).await?;
    ensure!(leaving["deleting"] == true && leaving["delivered"] == false, "{leaving:#}");
    ensure!(leaving["stage"] == "stored" || leaving["stage"] == "published", "{leaving:#}");
    ensure!(leaving["observed"].is_null(), "{leaving:#}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_of_one_source_subscribe_at_once() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    for round in 0..5 {
        let source = chain.source(&format!("src-{round}"), 0)?;
        let all = (0..16).map(|_| source.subscribe());
        let opened = futures::future::join_all(all).await;
        for one in opened {
            one?;
        }
    }
    Ok(())
}
