//! Records changed by other clients, and orphaned records.

use std::time::Duration;

use anyhow::Result;
use aro_crds::work::v1::{ConditionRule, ConditionRuleType, ManifestConfigOption};
use aro_fixtures::wait;
use aro_maestro_e2e::agent::{Agent, is};
use aro_maestro_e2e::request_counter::RequestCounter;
use aro_maestro_e2e::world::{World, config_map};
use aro_runtime::SystemClock;
use aro_work_engine::{EngineOptions, Work};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::{config, work};

pub(super) async fn record_deleted_by_another_client_keeps_its_objects(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("record").await?);
    let agent = Agent::start(world, &hub);
    let maps = world.config_maps(&namespace);
    let records = world.objects("work.open-cluster-management.io/v1", "AppliedManifestWork", "");
    agent.put(work("w", 1, vec![config_map(&namespace, "m", "1")]));
    agent.wait_settled("w", 1).await?;
    let (name, before) = (format!("{hub}-w"), maps.get("m").await?.metadata.uid);
    let old = records.get(&name).await?.metadata.uid;
    records.delete(&name, &DeleteParams::default()).await?;
    let new = wait::until("another record that owns the object", || async {
        let Some(record) = records.get_opt(&name).await? else { return Ok(None) };
        let owners = maps.get("m").await?.metadata.owner_references.unwrap_or_default();
        let owned = owners.iter().any(|owner| Some(&owner.uid) == record.metadata.uid.as_ref());
        Ok((record.metadata.uid != old && owned).then_some(record))
    })
    .await?;
    assert_ne!(new.metadata.uid, old);
    assert_eq!(maps.get("m").await?.metadata.uid, before, "the object was there all the time");
    agent.stop().await
}

pub(super) async fn orphaned_records_are_evicted_if_configured(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("evicted").await?);
    let maps = world.config_maps(&namespace);
    let agent = Agent::start(world, &hub);
    for name in ["wanted", "unwanted"] {
        agent.put(work(name, 1, vec![config_map(&namespace, name, "1")]));
        agent.wait_settled(name, 1).await?;
    }
    agent.stop().await?;
    let keeping = Agent::start(world, &hub);
    keeping.engine.resume();
    keeping.engine.synced().await;
    keeping.wait_idle("unwanted").await?;
    assert!(maps.get_opt("unwanted").await?.is_some(), "nothing is evicted unless that is wanted");
    keeping.stop().await?;

    let options = EngineOptions {
        eviction_grace: Some(Duration::from_millis(100)),
        ..EngineOptions::new(hub.clone(), SystemClock::shared())
    };
    let evicting = Agent::with(world, world.client.clone(), options);
    evicting.put(work("wanted", 1, vec![config_map(&namespace, "wanted", "1")]));
    evicting.engine.resume();
    evicting.wait_deleted("unwanted").await?;
    assert!(maps.get_opt("unwanted").await?.is_none() && maps.get_opt("wanted").await?.is_some());
    evicting.stop().await
}

/// Killed between applying an object and recording it: the next process only has the deletion of the work, or another
/// version.
pub(super) async fn applied_but_unrecorded_objects_are_deleted_with_their_work(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("unnoted").await?);
    let maps = world.config_maps(&namespace);
    let records = world.objects("work.open-cluster-management.io/v1", "AppliedManifestWork", "");
    let notes = |method: &str, path: &str| {
        let (path, _) = path.split_once('?').unwrap_or((path, ""));
        method == "PATCH" && path.contains("/appliedmanifestworks/") && path.ends_with("/status")
    };
    let (_, client) = RequestCounter::on(&world.client, notes);
    let cut_off = Agent::with(world, client, EngineOptions::new(hub.clone(), SystemClock::shared()));
    for name in ["deleted", "changed"] {
        cut_off.put(work(name, 1, vec![config_map(&namespace, name, "1")]));
        cut_off.wait_settled(name, 1).await?;
        let record = records.get(&format!("{hub}-{name}")).await?;
        assert!(record.data.get("status").is_none_or(|status| status["appliedResources"].is_null()));
    }
    cut_off.stop().await?;

    let next = Agent::start(world, &hub);
    next.engine.delete("deleted");
    next.wait_deleted("deleted").await?;
    assert!(maps.get_opt("deleted").await?.is_none(), "no other work owned it");
    next.put(work("changed", 2, vec![config_map(&namespace, "another", "1")]));
    next.wait_settled("changed", 2).await?;
    wait::until("the end of what is no longer named", || async {
        Ok(maps.get_opt("changed").await?.is_none().then_some(()))
    })
    .await?;
    assert!(maps.get_opt("another").await?.is_some());
    next.stop().await
}

pub(super) async fn complete_work_is_not_reconciled_again(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("complete").await?);
    let agent = Agent::start(world, &hub);
    let maps = world.config_maps(&namespace);
    let rule = ConditionRule {
        condition: "Complete".to_owned(),
        kind: ConditionRuleType::Cel,
        cel_expressions: vec!["has(object.data.done) && object.data.done == 'yes'".to_owned()],
        message_expression: "result ? 'it is done' : 'not yet'".to_owned(),
        ..ConditionRule::default()
    };
    let configs = vec![ManifestConfigOption { condition_rules: vec![rule], ..config(&namespace, "m") }];
    agent.put(Work { configs: configs.clone(), ..work("w", 1, vec![config_map(&namespace, "m", "1")]) });
    agent.wait_for("w", "not complete", |told| is(told, "Complete", "False")).await?;
    maps.patch("m", &PatchParams::default(), &Patch::Merge(json!({"data": {"done": "yes"}}))).await?;
    let told = agent.wait_for("w", "complete", |told| is(told, "Complete", "True")).await?;
    assert!(
        told.status
            .conditions
            .iter()
            .any(|c| c.reason == "ConditionRulesAggregated" && c.message == "it is done")
    );
    maps.patch("m", &PatchParams::default(), &Patch::Merge(json!({"data": {"a": "theirs"}}))).await?;
    agent.wait_idle("w").await?;
    assert_eq!(maps.get("m").await?.data["data"]["a"], "theirs", "a complete work is not written");
    agent.put(Work { configs, ..work("w", 2, vec![config_map(&namespace, "m", "2")]) });
    wait::until("a new generation", || async {
        Ok(maps.get_opt("m").await?.filter(|map| map.data["data"]["a"] == "2"))
    })
    .await?;
    agent.stop().await
}
