//! Operations: their status, their result, their visibility.

use anyhow::Result;
use aro_base::SignedDuration;

use crate::support::{Fixture, at, path_of};

#[tokio::test]
async fn an_operation_is_followed_from_its_start_to_its_result() -> Result<()> {
    let fixture = Fixture::start().await?;
    let created = fixture.put_cluster("c1").await?;
    let status = path_of(created.header("azure-asyncoperation").unwrap_or_default());
    let result = status.replace("hcpOperationStatuses", "hcpOperationResults");

    let running = fixture.arm.get(&status).await?.expect(200)?;
    assert_eq!(
        (running.json()["status"].as_str(), running.header("retry-after")),
        (Some("Accepted"), Some("1"))
    );
    let pending = fixture.arm.get(&result).await?.expect(202)?;
    assert_eq!(pending.header("location").map(path_of), Some(result.clone()));
    fixture.clock.advance(SignedDuration::from_mins(2));
    assert_eq!(fixture.arm.get(&status).await?.header("retry-after"), Some("5"), "it takes longer");

    fixture.backend.complete_all().await?;
    let ended = fixture.arm.get(&status).await?.expect(200)?;
    assert_eq!((ended.json()["status"].as_str(), ended.header("retry-after")), (Some("Succeeded"), None));
    let resource = fixture.arm.get(&result).await?.expect(201)?.json();
    assert_eq!(resource["properties"]["provisioningState"], "Succeeded");
    Ok(())
}

#[tokio::test]
async fn an_operation_of_another_caller_is_indistinguishable_from_none() -> Result<()> {
    let fixture = Fixture::start().await?;
    let ann = fixture.arm.with("x-ms-client-object-id", "ann");
    let body = aro_fixtures::cluster_body(&fixture.names, "c1", crate::support::GA);
    let created = ann.put(&at(&fixture.names.cluster("c1")), &body).await?.expect(201)?;
    let status = path_of(created.header("azure-asyncoperation").unwrap_or_default());
    ann.get(&status).await?.expect(200)?;
    let hidden = fixture.arm.with("x-ms-client-object-id", "bob").get(&status).await?.expect(404)?;
    let (known, _) = status.split_once("hcpOperationStatuses/").unwrap_or_default();
    let none = ann.get(&at(&format!("{known}hcpOperationStatuses/none"))).await?.expect(404)?;
    assert_eq!((hidden.body.len(), none.body.len()), (0, 0));
    Ok(())
}

#[tokio::test]
async fn a_deletion_supersedes_the_operation_under_way() -> Result<()> {
    let fixture = Fixture::start().await?;
    let created = fixture.put_cluster("c1").await?;
    fixture.arm.delete(&at(&fixture.names.cluster("c1"))).await?.expect(202)?;
    let status = path_of(created.header("azure-asyncoperation").unwrap_or_default());
    let canceled = fixture.arm.get(&status).await?.expect(200)?.json();
    assert_eq!(
        (canceled["status"].as_str(), canceled["error"]["code"].as_str()),
        (Some("Canceled"), Some("Canceled"))
    );
    let result = status.replace("hcpOperationStatuses", "hcpOperationResults");
    assert_eq!(fixture.arm.get(&result).await?.expect(409)?.code(), "Canceled");
    Ok(())
}
