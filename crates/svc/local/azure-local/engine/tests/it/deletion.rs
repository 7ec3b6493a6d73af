use std::time::Duration;

use aro_base::SignedDuration;
use serde_json::json;

use crate::world::{GROUPS, World, network};

async fn fill(world: &World, group: &str) {
    let vnet = json!({"location": "westus3", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
        "subnets": [{"name": "s", "properties": {"addressPrefix": "10.0.0.0/24"}}]}});
    world.put(&network(group, "virtualNetworks/v"), vnet).await.expect(201);
    world.put(&network(group, "publicIPAddresses/p"), json!({"location": "westus3"})).await.expect(201);
    let base = format!("{group}/providers/Microsoft.Network");
    let nic = json!({"location": "westus3", "properties": {"ipConfigurations": [{"name": "c", "properties": {
        "subnet": {"id": format!("{base}/virtualNetworks/v/subnets/s")},
        "publicIPAddress": {"id": format!("{base}/publicIPAddresses/p")}}}]}});
    world.put(&network(group, "networkInterfaces/n"), nic).await.expect(201);
}

#[tokio::test]
async fn a_group_goes_with_its_content_dependents_first() {
    let world = World::new().await;
    let group = world.group("g").await;
    fill(&world, &group).await;
    let path = format!("{group}?api-version={GROUPS}");
    let accepted = world.delete(&path).await.expect(202);
    let location = accepted.headers["location"].to_str().unwrap().replace("https://management.azure.com", "");
    world.until_gone(&path).await;
    world.get(&location).await.expect(200);
    let gone = || {
        let log = world.cloud.mutations().after(None, 100).unwrap().entries.into_iter();
        let deleted = log.filter(|entry| entry.outcome == aro_azure_local_engine::Change::Deleted);
        deleted.map(|entry| entry.resource_id.rsplit('/').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // The log follows the commit that made the group disappear.
    let logged = async {
        while !gone().contains(&"g".to_owned()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), logged).await.expect("the deletion is logged");
    let gone = gone();
    let at = |name: &str| gone.iter().position(|known| known == name).unwrap();
    assert!(at("n") < at("v") && at("n") < at("p") && at("p") < at("g"), "{gone:?}");
    world.group("g").await;
}

#[tokio::test]
async fn a_group_deletion_that_was_accepted_continues_after_a_restart() {
    let world = World::new().await;
    let (group, other) = (world.group("g").await, world.group("other").await);
    fill(&world, &group).await;
    // A reference from outside blocks the group until it is gone.
    let subnet = format!("{group}/providers/Microsoft.Network/virtualNetworks/v/subnets/s");
    let nic = json!({"location": "westus3", "properties": {"ipConfigurations": [{"name": "c", "properties": {"subnet": {"id": subnet}}}]}});
    world.put(&network(&other, "networkInterfaces/x"), nic).await.expect(201);
    let path = format!("{group}?api-version={GROUPS}");
    world.delete(&path).await.expect(202);
    let refused =
        world.put(&network(&group, "publicIPAddresses/q"), json!({"location": "westus3"})).await.expect(409);
    assert_eq!(refused.code(), "ResourceGroupBeingDeleted");
    let world = world.restart(Duration::ZERO).await;
    assert_eq!(world.get(&path).await.expect(200).body["properties"]["provisioningState"], "Deleting");
    world.delete(&network(&other, "networkInterfaces/x")).await.expect(202);
    world.until_gone(&path).await;
}

#[tokio::test]
async fn an_operation_takes_its_time_and_the_clock_ends_it() {
    let world = World::with_operation_time(Duration::from_mins(1)).await;
    let group = world.group("g").await;
    let path = network(&group, "publicIPAddresses/p");
    let created = world.put(&path, json!({"location": "westus3"})).await.expect(201);
    assert_eq!(created.body["properties"]["provisioningState"], "Creating");
    let operation =
        created.headers["azure-asyncoperation"].to_str().unwrap().replace("https://management.azure.com", "");
    assert_eq!(world.get(&operation).await.expect(200).body["status"], "InProgress");
    world.clock.advance(SignedDuration::from_secs(61));
    assert_eq!(world.get(&operation).await.expect(200).body["status"], "Succeeded");
    assert_eq!(world.get(&path).await.body["properties"]["provisioningState"], "Succeeded");
}
