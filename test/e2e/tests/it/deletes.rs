//! Deleting.

use anyhow::Result;
use aro_fixtures::{external_auth_body, node_pool_body, wait};

use crate::support::{GA, at, put_cluster, put_node_pool, registered, with_ready_cluster};

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_with_more_children_than_one_batch_holds_is_deleted_with_all_of_them() -> Result<()> {
    let (stack, names) = registered().await?;
    let arm = stack.arm();
    put_cluster(arm, &names, "c1").await?;
    for index in 0..70 {
        put_node_pool(arm, &names, "c1", &format!("np{index}")).await?;
    }
    arm.put(&at(&names.external_auth("c1", "auth"), GA), &external_auth_body(GA)).await?.expect(201)?;
    arm.delete(&at(&names.cluster("c1"), GA)).await?.expect(202)?;
    wait::until("every child to be deleting", || async {
        let list = format!("{}&$top=100", at(&format!("{}/nodePools", names.cluster("c1")), GA));
        let listed = arm.get(&list).await?.expect(200)?.json();
        let items = listed["value"].as_array().cloned().unwrap_or_default();
        anyhow::ensure!(items.len() == 70);
        Ok(items.iter().all(|item| item["properties"]["provisioningState"] == "Deleting").then_some(()))
    })
    .await?;
    let blocked = arm.put(&at(&names.node_pool("c1", "late"), GA), &node_pool_body(GA)).await?.expect(409)?;
    assert_eq!(
        blocked.json()["error"]["message"],
        "Cannot create resource while parent resource is deleting"
    );
    stack.backend()?.complete_all().await?;
    arm.get(&at(&names.cluster("c1"), GA)).await?.expect(404)?;
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_just_deleted_can_be_created_again_at_once() -> Result<()> {
    let (stack, names) = with_ready_cluster().await?;
    let arm = stack.arm();
    for _ in 0..3 {
        arm.delete(&at(&names.cluster("c1"), GA)).await?.expect(202)?;
        stack.backend()?.complete_all().await?;
        arm.get(&at(&names.cluster("c1"), GA)).await?.expect(404)?;
        put_cluster(arm, &names, "c1").await?;
        stack.backend()?.complete_all().await?;
    }
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_node_pool_stays_even_when_two_are_deleted_at_once() -> Result<()> {
    let (stack, names) = with_ready_cluster().await?;
    let arm = stack.arm();
    put_node_pool(arm, &names, "c1", "a").await?;
    stack.backend()?.complete_all().await?;
    let reply = arm.delete(&at(&names.node_pool("c1", "a"), GA)).await?.expect(400)?;
    assert_eq!(
        reply.json()["error"]["message"],
        "Forbidden: The last node pool can not be deleted from a cluster."
    );
    assert_eq!(reply.json()["error"]["target"], "name");
    for round in 0..10 {
        let name = format!("b{round}");
        put_node_pool(arm, &names, "c1", &name).await?;
        stack.backend()?.complete_all().await?;
        let survivor = if round == 0 { "a".to_owned() } else { format!("s{}", round - 1) };
        let (one_path, two_path) =
            (at(&names.node_pool("c1", &survivor), GA), at(&names.node_pool("c1", &name), GA));
        let (one, two) = tokio::join!(arm.delete(&one_path), arm.delete(&two_path));
        let mut statuses = [one?.status.as_u16(), two?.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [202, 400], "exactly one of the two goes");
        // Start the next round with one known pool.
        put_node_pool(arm, &names, "c1", &format!("s{round}")).await?;
        stack.backend()?.complete_all().await?;
        for leftover in [&survivor, &name] {
            let reply = arm.delete(&at(&names.node_pool("c1", leftover), GA)).await?;
            assert!(matches!(reply.status.as_u16(), 202 | 204));
        }
        stack.backend()?.complete_all().await?;
    }
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_never_slips_into_a_cluster_that_begins_to_go() -> Result<()> {
    let (stack, names) = registered().await?;
    let arm = stack.arm();
    for round in 0..10 {
        let cluster = format!("c{round}");
        put_cluster(arm, &names, &cluster).await?;
        let cluster_path = at(&names.cluster(&cluster), GA);
        let pool_path = at(&names.node_pool(&cluster, "np"), GA);
        let pool = node_pool_body(GA);
        let (deleted, made) = tokio::join!(arm.delete(&cluster_path), arm.put(&pool_path, &pool));
        deleted?.expect(202)?;
        if made?.status.as_u16() == 201 {
            let shown = arm.get(&pool_path).await?.expect(200)?.json();
            assert_eq!(shown["properties"]["provisioningState"], "Deleting", "it came first and goes along");
        } else {
            arm.get(&pool_path).await?.expect(404)?;
        }
    }
    stack.stop().await
}
