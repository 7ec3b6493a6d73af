//! Deletion of works.

use anyhow::Result;
use aro_fixtures::wait;
use aro_maestro_e2e::agent::{Agent, is};
use aro_maestro_e2e::world::{World, config_map};
use aro_work_engine::Work;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{orphaning, work};

pub(super) async fn work_is_deleted_once_all_its_objects_are(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("deletion").await?);
    let agent = Agent::start(world, &hub);
    let maps = world.config_maps(&namespace);
    let mut held = config_map(&namespace, "held", "1");
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    agent.put(work("w", 1, vec![held.clone(), config_map(&namespace, "free", "1")]));
    agent.wait_settled("w", 1).await?;

    agent.engine.delete("w");
    // It is not restored.
    agent.put(work("w", 2, vec![held, config_map(&namespace, "free", "2")]));
    let told = agent.wait_for("w", "what it waits for", |told| is(told, "Deleting", "True")).await?;
    assert!(is(&told, "Applied", "True"), "it is as it was otherwise");
    let deleting =
        told.status.conditions.last().map(|condition| condition.message.clone()).unwrap_or_default();
    let expected = format!("Waiting for the end of ConfigMap {namespace}/held (finalizers example.org/hold)");
    assert_eq!(deleting, expected);
    assert!(maps.get_opt("free").await?.is_none() && !agent.is_gone("w"));

    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("held", &PatchParams::default(), &patch).await?;
    agent.wait_deleted("w").await?;
    assert!(maps.get_opt("held").await?.is_none());
    let records = world.objects("work.open-cluster-management.io/v1", "AppliedManifestWork", "");
    assert!(records.get_opt(&format!("{hub}-w")).await?.is_none());
    assert_eq!(agent.engine.known("w"), None);

    // A new work of that name is another work.
    agent.put(work("w", 1, vec![config_map(&namespace, "free", "3")]));
    wait::until("the new one", || async { Ok(maps.get_opt("free").await?) }).await?;
    agent.stop().await
}

pub(super) async fn orphaned_objects_stay(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("orphans").await?);
    let agent = Agent::start(world, &hub);
    let maps = world.config_maps(&namespace);
    // It was owned first: the reference has to be removed.
    let manifests = || vec![config_map(&namespace, "m", "1")];
    agent.put(work("w", 1, manifests()));
    agent.wait_settled("w", 1).await?;
    agent.put(Work { delete_option: Some(orphaning()), ..work("w", 2, manifests()) });
    agent.wait_settled("w", 2).await?;
    assert_eq!(maps.get("m").await?.metadata.owner_references, None);
    agent.engine.delete("w");
    agent.wait_deleted("w").await?;
    maps.get("m").await?;
    agent.stop().await
}

pub(super) async fn deletion_of_an_unknown_work_is_reported(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("unheard").await?);
    let maps = world.config_maps(&namespace);
    let agent = Agent::start(world, &hub);
    agent.engine.delete("never");
    agent.wait_deleted("never").await?;
    agent.put(work("w", 1, vec![config_map(&namespace, "m", "1")]));
    agent.wait_settled("w", 1).await?;
    agent.stop().await?;

    let later = Agent::start(world, &hub);
    later.engine.delete("w");
    later.wait_deleted("w").await?;
    assert!(maps.get_opt("m").await?.is_none());
    later.stop().await
}
