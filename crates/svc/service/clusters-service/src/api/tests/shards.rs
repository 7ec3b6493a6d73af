//! Provision shards.

use serde_json::json;

use super::bodies;
use super::fixture::{ARO, Fixture, V1};

#[tokio::test]
async fn a_new_shard_is_in_maintenance_and_only_its_status_changes() {
    let fixture = Fixture::new().await;
    let shards = format!("{ARO}/provision_shards");
    let mut active = bodies::shard(1);
    active["status"] = json!("active");
    assert_eq!(fixture.post(&shards, active).await.fields(400), ["status"]);
    let shard = fixture.post(&shards, bodies::shard(1)).await.expect(201);
    assert_eq!((&shard["status"], &shard["topology"]), (&json!("maintenance"), &json!("shared")));
    assert_eq!(shard["management_cluster"], "dev-westus3-mgmt-1");
    assert_eq!(shard["region"]["href"], "/api/clusters_mgmt/v1/cloud_providers/azure/regions/westus3");
    let href = shard["href"].as_str().unwrap().to_owned();
    assert!(href.starts_with("/api/aro_hcp/v1alpha1/provision_shards/"));
    let changed =
        fixture.patch(&href, json!({"kind": "ProvisionShard", "status": "offline"})).await.expect(200);
    assert_eq!(changed["status"], "offline");
    let moved = json!({"region": {"id": "uksouth"}, "maestro_config": {"consumer_name": "other"}});
    let fields = fixture.patch(&href, moved).await.fields(400);
    assert_eq!(fields, ["maestro_config.consumer_name", "region.id"]);
    let read = fixture.get(&href.replace(ARO, V1)).await.expect(200);
    assert_eq!(read["href"], href, "the address is the same on both roots");
    fixture.patch(&href.replace(ARO, V1), json!({"status": "active"})).await.expect(200);
}

#[tokio::test]
async fn a_cluster_or_consumer_that_another_shard_has_conflicts() {
    let fixture = Fixture::new().await;
    let shards = format!("{ARO}/provision_shards");
    let shard = fixture.post(&shards, bodies::shard(1)).await.expect(201);
    let mut same_aks = bodies::shard(2);
    same_aks["azure_shard"]["aks_management_cluster_resource_id"] =
        bodies::shard(1)["azure_shard"]["aks_management_cluster_resource_id"].clone();
    let fields = fixture.post(&shards, same_aks).await.fields(409);
    assert_eq!(fields, ["azure_shard.aks_management_cluster_resource_id"]);
    let mut same_consumer = bodies::shard(2);
    same_consumer["maestro_config"]["consumer_name"] = json!("hcp-underlay-westus3-mgmt-1");
    let answer = fixture.post(&shards, same_consumer.clone()).await;
    assert_eq!(answer.fields(409), ["maestro_config.rest_api_config.url"]);
    same_consumer["maestro_config"]["rest_api_config"]["url"] = json!("http://other:8000");
    assert_eq!(
        fixture.post(&shards, same_consumer).await.fields(409),
        ["maestro_config.grpc_api_config.url"]
    );
    let mut same_id = bodies::shard(2);
    same_id["id"] = shard["id"].clone();
    fixture.post(&shards, same_id).await.expect(409);
    fixture.post(&shards, bodies::shard(2)).await.expect(201);
}

#[tokio::test]
async fn all_errors_of_a_shard_are_reported_at_once() {
    let fixture = Fixture::new().await;
    let mut body = bodies::shard(1);
    body["id"] = json!("not-a-uuid");
    body["region"] = json!({"kind": "CloudRegion"});
    body["azure_shard"]["aks_management_cluster_resource_id"] = json!("mgmt-1");
    body["azure_shard"]["cx_secrets_key_vault_url"] = json!("https://a.b.vault.azure.net/");
    body["maestro_config"]["rest_api_config"]["url"] = json!("maestro:8000");
    body["maestro_config"]["grpc_api_config"]["url"] = json!("http://maestro:8090");
    let fields = fixture.post(&format!("{ARO}/provision_shards"), body).await.fields(400);
    assert_eq!(
        fields,
        [
            "azure_shard.aks_management_cluster_resource_id",
            "azure_shard.cx_secrets_key_vault_url",
            "id",
            "maestro_config.grpc_api_config.url",
            "maestro_config.rest_api_config.url",
            "region.id",
        ]
    );
}

#[tokio::test]
async fn a_shard_with_clusters_is_not_deleted_and_a_deleted_one_can_be_registered_again() {
    let fixture = Fixture::new().await;
    let shards = format!("{ARO}/provision_shards");
    let id = fixture.active_shard(1).await;
    fixture.cluster("one").await;
    assert!(fixture.delete(&format!("{shards}/{id}")).await.reason(409).contains("1 clusters"));
    let other = fixture.active_shard(2).await;
    fixture.delete(&format!("{shards}/{other}")).await.expect(204);
    fixture.get(&format!("{shards}/{other}")).await.expect(404);
    fixture.active_shard(2).await;
    let found = fixture
        .list(&shards, &[("search", "maestro_config.consumer_name = 'hcp-underlay-westus3-mgmt-2'")])
        .await;
    assert_eq!(found.expect(200)["total"], 1);
}
