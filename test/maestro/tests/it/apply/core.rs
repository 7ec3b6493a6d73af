//! Applying, and its reports.

use anyhow::{Context as _, Result};
use aro_crds::work::v1::AppliedManifestWork;
use aro_fixtures::wait;
use aro_maestro_e2e::agent::{Agent, is, value};
use aro_maestro_e2e::world::{World, config_map};
use aro_work_engine::Work;
use kube::Api;
use serde_json::json;

use super::{reporting, work};

pub(super) async fn objects_are_applied_and_reported_once(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.word("new"));
    let agent = Agent::start(world, &hub);
    let manifests = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": &namespace, "creationTimestamp": null}, "status": {}}),
        config_map(&namespace, "one", "1"),
        config_map(&namespace, "two", "2"),
    ];
    let labels = [("app".to_owned(), "x".to_owned())].into();
    agent.put(Work { configs: vec![reporting(&namespace, "one")], labels, ..work("w", 3, manifests) });
    let told = agent.wait_settled("w", 3).await?;
    assert_eq!(value(&told.status, 1, "a").and_then(|value| value.string).as_deref(), Some("1"));
    assert!(told.times.applied.is_some());
    assert_eq!(agent.wait_idle("w").await?, 1, "one report says it all: {:#?}", agent.told("w"));

    let records: Api<AppliedManifestWork> = Api::all(world.client.clone());
    let record = records.get(&format!("{hub}-w")).await?;
    assert_eq!(
        serde_json::to_value(&record.spec)?,
        json!({"hubHash": hub, "agentID": hub, "manifestWorkName": "w"})
    );
    assert_eq!(record.metadata.labels, Some([("app".to_owned(), "x".to_owned())].into()));
    let applied = record.status.context("a status")?.applied_resources;
    let names: Vec<(&str, &str)> =
        applied.iter().map(|entry| (entry.resource.as_str(), entry.name.as_str())).collect();
    assert_eq!(names, [("configmaps", "one"), ("configmaps", "two"), ("namespaces", namespace.as_str())]);
    let one = world.config_maps(&namespace).get("one").await?;
    assert_eq!(one.metadata.uid.as_deref(), Some(applied[0].uid.as_str()));
    let owners = one.metadata.owner_references.unwrap_or_default();
    assert_eq!(owners.iter().map(|owner| Some(owner.uid.clone())).collect::<Vec<_>>(), [record.metadata.uid]);
    agent.stop().await
}

pub(super) async fn definition_and_its_objects_are_applied_in_one_work(world: &World) -> Result<()> {
    let (hub, group, namespace) = (world.word("hub"), world.word("group"), world.namespace("crd").await?);
    let agent = Agent::start(world, &hub);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}.example")},
        "spec": {
            "group": format!("{group}.example"), "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    let thing = json!({"apiVersion": format!("{group}.example/v1"), "kind": "Thing", "spec": {"x": 1},
        "metadata": {"name": "t", "namespace": &namespace}});
    agent.put(work("w", 1, vec![thing, definition]));
    agent.wait_settled("w", 1).await?;
    let told = agent.told("w");
    assert!(told.iter().all(|told| is(told, "Applied", "True")), "a moment's failure is not told: {told:#?}");
    agent.engine.delete("w");
    agent.wait_deleted("w").await?;
    agent.stop().await
}

pub(super) async fn invalid_manifest_does_not_block_the_others(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("bad").await?);
    let agent = Agent::start(world, &hub);
    let mut bad = config_map(&namespace, "bad", "1");
    bad["data"] = json!(7);
    let late = world.word("late");
    let manifests = vec![
        bad,
        json!({"apiVersion": "no.such/v1", "kind": "Nothing", "metadata": {"name": "x"}}),
        config_map(&late, "waits", "1"),
        config_map(&namespace, "good", "1"),
    ];
    agent.put(work("w", 1, manifests));
    let told = agent.wait_for("w", "a failure", |told| is(told, "Applied", "False")).await?;
    let words = |ordinal: usize| {
        let conditions = &told.status.resource_status.manifests[ordinal].conditions;
        conditions.iter().map(|c| format!("{}={} {}", c.type_, c.status, c.reason)).collect::<Vec<_>>()
    };
    assert_eq!(words(0), ["Applied=False AppliedManifestFailed", "Available=False ResourceNotAvailable"]);
    assert_eq!(words(1), ["Applied=False AppliedManifestFailed", "Available=Unknown IncompleteResourceMeta"]);
    assert_eq!(words(3)[..2], ["Applied=True AppliedManifestComplete", "Available=True ResourceAvailable"]);
    world.config_maps(&namespace).get("good").await?;

    // A namespace that another work creates is found at once.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": &late}});
    agent.put(work("other", 1, vec![namespace]));
    let maps = world.config_maps(&late);
    wait::until("what waited for its namespace", || async { Ok(maps.get_opt("waits").await?) }).await?;
    agent.stop().await
}

pub(super) async fn ocm_632_rapid_edits_leave_no_orphans(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("edits").await?);
    let agent = Agent::start(world, &hub);
    for generation in 1..=20_i64 {
        let names =
            [format!("m{}", generation % 3), format!("n{}", generation % 5), format!("o{generation}")];
        let manifests =
            names.iter().map(|name| config_map(&namespace, name, &generation.to_string())).collect();
        agent.put(work("w", generation, manifests));
        if generation % 4 == 0 {
            tokio::task::yield_now().await;
        }
    }
    agent.wait_settled("w", 20).await?;
    let maps = world.config_maps(&namespace);
    wait::until("only what the last edit names", || async {
        let all = maps.list(&kube::api::ListParams::default()).await?;
        let mut names: Vec<String> = all.items.into_iter().filter_map(|map| map.metadata.name).collect();
        names.retain(|name| name != "kube-root-ca.crt");
        names.sort();
        Ok((names == ["m2", "n0", "o20"]).then_some(()))
    })
    .await?;
    agent.stop().await
}

pub(super) async fn object_of_two_works_stays_until_both_are_deleted(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("shared").await?);
    let (one, two) = (Agent::start(world, &hub), Agent::start(world, &world.word("other-hub")));
    let maps = world.config_maps(&namespace);
    let shared = || vec![config_map(&namespace, "shared", "1")];
    for (agent, name) in [(&one, "a"), (&one, "b"), (&two, "c")] {
        agent.put(work(name, 1, shared()));
        agent.wait_settled(name, 1).await?;
    }
    let owners = || async {
        let owners = maps.get_opt("shared").await?.and_then(|map| map.metadata.owner_references);
        Ok::<_, anyhow::Error>(owners.unwrap_or_default().len())
    };
    wait::until("three owners", || async { Ok((owners().await? == 3).then_some(())) }).await?;
    for (agent, name, left) in [(&one, "a", 2), (&two, "c", 1)] {
        agent.engine.delete(name);
        agent.wait_deleted(name).await?;
        assert_eq!(owners().await?, left);
    }
    one.engine.delete("b");
    one.wait_deleted("b").await?;
    assert!(maps.get_opt("shared").await?.is_none());
    one.stop().await?;
    two.stop().await
}
