//! Changes of applied objects by other clients.

use anyhow::{Context as _, Result};
use aro_fixtures::wait;
use aro_maestro_e2e::agent::{Agent, is, value};
use aro_maestro_e2e::world::{World, config_map};
use aro_work_engine::Work;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::{reporting, work};

pub(super) async fn drift_is_repaired_and_reported(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("drift").await?);
    let agent = Agent::start(world, &hub);
    let maps = world.config_maps(&namespace);
    agent.put(Work {
        configs: vec![reporting(&namespace, "m")],
        ..work("w", 1, vec![config_map(&namespace, "m", "ours")])
    });
    agent.wait_settled("w", 1).await?;
    let first = maps.get("m").await?;

    // Fields we did not set are not changed.
    let patch = Patch::Merge(json!({"data": {"theirs": "x"}}));
    maps.patch("m", &PatchParams::default(), &patch).await?;
    agent.wait_idle("w").await?;
    assert_eq!(maps.get("m").await?.data["data"], json!({"a": "ours", "theirs": "x"}));

    let patch = Patch::Merge(json!({"data": {"a": "theirs"}}));
    maps.patch("m", &PatchParams::default(), &patch).await?;
    let is_ours = || async { Ok(maps.get_opt("m").await?.filter(|map| map.data["data"]["a"] == "ours")) };
    wait::until("what was changed is ours again", is_ours).await?;

    maps.delete("m", &DeleteParams::default()).await?;
    let second = wait::until("what was deleted is there again", is_ours).await?;
    assert_ne!(first.metadata.uid, second.metadata.uid);

    // Another client deletes it and creates an object of that name, with other content and without our reference.
    maps.delete("m", &DeleteParams::default()).await?;
    let theirs = serde_json::from_value(config_map(&namespace, "m", "theirs"))?;
    // Independent of which client is faster.
    let _ = maps.create(&kube::api::PostParams::default(), &theirs).await;
    let third = wait::until("what was made anew is ours", || async {
        let map = is_ours().await?;
        Ok(map.filter(|map| map.metadata.owner_references.as_ref().is_some_and(|owners| owners.len() == 1)))
    })
    .await?;
    let record = world.objects("work.open-cluster-management.io/v1", "AppliedManifestWork", "");
    wait::until("the record names the new one", || async {
        let record = record.get(&format!("{hub}-w")).await?;
        let uid = record.data["status"]["appliedResources"][0]["uid"].as_str().map(str::to_owned);
        Ok((uid == third.metadata.uid).then_some(()))
    })
    .await?;
    agent.wait_idle("w").await?;
    let last = agent.told("w").pop().context("a report")?;
    assert!(is(&last, "Available", "True"));
    assert_eq!(value(&last.status, 0, "a").and_then(|value| value.string).as_deref(), Some("ours"));
    agent.stop().await
}
