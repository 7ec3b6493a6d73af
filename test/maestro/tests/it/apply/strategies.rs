//! Update strategies.

use anyhow::Result;
use aro_crds::work::v1::{
    IgnoreField, IgnoreFieldCondition, ManifestConfigOption, ServerSideApplyConfig, UpdateStrategy,
    UpdateStrategyType,
};
use aro_fixtures::wait;
use aro_maestro_e2e::agent::{Agent, is, value};
use aro_maestro_e2e::world::{World, config_map};
use aro_work_engine::Work;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use super::{config, strategy, work};

pub(super) async fn each_update_strategy_is_honoured(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("strategies").await?);
    let agent = Agent::start(world, &hub);
    let maps = world.config_maps(&namespace);
    let theirs = |name: &str| serde_json::from_value(config_map(&namespace, name, "theirs"));
    for name in ["kept", "read"] {
        maps.create(&PostParams::default(), &theirs(name)?).await?;
    }
    let applied = |condition, path: &str| ManifestConfigOption {
        update_strategy: Some(UpdateStrategy {
            kind: UpdateStrategyType::ServerSideApply,
            server_side_apply: Some(ServerSideApplyConfig {
                force: true,
                ignore_fields: vec![IgnoreField {
                    condition,
                    json_paths: vec![path.to_owned()],
                    ..IgnoreField::default()
                }],
                ..ServerSideApplyConfig::default()
            }),
        }),
        ..config(&namespace, "part")
    };
    let manifests = |value: &str| {
        ["made", "kept", "read", "absent", "part"].map(|name| config_map(&namespace, name, value)).to_vec()
    };
    let configs = vec![
        strategy(&namespace, "made", UpdateStrategyType::CreateOnly),
        strategy(&namespace, "kept", UpdateStrategyType::CreateOnly),
        strategy(&namespace, "read", UpdateStrategyType::ReadOnly),
        strategy(&namespace, "absent", UpdateStrategyType::ReadOnly),
        applied(IgnoreFieldCondition::OnSpokePresent, ".data.a"),
    ];
    agent.put(Work { configs: configs.clone(), ..work("w", 1, manifests("1")) });
    let told = agent.wait_for("w", "all but one is there", |told| is(told, "Available", "False")).await?;
    assert!(is(&told, "Applied", "True"));
    let values =
        |status| [0, 1, 2, 3].map(|ordinal| value(status, ordinal, "a").and_then(|value| value.string));
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(values(&told.status), [some("1"), some("theirs"), some("theirs"), None]);
    let owned = |name: &'static str| {
        let maps = maps.clone();
        async move { anyhow::Ok(maps.get(name).await?.metadata.owner_references.unwrap_or_default().len()) }
    };
    assert_eq!((owned("made").await?, owned("kept").await?, owned("read").await?), (1, 1, 0));

    // A read-only object is reported once it exists.
    maps.create(&PostParams::default(), &theirs("absent")?).await?;
    agent.wait_settled("w", 1).await?;

    // A read-only object is not written, and a create-only object is not written again.
    maps.patch("part", &PatchParams::default(), &Patch::Merge(json!({"data": {"a": "theirs"}}))).await?;
    maps.patch("made", &PatchParams::default(), &Patch::Merge(json!({"data": {"a": "theirs"}}))).await?;
    let mut changed = manifests("2");
    changed[4]["data"]["b"] = json!("2");
    agent.put(Work { configs, ..work("w", 2, changed) });
    agent.wait_settled("w", 2).await?;
    let part = wait::until("the rest is written", || async {
        Ok(maps.get_opt("part").await?.filter(|map| map.data["data"]["b"] == "2"))
    })
    .await?;
    assert_eq!(part.data["data"]["a"], "theirs");
    assert_eq!(maps.get("made").await?.data["data"]["a"], "theirs");
    agent.stop().await
}
