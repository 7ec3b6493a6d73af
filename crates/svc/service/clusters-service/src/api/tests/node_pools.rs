//! Node pools and external auths.

use aro_ocm::{ClusterState, NodePoolStateValue};
use serde_json::json;

use super::bodies;
use super::fixture::Fixture;

async fn ready_pool(fixture: &Fixture) -> (String, String) {
    let href = fixture.ready_cluster("one").await;
    fixture.post(&format!("{href}/node_pools"), bodies::node_pool("np1")).await.expect(202);
    let pool = format!("{href}/node_pools/np1");
    fixture.set_pool_state(&pool, NodePoolStateValue::Ready).await;
    (href, pool)
}

#[tokio::test]
async fn a_pool_inherits_the_drain_period_and_keeps_it() {
    let fixture = Fixture::with_shard().await;
    let (href, pool) = ready_pool(&fixture).await;
    let read = fixture.get(&pool).await.expect(200);
    assert_eq!(read["node_drain_grace_period"], json!({"unit": "minutes", "value": 7}));
    assert_eq!(read["status"]["state"]["value"], "ready");
    fixture
        .patch(&href, json!({"node_drain_grace_period": {"unit": "minutes", "value": 1}}))
        .await
        .expect(202);
    fixture.patch(&pool, json!({"labels": {"x": "y"}})).await.expect(202);
    let read = fixture.get(&pool).await.expect(200);
    assert_eq!(read["node_drain_grace_period"]["value"], 7);
    assert_eq!(read["labels"], json!({"x": "y"}), "replaced");
    let cleared =
        fixture.patch(&pool, json!({"node_drain_grace_period": null, "taints": null})).await.expect(202);
    assert_eq!(cleared["node_drain_grace_period"]["value"], 1, "inherited again");
    assert!(cleared.get("taints").is_none(), "the last taint can be removed");
}

#[tokio::test]
async fn replicas_and_autoscaling_clear_each_other() {
    let fixture = Fixture::with_shard().await;
    let (_, pool) = ready_pool(&fixture).await;
    let bounds = json!({"autoscaling": {"kind": "NodePoolAutoscaling", "min_replica": 1, "max_replica": 5}});
    let scaled = fixture.patch(&pool, bounds).await.expect(202);
    assert!(scaled.get("replicas").is_none());
    assert_eq!(scaled["autoscaling"]["max_replica"], 5);
    assert_eq!(scaled["status"]["state"]["value"], "updating");
    let fixed = fixture.patch(&pool, json!({"replicas": 3})).await.expect(202);
    assert_eq!((&fixed["replicas"], fixed.get("autoscaling")), (&json!(3), None));
    let both = json!({"replicas": 3, "autoscaling": {"min_replica": 1, "max_replica": 2}});
    fixture.patch(&pool, both).await.expect(400);
    fixture.patch(&pool, json!({"replicas": 3})).await.expect(202);
}

#[tokio::test]
async fn a_scale_and_an_upgrade_in_the_same_second_both_survive() {
    let fixture = Fixture::with_shard().await;
    let (_, pool) = ready_pool(&fixture).await;
    let policies = format!("{pool}/upgrade_policies");
    let (scale, policy) = tokio::join!(
        fixture.patch(&pool, json!({"replicas": 9})),
        fixture.post(&policies, json!({"kind": "NodePoolUpgradePolicy", "version": "4.20.10"})),
    );
    scale.expect(202);
    policy.expect(201);
    assert_eq!(fixture.get(&pool).await.expect(200)["replicas"], 9);
    let listed = fixture.list(&policies, &[("order", "creation_timestamp desc")]).await.expect(200);
    assert_eq!(listed["items"][0]["version"], "4.20.10");
}

#[tokio::test]
async fn all_errors_of_a_pool_are_reported_at_once() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.ready_cluster("one").await;
    let mut body = bodies::node_pool("Upper_case");
    body["autoscaling"] = json!({"min_replica": 3, "max_replica": 1});
    body["azure_node_pool"]["vm_size"] = json!("Standard_Imaginary");
    body["azure_node_pool"]["os_disk"]["storage_account_type"] = json!("Tape");
    body["availability_zone"] = json!("9");
    body["subnet"] = json!("/x");
    body["labels"] = json!({"-bad": "v"});
    body["taints"] = json!([{"key": "k", "value": "v"}]);
    body["version"]["id"] = json!("openshift-v4.21.0");
    let fields = fixture.post(&format!("{href}/node_pools"), body).await.fields(400);
    assert_eq!(
        fields,
        [
            "availability_zone",
            "azure_node_pool.os_disk.storage_account_type",
            "azure_node_pool.vm_size",
            "id",
            "labels",
            "replicas",
            "subnet",
            "taints[0].effect",
            "version.id",
        ]
    );
}

#[tokio::test]
async fn a_pool_of_the_same_name_conflicts_and_a_deletion_is_accepted_in_every_state() {
    let fixture = Fixture::with_shard().await;
    let (href, pool) = ready_pool(&fixture).await;
    fixture.post(&format!("{href}/node_pools"), bodies::node_pool("np1")).await.expect(409);
    fixture.set_pool_state(&pool, NodePoolStateValue::Error).await;
    fixture.delete(&pool).await.expect(202);
    fixture.delete(&pool).await.expect(202);
    let status = fixture.get(&format!("{pool}/status")).await.expect(200);
    assert_eq!(status["state"]["value"], "uninstalling");
    fixture.patch(&pool, json!({"replicas": 1})).await.expect(400);
}

#[tokio::test]
async fn a_cluster_has_one_external_auth_whose_claims_are_replaced() {
    let fixture = Fixture::with_shard().await;
    let (href, _) = ready_pool(&fixture).await;
    let auths = format!("{href}/external_auth_config/external_auths");
    let mut body = bodies::external_auth("e");
    body["clients"][0]["secret"] = json!("hunter2");
    let created = fixture.post(&auths, body).await;
    assert!(!created.text.contains("hunter2"));
    assert_eq!(created.expect(202)["status"]["state"]["value"], "ready");
    fixture.post(&auths, bodies::external_auth("other")).await.expect(409);
    fixture.post(&auths, bodies::external_auth("e")).await.expect(409);
    let without_groups =
        json!({"claim": {"mappings": {"username": {"claim": "email", "prefix": "", "prefix_policy": ""}}}});
    let changed = fixture.patch(&format!("{auths}/e"), without_groups).await.expect(202);
    assert!(changed["claim"]["mappings"].get("groups").is_none(), "absent groups are removed");
    assert_eq!(changed["claim"]["mappings"]["username"]["prefix_policy"], "");
    let bad = json!({"issuer": {"url": "http://x", "audiences": ["b"]}});
    let fields = fixture.patch(&format!("{auths}/e"), bad).await.fields(400);
    assert_eq!(fields, ["clients[0].id", "issuer.url"]);
    assert_eq!(fixture.get(&auths).await.expect(200)["total"], 1);
    fixture.delete(&format!("{auths}/e")).await.expect(202);
}

#[tokio::test]
async fn two_external_auths_at_once_do_not_both_succeed() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.ready_cluster("one").await;
    let auths = format!("{href}/external_auth_config/external_auths");
    let (one, other) = tokio::join!(
        fixture.post(&auths, bodies::external_auth("a")),
        fixture.post(&auths, bodies::external_auth("b"))
    );
    let mut statuses = [one.status.as_u16(), other.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [202, 409]);
}

#[tokio::test]
async fn pools_are_created_while_the_cluster_installs() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.cluster("one").await;
    fixture.set_state(&href, ClusterState::Installing).await;
    fixture.post(&format!("{href}/node_pools"), bodies::node_pool("np1")).await.expect(202);
}
