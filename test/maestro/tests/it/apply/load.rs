//! Many works at once.

use anyhow::Result;
use aro_maestro_e2e::agent::Agent;
use aro_maestro_e2e::world::{World, config_map, on_ours};

use super::work;

/// Not a benchmark: all are applied, each is reported once, all are deleted.
async fn many_works_are_applied_and_deleted(world: &World) -> Result<()> {
    const WORKS: usize = 500;
    let (hub, namespace) = (world.word("hub"), world.namespace("load").await?);
    let agent = Agent::start(world, &hub);
    for number in 0..WORKS {
        let manifests = ["a", "b", "c"].map(|part| config_map(&namespace, &format!("w{number}-{part}"), "1"));
        agent.put(work(&format!("w{number}"), 1, manifests.to_vec()));
    }
    for number in 0..WORKS {
        agent.wait_settled(&format!("w{number}"), 1).await?;
    }
    agent.wait_idle("w0").await?;
    let again = (0..WORKS).filter(|number| agent.told(&format!("w{number}")).len() != 1).count();
    assert_eq!(again, 0, "each is reported once");
    for number in 0..WORKS {
        agent.engine.delete(&format!("w{number}"));
    }
    for number in 0..WORKS {
        agent.wait_deleted(&format!("w{number}")).await?;
    }
    let left = world.config_maps(&namespace).list(&kube::api::ListParams::default()).await?;
    assert!(left.items.iter().all(|map| map.metadata.name.as_deref() == Some("kube-root-ca.crt")));
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn many_works_on_our_api_server() -> Result<()> {
    on_ours(many_works_are_applied_and_deleted).await
}
