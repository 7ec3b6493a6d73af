//! ARM's notifications about subscriptions.

use anyhow::Result;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::resource::Resource as _;
use aro_arm::operation::ProvisioningState;
use aro_fixtures::{Names, subscription_body, wait};
use aro_rp_store::{Cascade, Documents, ListOf};
use aro_store::UnreadableDocuments;
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
    // A deleted subscription cannot read; the store can be read.
    let documents = Documents::new(stack.store()?, UnreadableDocuments::default());
    wait::until("every cluster and its children to be deleting", || async {
        let clusters = ListOf::<Cluster>::in_subscription(&names.subscription);
        let clusters = documents.all(&clusters).await?.complete()?;
        anyhow::ensure!(clusters.len() == 60);
        let pools = ListOf::<NodePool>::in_subscription(&names.subscription);
        let pools = documents.all(&pools).await?.complete()?;
        let clusters = clusters.iter().map(|stored| stored.value.provisioning_state());
        let mut states = clusters.chain(pools.iter().map(|stored| stored.value.provisioning_state()));
        Ok(states.all(|state| state == ProvisioningState::Deleting).then_some(()))
    })
    .await?;
    wait::until("the cascade to be finished", || async {
        let cascades = documents.all(&ListOf::<Cascade>::everywhere()).await?;
        Ok(cascades.complete()?.is_empty().then_some(()))
    })
    .await?;
    let reply = stack.arm().get(&at(&names.cluster("c0"), GA)).await?.expect(400)?;
    assert_eq!(reply.code(), "InvalidSubscriptionState");
    stack.stop().await
}
