//! What clients poll.

use anyhow::{Context, Result};
use aro_fixtures::Reply;

use crate::support::{GA, at, path_of, put_cluster, registered, with_ready_cluster};

fn status_of(reply: &Reply) -> Result<String> {
    Ok(path_of(reply.header("azure-asyncoperation").context("a status link")?)?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_accepted_write_and_every_poll_says_when_to_come_back() -> Result<()> {
    let (stack, names) = registered().await?;
    let arm = stack.arm();
    let created = put_cluster(arm, &names, "c1").await?;
    assert!(created.header("retry-after").is_some());
    let polled = arm.get(&status_of(&created)?).await?.expect(200)?;
    assert!(polled.header("retry-after").is_some());
    let result = status_of(&created)?.replace("hcpOperationStatuses", "hcpOperationResults");
    let pending = arm.get(&result).await?.expect(202)?;
    assert!(pending.header("retry-after").is_some() && pending.header("location").is_some());
    stack.backend()?.complete_all().await?;
    assert!(
        arm.get(&status_of(&created)?).await?.header("retry-after").is_none(),
        "there is nothing to wait for"
    );
    arm.get(&result).await?.expect(201)?;
    let deleted = arm.delete(&at(&names.cluster("c1"), GA)).await?.expect(202)?;
    assert!(deleted.header("retry-after").is_some());
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_seen_only_by_whoever_asked_for_it() -> Result<()> {
    let (stack, names) = registered().await?;
    let ann = stack.arm().with("x-ms-client-object-id", "ann").with("x-ms-home-tenant-id", "tenant-a");
    let created = put_cluster(&ann, &names, "c1").await?;
    let status = status_of(&created)?;
    ann.get(&status).await?.expect(200)?;
    ann.with("x-ms-client-object-id", "ANN").get(&status).await?.expect(200)?;
    for stranger in [
        ann.with("x-ms-client-object-id", "bob"),
        ann.with("x-ms-home-tenant-id", "tenant-b"),
        stack.arm().clone(),
    ] {
        let hidden = stranger.get(&status).await?.expect(404)?;
        assert!(hidden.body.is_empty());
        let result = status.replace("hcpOperationStatuses", "hcpOperationResults");
        assert_eq!(stranger.get(&result).await?.expect(404)?.code(), "ResourceNotFound");
    }
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_cancels_what_runs_and_the_cancelled_operation_says_so() -> Result<()> {
    let (stack, names) = registered().await?;
    let arm = stack.arm();
    let created = put_cluster(arm, &names, "c1").await?;
    arm.delete(&at(&names.cluster("c1"), GA)).await?.expect(202)?;
    let cancelled = arm.get(&status_of(&created)?).await?.expect(200)?.json();
    assert_eq!(cancelled["status"], "Canceled");
    assert_eq!(cancelled["error"]["message"], "This operation was superseded by another");
    let result = status_of(&created)?.replace("hcpOperationStatuses", "hcpOperationResults");
    let reply = arm.get(&result).await?.expect(409)?;
    assert_eq!(reply.code(), "Canceled", "a failed operation's result says why, not a bare 500");
    let again = arm.delete(&at(&names.cluster("c1"), GA)).await?.expect(409)?;
    assert_eq!(again.json()["error"]["message"], "Resource is already deleting");
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_built_on_the_address_the_client_used() -> Result<()> {
    let (stack, names) = with_ready_cluster().await?;
    let referer = format!("https://management.azure.com{}?api-version={GA}&x=1", names.cluster("c1"));
    let arm =
        stack.arm().with("referer", &referer).with("azure-asyncnotificationuri", "https://arm.example.com/n");
    let deleted = arm.delete(&at(&names.cluster("c1"), GA)).await?.expect(202)?;
    let link = deleted.header("azure-asyncoperation").context("a link")?;
    assert!(
        link.starts_with("https://management.azure.com/subscriptions/") && link.contains("x=1"),
        "{link}"
    );
    assert_eq!(deleted.header("azure-asyncnotification"), Some("Enabled"));
    // ARM signs links with parameters of its own; they come back and are ignored.
    let signed = format!("{}&t=1&c=a&s=b&h=c", path_of(link)?);
    stack.arm().get(&signed).await?.expect(200)?;
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn request_ids_go_out_and_the_clients_own_is_echoed_when_asked() -> Result<()> {
    let (stack, names) = registered().await?;
    let path = at(&names.cluster("c1"), GA);
    let arm = stack.arm().with("x-ms-client-request-id", "mine");
    let reply = arm.get(&path).await?;
    assert!(reply.header("x-ms-request-id").is_some_and(|id| uuid::Uuid::try_parse(id).is_ok()));
    assert!(reply.header("x-ms-client-request-id").is_none());
    let reply = arm.with("x-ms-return-client-request-id", "true").get(&path).await?;
    assert_eq!(reply.header("x-ms-client-request-id"), Some("mine"));
    stack.stop().await
}
