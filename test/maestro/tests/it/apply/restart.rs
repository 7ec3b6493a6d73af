//! Restarts of the engine.

use anyhow::{Context as _, Result};
use aro_fixtures::wait;
use aro_maestro_e2e::agent::Agent;
use aro_maestro_e2e::world::{World, config_map};
use aro_work_engine::Work;
use serde_json::json;

use super::{reporting, work};

pub(super) async fn restart_writes_nothing_and_reports_nothing(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("restart").await?);
    let maps = world.config_maps(&namespace);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": &namespace},
        "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}});
    let full = |prior| Work {
        configs: vec![reporting(&namespace, "m")],
        prior,
        ..work("w", 4, vec![config_map(&namespace, "m", "1"), service.clone()])
    };
    let agent = Agent::start(world, &hub);
    agent.put(full(None));
    let told = agent.wait_settled("w", 4).await?;
    agent.wait_idle("w").await?;
    agent.stop().await?;
    let before = maps.get("m").await?.metadata;

    let again = Agent::start(world, &hub);
    again.put(full(Some(told.status.clone())));
    again.engine.resume();
    again.engine.synced().await;
    assert_eq!(again.wait_idle("w").await?, 0, "{:#?}", again.told("w"));
    let after = maps.get("m").await?.metadata;
    assert_eq!(
        (before.resource_version, before.managed_fields),
        (after.resource_version, after.managed_fields)
    );
    again.stop().await?;

    // Changes during the restart are repaired.
    let patch = kube::api::Patch::Merge(json!({"data": {"a": "theirs"}}));
    maps.patch("m", &kube::api::PatchParams::default(), &patch).await?;
    let third = Agent::start(world, &hub);
    third.put(full(Some(told.status.clone())));
    wait::until("ours again", || async {
        Ok(maps.get_opt("m").await?.filter(|map| map.data["data"]["a"] == "1"))
    })
    .await?;
    third.wait_idle("w").await?;
    let last = third.told("w").pop();
    assert!(last.is_none_or(|last| last.status == told.status), "it is as it was");

    // An interrupted deletion continues.
    third.stop().await?;
    let records = world.objects("work.open-cluster-management.io/v1", "AppliedManifestWork", "");
    records.delete(&format!("{hub}-w"), &kube::api::DeleteParams::default()).await?;
    let fourth = Agent::start(world, &hub);
    fourth.engine.resume();
    fourth.wait_deleted("w").await.context("it is an orphan")?;
    assert!(maps.get_opt("m").await?.is_none());
    fourth.stop().await
}
