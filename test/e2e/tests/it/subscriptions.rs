//! ARM's notifications about subscriptions.

use anyhow::Result;
use aro_fixtures::{Names, subscription_body, wait};
use serde_json::{Value, json};

use crate::support::{GA, at, put_cluster, put_node_pool, registered};

#[tokio::test(flavor = "multi_thread")]
async fn subscription_answers_hold_what_was_notified_and_no_storage_metadata() -> Result<()> {
    let (stack, names) = registered().await?;
    let path = format!("/subscriptions/{}?api-version=2.0", names.subscription);
    let shown: Value = stack.arm().get(&path).await?.expect(200)?.json();
    assert_eq!(shown, subscription_body("Registered"));
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_notification_is_refused_with_all_its_problems() -> Result<()> {
    let (stack, names) = registered().await?;
    let path = format!("/subscriptions/{}?api-version=2.0", names.subscription);
    let reply = stack.arm().put(&path, &json!({"state": "Gone"})).await?.expect(400)?;
    assert_eq!(reply.json()["error"]["details"].as_array().map(Vec::len), Some(2));
    stack.arm().put("/subscriptions/x", &subscription_body("Registered")).await?.expect(400)?;
    let unknown = format!("/subscriptions/{}", Names::default().subscription);
    assert_eq!(stack.arm().get(&unknown).await?.expect(404)?.code(), "ResourceNotFound");
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_subscription_deletes_more_clusters_than_one_batch_holds() -> Result<()> {
    let (stack, names) = registered().await?;
    let clusters: Vec<String> = (0..60).map(|index| format!("c{index}")).collect();
    for name in &clusters {
        put_cluster(stack.arm(), &names, name).await?;
    }
    put_node_pool(stack.arm(), &names, "c0", "np").await?;
    let path = format!("/subscriptions/{}?api-version=2.0", names.subscription);
    stack.arm().put(&path, &subscription_body("Deleted")).await?.expect(200)?;
    // A deleted subscription cannot look; the store tells.
    let documents = aro_rp_store::Documents::new(stack.store()?);
    wait::until("every cluster and its children to be deleting", || async {
        let all =
            aro_rp_store::ListOf::<Value>::in_subscription(&names.subscription, aro_arm::hcp::CLUSTER_TYPE);
        let pools =
            aro_rp_store::ListOf::<Value>::in_subscription(&names.subscription, aro_arm::hcp::NODE_POOL_TYPE);
        let mut found = documents.all(&all).await?;
        anyhow::ensure!(found.len() == 60);
        found.extend(documents.all(&pools).await?);
        let deleting = |stored: &aro_rp_store::Stored<Value>| {
            stored.value["serviceProviderProperties"]["provisioningState"] == "Deleting"
        };
        Ok(found.iter().all(deleting).then_some(()))
    })
    .await?;
    wait::until("the cascade to be finished", || async {
        let cascades = aro_rp_store::ListOf::<Value>::everywhere(aro_rp_store::CASCADE_TYPE);
        Ok(documents.all(&cascades).await?.is_empty().then_some(()))
    })
    .await?;
    let reply = stack.arm().get(&at(&names.cluster("c0"), GA)).await?.expect(400)?;
    assert_eq!(reply.code(), "InvalidSubscriptionState");
    stack.stop().await
}
