//! Records that others meddle with, and records nobody asks for.

use std::time::Duration;

use anyhow::Result;
use aro_crds::work::v1::{ConditionRule, ConditionRuleType, ManifestConfigOption};
use aro_fixtures::wait;
use aro_maestro_e2e::agent::{Agent, is};
use aro_maestro_e2e::spy::Spy;
use aro_maestro_e2e::world::{World, config_map};
use aro_runtime::SystemClock;
use aro_work_engine::{EngineOptions, Work};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::{config, work};

pub(super) async fn a_record_that_somebody_deletes_takes_nothing_with_it(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("record").await?);
    let agent = Agent::start(world, &hub);
    let maps = world.config_maps(&namespace);
    let records = world.objects("work.open-cluster-management.io/v1", "AppliedManifestWork", "");
    agent.put(work("w", 1, vec![config_map(&namespace, "m", "1")]));
    agent.settles("w", 1).await?;
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

pub(super) async fn records_nobody_asks_for_are_evicted_if_that_is_wanted(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("evicted").await?);
    let maps = world.config_maps(&namespace);
    let agent = Agent::start(world, &hub);
    for name in ["wanted", "unwanted"] {
        agent.put(work(name, 1, vec![config_map(&namespace, name, "1")]));
        agent.settles(name, 1).await?;
    }
    agent.stop().await?;
    let keeping = Agent::start(world, &hub);
    keeping.engine.resume();
    keeping.engine.synced().await;
    keeping.rests("unwanted").await?;
    assert!(maps.get_opt("unwanted").await?.is_some(), "nothing is evicted unless that is wanted");
    keeping.stop().await?;

    let options = EngineOptions {
        eviction_grace: Some(Duration::from_millis(100)),
        ..EngineOptions::new(hub.clone(), SystemClock::shared())
    };
    let evicting = Agent::with(world, world.client.clone(), options);
    evicting.put(work("wanted", 1, vec![config_map(&namespace, "wanted", "1")]));
    evicting.engine.resume();
    evicting.loses("unwanted").await?;
    assert!(maps.get_opt("unwanted").await?.is_none() && maps.get_opt("wanted").await?.is_some());
    evicting.stop().await
}

/// Killed between bringing an object and noting that: the next process knows nothing of the work but that it is to go, or
/// what else it is to be.
pub(super) async fn what_was_brought_but_not_noted_goes_with_its_work(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("unnoted").await?);
    let maps = world.config_maps(&namespace);
    let records = world.objects("work.open-cluster-management.io/v1", "AppliedManifestWork", "");
    let notes = |method: &str, path: &str| {
        let (path, _) = path.split_once('?').unwrap_or((path, ""));
        method == "PATCH" && path.contains("/appliedmanifestworks/") && path.ends_with("/status")
    };
    let (_, client) = Spy::on(&world.client, notes);
    let cut_off = Agent::with(world, client, EngineOptions::new(hub.clone(), SystemClock::shared()));
    for name in ["deleted", "changed"] {
        cut_off.put(work(name, 1, vec![config_map(&namespace, name, "1")]));
        cut_off.settles(name, 1).await?;
        let record = records.get(&format!("{hub}-{name}")).await?;
        assert!(record.data.get("status").is_none_or(|status| status["appliedResources"].is_null()));
    }
    cut_off.stop().await?;

    let next = Agent::start(world, &hub);
    next.engine.delete("deleted");
    next.loses("deleted").await?;
    assert!(maps.get_opt("deleted").await?.is_none(), "it was nobody else's");
    next.put(work("changed", 2, vec![config_map(&namespace, "another", "1")]));
    next.settles("changed", 2).await?;
    wait::until("the end of what is no longer named", || async {
        Ok(maps.get_opt("changed").await?.is_none().then_some(()))
    })
    .await?;
    assert!(maps.get_opt("another").await?.is_some());
    next.stop().await
}

pub(super) async fn a_complete_work_is_left_alone(world: &World) -> Result<()> {
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
    agent.hears("w", "not complete", |told| is(told, "Complete", "False")).await?;
    maps.patch("m", &PatchParams::default(), &Patch::Merge(json!({"data": {"done": "yes"}}))).await?;
    let told = agent.hears("w", "complete", |told| is(told, "Complete", "True")).await?;
    assert!(
        told.status
            .conditions
            .iter()
            .any(|c| c.reason == "ConditionRulesAggregated" && c.message == "it is done")
    );
    maps.patch("m", &PatchParams::default(), &Patch::Merge(json!({"data": {"a": "theirs"}}))).await?;
    agent.rests("w").await?;
    assert_eq!(maps.get("m").await?.data["data"]["a"], "theirs", "nobody writes what is complete");
    agent.put(Work { configs, ..work("w", 2, vec![config_map(&namespace, "m", "2")]) });
    wait::until("a new generation", || async {
        Ok(maps.get_opt("m").await?.filter(|map| map.data["data"]["a"] == "2"))
    })
    .await?;
    agent.stop().await
}
