//! The fragments of reasons that the resource provider looks for.

use aro_ocm::{ClusterState, NodePoolStateValue};
use serde_json::json;

use super::bodies;
use super::fixture::{ARO, Fixture};

#[track_caller]
fn has(reason: &str, fragments: &[&str]) {
    for fragment in fragments {
        assert!(reason.contains(fragment), "`{fragment}` is missing in `{reason}`");
    }
}

#[tokio::test]
async fn changes_of_what_is_not_updatable_are_refused_in_the_expected_words() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.cluster("one").await;
    let (pool, auth) =
        (format!("{href}/node_pools/np1"), format!("{href}/external_auth_config/external_auths/e"));
    fixture.post(&format!("{href}/node_pools"), bodies::node_pool("np1")).await.expect(202);
    let auths = format!("{href}/external_auth_config/external_auths");
    fixture.post(&auths, bodies::external_auth("e")).await.expect(202);
    for state in
        [ClusterState::Validating, ClusterState::Pending, ClusterState::Installing, ClusterState::Error]
    {
        fixture.set_state(&href, state).await;
        let reason = fixture.patch(&href, json!({"properties": {}})).await.reason(400);
        has(&reason, &["Cluster", "is in state", state.as_str(), "can't update"]);
        let reason = fixture.patch(&pool, json!({"replicas": 3})).await.reason(400);
        has(
            &reason,
            &[
                "Node pools can only be",
                "on clusters in an updatable state",
                "cluster requested is in",
                "state.",
            ],
        );
        let reason = fixture.patch(&auth, json!({"clients": []})).await.reason(400);
        has(
            &reason,
            &[
                "ExternalAuths can only be updated on clusters in an updatable state",
                "cluster requested is in",
                "state.",
            ],
        );
    }
    fixture.set_state(&href, ClusterState::Ready).await;
    let reason = fixture.patch(&pool, json!({"replicas": 3})).await.reason(400);
    has(&reason, &["Node pool can only be updated in", "the node pool requested is in", "state."]);
}

#[tokio::test]
async fn a_console_client_needs_a_ready_node_pool() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.ready_cluster("one").await;
    let auths = format!("{href}/external_auth_config/external_auths");
    fixture.post(&auths, bodies::external_auth("e")).await.expect(202);
    let auth = format!("{auths}/e");
    let reason = fixture.patch(&auth, bodies::external_auth("e")).await.reason(400);
    has(
        &reason,
        &[
            "console clients cannot be configured without a ready node pool",
            "Please ensure at least one node pool is in 'ready' state before configuring console authentication",
        ],
    );
    fixture.post(&format!("{href}/node_pools"), bodies::node_pool("np1")).await.expect(202);
    fixture.set_pool_state(&format!("{href}/node_pools/np1"), NodePoolStateValue::Ready).await;
    fixture.patch(&auth, bodies::external_auth("e")).await.expect(202);
}

#[tokio::test]
async fn children_of_a_cluster_that_is_being_deleted_are_refused_in_the_expected_words() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.cluster("one").await;
    fixture.post(&format!("{href}/node_pools"), bodies::node_pool("np1")).await.expect(202);
    let auths = format!("{href}/external_auth_config/external_auths");
    fixture.post(&auths, bodies::external_auth("e")).await.expect(202);
    fixture.delete(&href).await.expect(202);
    let reason = fixture.delete(&format!("{href}/node_pools/np1")).await.reason(400);
    has(
        &reason,
        &[
            "Cannot delete node pool: its parent cluster must be in a deletable state",
            "Parent cluster state: 'uninstalling'",
        ],
    );
    let reason = fixture.delete(&format!("{auths}/e")).await.reason(400);
    has(
        &reason,
        &[
            "Cannot delete ExternalAuth: its parent cluster must be in deletable state",
            "Parent cluster state: 'uninstalling'",
        ],
    );
    let reason = fixture.patch(&href, json!({"properties": {}})).await.reason(400);
    has(&reason, &["Cluster", "is in state", "can't update"]);
}

#[tokio::test]
async fn absent_objects_are_named_in_the_reason() {
    let fixture = Fixture::with_shard().await;
    let href = fixture.cluster("one").await;
    assert_eq!(fixture.get(&format!("{href}/node_pools/np1")).await.reason(404), "Node pool 'np1' not found");
    assert_eq!(
        fixture.get(&format!("{ARO}/clusters/none/status")).await.reason(404),
        "Cluster 'none' not found"
    );
    let shard = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";
    fixture.get(&format!("{ARO}/provision_shards/{shard}")).await.expect(404);
}
