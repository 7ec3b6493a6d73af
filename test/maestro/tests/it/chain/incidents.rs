//! Incidents of the original in production, each with its public id.

use anyhow::{Context, Result, bail, ensure};
use aro_bundle::Action;
use aro_event_service::ClientError;
use aro_fixtures::wait;
use aro_harness::StoreChoice;
use aro_maestro_e2e::chain::{
    BrokerKind, Chain, Cluster, Progress, Workload, config_map, feedback, metric, spec,
};
use aro_store::testing::postgres::TestPostgres;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

const NAMESPACE: &str = "default";

#[tokio::test(flavor = "multi_thread")]
async fn maestro_562_repeated_deletes_do_not_delay_the_creates_of_others() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["gone", "c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let _agent = chain.agent("c1", &cluster).await?;
    let source = chain.source("src", 0)?;
    // No agent confirms these.
    for number in 0..20 {
        let work = format!("stuck-{number}");
        source.create("gone", &work, &spec(vec![config_map(NAMESPACE, &work, "x")])).await?;
        source.delete("gone", &work).await?;
    }
    let mut workload = JoinSet::new();
    for worker in 0..10 {
        let source = source.clone();
        workload.spawn(async move {
            for turn in 0..300 {
                source.delete("gone", &format!("stuck-{}", (worker + turn) % 20)).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    let mut took = Vec::new();
    let mut made = 0;
    while made < 10 {
        let (began, work) = (Instant::now(), format!("work-{made}"));
        let id = source.create("c1", &work, &spec(vec![config_map(NAMESPACE, &work, "x")])).await?;
        chain.settled(&id, 1).await?;
        took.push(began.elapsed());
        made += 1;
    }
    while let Some(worker) = workload.join_next().await {
        worker??;
    }
    took.sort();
    ensure!(took[took.len() / 2].as_secs() < 5, "the creates took {took:?}");
    // Each was published once at first, and then at growing intervals, however often it was requested.
    let sent = metric(&chain.servers[0], "cloudevents_sent_total", "delete_request").await?;
    ensure!(
        (20..=200).contains(&sent),
        "{sent} deletions were published for 3 000 operations about 20 bundles"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn maestro_557_bundle_being_deleted_is_removed_only_on_its_agents_report() -> Result<()> {
    let Some(mut chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let mut agent = chain.agent("c1", &cluster).await?;
    let source = chain.source("src", 0)?;
    let id = source.create("c1", "work", &spec(vec![config_map(NAMESPACE, "one", "a")])).await?;
    chain.settled(&id, 1).await?;
    agent.kill()?;

    source.delete("c1", "work").await?;
    let deleting = chain.bundle(&id).await?.expect(200)?.json();
    ensure!(deleting["deleted_at"].is_string(), "{deleting:#}");
    // A restart, with all it publishes and reads, does not change that.
    chain.servers[0].kill()?;
    chain.servers[0].start_again().await?;
    source.delete("c1", "work").await.context("deleting again is fine")?;
    wait::until("the delete to be published again", || async {
        let line = chain.rest(0)?.get(&format!("/api/aro/maestro/v1/deliveries/{id}")).await?.expect(200)?;
        Ok((line.json()["republished"].as_u64() > Some(0)).then_some(()))
    })
    .await?;
    ensure!(chain.bundle(&id).await?.expect(200)?.json()["deleted_at"] == deleting["deleted_at"]);
    ensure!(cluster.config_map(NAMESPACE, "one").await?.is_some(), "it is not deleted yet");

    agent.start_again().await?;
    chain.gone(&id).await?;
    ensure!(cluster.config_map(NAMESPACE, "one").await?.is_none());
    chain.all_delivered().await
}

#[tokio::test(flavor = "multi_thread")]
async fn aroslsre_1633_update_of_a_bundle_being_deleted_is_rejected() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let mut agent = chain.agent("c1", &cluster).await?;
    let source = chain.source("src", 0)?;
    let wanted = spec(vec![config_map(NAMESPACE, "one", "a")]);
    let id = source.create("c1", "work", &wanted).await?;
    chain.settled(&id, 1).await?;
    agent.kill()?;
    source.delete("c1", "work").await?;
    for (version, value) in [(0, "b"), (1, "c")] {
        let other = spec(vec![config_map(NAMESPACE, "one", value)]);
        let Err(ClientError::Refused(refusal)) = source.update("c1", "work", version, &other).await else {
            bail!("an update of what is deleting was taken");
        };
        ensure!(refusal.message().contains("the resource is under deletion"), "{}", refusal.message());
    }
    let again = source.create("c1", "work", &wanted).await;
    ensure!(again.is_err_and(|error| format!("{error:#}").contains("AlreadyExists")));
    agent.start_again().await?;
    chain.gone(&id).await?;
    // Another bundle makes a full round trip afterwards: no message in flight has restored the first.
    let other = source.create("c1", "other", &spec(vec![config_map(NAMESPACE, "two", "a")])).await?;
    chain.settled(&other, 1).await?;
    ensure!(cluster.config_map(NAMESPACE, "one").await?.is_none());
    chain.gone(&id).await?;
    chain.all_delivered().await
}

#[tokio::test(flavor = "multi_thread")]
async fn maestro_538_every_accepted_create_is_delivered_though_the_server_is_killed() -> Result<()> {
    let Some(mut chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let _agent = chain.agent("c1", &cluster).await?;
    let progress = Progress::default();
    let workload = Workload { deletions: 0, ..Workload::new(538, "c1", 400, 160) };
    let raging = workload.run(chain.source("src", 0)?, progress.clone());
    let server = &mut chain.servers[0];
    let kills = async {
        for moment in [20, 55, 90, 125] {
            progress.reaches(moment).await?;
            server.kill()?;
            server.start_again().await?;
        }
        Ok::<_, anyhow::Error>(())
    };
    let (expected, ()) = tokio::try_join!(raging, kills)?;
    expected.holds(&chain, &cluster).await
}

#[tokio::test(flavor = "multi_thread")]
async fn maestro_543_server_survives_a_store_outage_and_loses_nothing() -> Result<()> {
    let postgres = TestPostgres::launch()?;
    let store = StoreChoice::Postgres { url: postgres.fresh_schema()? };
    let Some(chain) = Chain::on(BrokerKind::Ours, store, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let _agent = chain.agent("c1", &cluster).await?;
    let (source, rest) = (chain.source("src", 0)?, chain.rest(0)?);
    let id = source.create("c1", "work", &spec(vec![config_map(NAMESPACE, "one", "a")])).await?;
    chain.settled(&id, 1).await?;
    rest.get("/healthcheck").await?.expect(200)?;
    let pid = chain.servers[0].pid()?;

    postgres.down()?;
    rest.get("/livez").await?.expect(200).context("it lives")?;
    let ready = rest.get("/healthcheck").await?.status;
    ensure!(ready == 500 || ready == 503, "it cannot serve now, and says {ready}");
    // A status received meanwhile waits; an operation meanwhile fails, and is repeated.
    cluster.turn(NAMESPACE, "one", "meanwhile").await?;
    let wish = spec(vec![config_map(NAMESPACE, "two", "b")]);
    let event = source.event(Action::Create, "c1", "other", 0, Some(&wish))?;
    let refused = source.client.clone().publish(&event).await;
    ensure!(refused.is_err(), "the store is down");
    let back = async {
        rest.get("/livez").await?.expect(200)?;
        tokio::task::block_in_place(|| postgres.up())?;
        Ok::<_, anyhow::Error>(())
    };
    let insisting = async { Ok(source.publish_until_accepted(&event).await?) };
    tokio::try_join!(insisting, back)?;

    let bundle = chain
        .until(&id, "the status that waited", |bundle| feedback(bundle, 0, "turn") == Some("meanwhile"))
        .await?;
    ensure!(bundle["version"] == 1);
    chain.settled(&source.id("c1", "other"), 1).await?;
    rest.get("/healthcheck").await?.expect(200)?;
    ensure!(
        chain.servers[0].pid()? == pid && rest.get("/livez").await?.status == 200,
        "it was never restarted"
    );
    chain.all_delivered().await
}

#[tokio::test(flavor = "multi_thread")]
async fn sdk_go_232_racing_statuses_updates_and_deletes_restore_nothing() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let _agent = chain.agent("c1", &cluster).await?;
    let source = chain.source("src", 0)?;
    let mut racing = JoinSet::new();
    for number in 0..40 {
        let (source, client) = (source.clone(), cluster.api("v1", "ConfigMap", Some(NAMESPACE)));
        racing.spawn(async move {
            let work = format!("race-{number}");
            source.create("c1", &work, &spec(vec![config_map(NAMESPACE, &work, "0")])).await?;
            for turn in 1..=4 {
                let wanted = spec(vec![config_map(NAMESPACE, &work, &turn.to_string())]);
                source.update("c1", &work, 0, &wanted).await?;
                // The reported annotation changes at the same time; the object may not exist yet, or no longer.
                let status = json!({"metadata": {"annotations": {"turn": turn.to_string()}}});
                let _ = client.patch(&work, &PatchParams::default(), &Patch::Merge(status)).await;
            }
            source.delete("c1", &work).await?;
            Ok::<_, anyhow::Error>(source.id("c1", &work))
        });
    }
    let mut ids = Vec::new();
    while let Some(raced) = racing.join_next().await {
        ids.push(raced??);
    }
    for id in &ids {
        chain.gone(id).await?;
    }
    chain.all_delivered().await?;
    let left = cluster.api("v1", "ConfigMap", Some(NAMESPACE)).list(&ListParams::default()).await?;
    let left: Vec<String> = left.into_iter().filter_map(|map| map.metadata.name).collect();
    ensure!(!left.iter().any(|name| name.starts_with("race-")), "{left:?}");
    let records = cluster.api("work.open-cluster-management.io/v1", "AppliedManifestWork", None);
    wait::until("the records to be gone", || async {
        Ok(records.list(&ListParams::default()).await?.items.is_empty().then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn object_recreated_by_another_client_is_detected_and_reported() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let _agent = chain.agent("c1", &cluster).await?;
    let source = chain.source("src", 0)?;
    let id = source.create("c1", "work", &spec(vec![config_map(NAMESPACE, "one", "wanted")])).await?;
    chain.settled(&id, 1).await?;
    let maps = cluster.api("v1", "ConfigMap", Some(NAMESPACE));
    let before = maps.get("one").await?.metadata.uid;
    maps.delete("one", &DeleteParams::default()).await?;
    let mut other = config_map(NAMESPACE, "one", "something else");
    other["metadata"]["annotations"] = json!({"turn": "recreated"});
    // Independent of the order: in the end it is another object with the desired content, and its annotation is reported.
    let force = PatchParams::apply("other").force();
    maps.patch("one", &force, &Patch::Apply(other)).await?;
    let bundle = chain
        .until(&id, "the other object to be told", |bundle| {
            feedback(bundle, 0, "turn") == Some("recreated") && feedback(bundle, 0, "value") == Some("wanted")
        })
        .await?;
    ensure!(bundle["version"] == 1);
    let now = maps.get("one").await?;
    ensure!(now.metadata.uid != before && now.data["data"]["value"] == "wanted");
    chain.all_delivered().await
}

#[tokio::test(flavor = "multi_thread")]
async fn bundle_recreated_under_its_id_has_no_status_of_the_former_one() -> Result<()> {
    let Some(chain) = Chain::start(BrokerKind::Ours, &["c1"]).await? else { return Ok(()) };
    let cluster = Cluster::start("c1").await?;
    let mut agent = chain.agent("c1", &cluster).await?;
    let source = chain.source("src", 0)?;
    for life in ["first", "second", "third"] {
        let id = source.create("c1", "work", &spec(vec![config_map(NAMESPACE, "one", life)])).await?;
        let bundle = chain.settled(&id, 1).await?;
        ensure!(feedback(&bundle, 0, "value") == Some(life), "{bundle:#}");
        source.delete("c1", "work").await?;
        chain.gone(&id).await?;
        chain.all_delivered().await?;
    }
    // With the agent disconnected the new bundle has no status, not an old one.
    agent.kill()?;
    let id = source.create("c1", "work", &spec(vec![config_map(NAMESPACE, "one", "fourth")])).await?;
    let bundle = chain.bundle(&id).await?.expect(200)?.json();
    ensure!(bundle.get("status").is_none(), "{bundle:#}");
    agent.start_again().await?;
    let bundle = chain.settled(&id, 1).await?;
    ensure!(feedback(&bundle, 0, "value") == Some("fourth"));
    Ok(())
}
