//! The number of requests to the API server.

use std::time::Duration;

use anyhow::Result;
use aro_fixtures::wait;
use aro_maestro_e2e::agent::Agent;
use aro_maestro_e2e::request_counter::RequestCounter;
use aro_maestro_e2e::world::{World, config_map, on_ours};
use aro_runtime::SystemClock;
use aro_work_engine::{EngineOptions, Work};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::{reporting, work};

async fn new_work_costs_only_its_writes(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("cost").await?);
    let (request_counter, client) = RequestCounter::on(&world.client, |_, _| false);
    let agent = Agent::with(world, client, EngineOptions::new(hub, SystemClock::shared()));
    let three = |name: &str, value: &str| {
        ["a", "b", "c"].map(|part| config_map(&namespace, &format!("{name}-{part}"), value)).to_vec()
    };
    // The first one opens the watch and discovers the served resources.
    agent.put(work("first", 1, three("first", "1")));
    agent.wait_settled("first", 1).await?;
    agent.wait_idle("first").await?;
    request_counter.clear();
    for number in 0..20 {
        let name = format!("w{number}");
        agent.put(work(&name, 1, three(&name, "1")));
    }
    for number in 0..20 {
        agent.wait_settled(&format!("w{number}"), 1).await?;
    }
    assert_eq!(agent.wait_idle("w0").await?, 1);
    let counts = ["GET", "POST", "PATCH", "PUT", "DELETE"].map(|method| request_counter.count(method, ""));
    assert_eq!(counts, [0, 20, 20 + 60, 0, 0], "one record, its status, and three objects for each");

    request_counter.clear();
    agent.put(work("w0", 2, three("w0", "2")));
    agent.wait_settled("w0", 2).await?;
    agent.wait_idle("w0").await?;
    let counts = ["GET", "POST", "PATCH", "PUT", "DELETE"].map(|method| request_counter.count(method, ""));
    assert_eq!(counts, [0, 0, 3, 0, 0], "the same objects need no new record");

    request_counter.clear();
    agent.engine.delete("w0");
    agent.wait_deleted("w0").await?;
    let counts = ["GET", "POST", "PATCH", "PUT", "DELETE"].map(|method| request_counter.count(method, ""));
    assert_eq!(counts, [0, 0, 1, 0, 4], "three objects and the record, which is let go");
    agent.stop().await
}

async fn unwatchable_resource_is_read(world: &World) -> Result<()> {
    let (hub, namespace) = (world.word("hub"), world.namespace("blind").await?);
    let refuse = |method: &str, path: &str| {
        let (path, _) = path.split_once('?').unwrap_or((path, ""));
        method == "GET" && path.ends_with("/configmaps")
    };
    let (_, client) = RequestCounter::on(&world.client, refuse);
    let options =
        EngineOptions { poll: Duration::from_millis(50), ..EngineOptions::new(hub, SystemClock::shared()) };
    let agent = Agent::with(world, client, options);
    let maps = world.config_maps(&namespace);
    agent.put(Work {
        configs: vec![reporting(&namespace, "m")],
        ..work("w", 1, vec![config_map(&namespace, "m", "1")])
    });
    agent.wait_settled("w", 1).await?;
    let patch = Patch::Merge(json!({"data": {"a": "theirs"}}));
    maps.patch("m", &PatchParams::default(), &patch).await?;
    let is_ours = || async { Ok(maps.get_opt("m").await?.filter(|map| map.data["data"]["a"] == "1")) };
    wait::until("ours again", is_ours).await?;
    maps.delete("m", &DeleteParams::default()).await?;
    wait::until("there again", is_ours).await?;
    agent.engine.delete("w");
    agent.wait_deleted("w").await?;
    assert!(maps.get_opt("m").await?.is_none());
    agent.stop().await
}

async fn both(world: &World) -> Result<()> {
    new_work_costs_only_its_writes(world).await?;
    unwatchable_resource_is_read(world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_few() -> Result<()> {
    on_ours(both).await
}
