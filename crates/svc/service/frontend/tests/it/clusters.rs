//! Create, read, list, change and delete clusters.

use anyhow::Result;
use aro_fixtures::cluster_body;
use serde_json::json;

use crate::support::{Fixture, GA, at, path_of};

#[tokio::test]
async fn a_created_cluster_is_accepted_and_can_be_read_in_every_version() -> Result<()> {
    let fixture = Fixture::start().await?;
    let created = fixture.put_cluster("My-Cluster").await?;
    assert_eq!(created.json()["properties"]["provisioningState"], "Accepted");
    assert!(created.header("azure-asyncoperation").is_some() && created.header("location").is_none());
    assert_eq!(created.header("retry-after"), Some("1"));
    let path = fixture.names.cluster("My-Cluster");
    let read = fixture.arm.get(&at(&path.to_lowercase())).await?.expect(200)?;
    assert_eq!(read.json(), created.json());
    assert_eq!(read.header("etag"), created.header("etag"));
    let oldest =
        fixture.arm.get(&format!("{path}?api-version=2024-06-10-preview")).await?.expect(200)?.json();
    assert_eq!(oldest["properties"]["platform"].get("vnetIntegrationSubnetId"), None, "{oldest}");
    Ok(())
}

#[tokio::test]
async fn a_read_with_the_current_etag_has_no_body() -> Result<()> {
    let fixture = Fixture::with_cluster("c1").await?;
    let path = at(&fixture.names.cluster("c1"));
    let etag = fixture.arm.get(&path).await?.expect(200)?.header("etag").unwrap_or_default().to_owned();
    let unmodified = fixture.arm.with("if-none-match", &etag).get(&path).await?.expect(304)?;
    assert!(unmodified.body.is_empty());
    fixture.arm.with("if-none-match", "\"other\"").get(&path).await?.expect(200)?;
    Ok(())
}

#[tokio::test]
async fn clusters_are_listed_by_group_and_by_subscription_in_pages() -> Result<()> {
    let fixture = Fixture::start().await?;
    for name in ["c1", "c2", "c3"] {
        fixture.put_cluster(name).await?;
    }
    let group = fixture.names.cluster("x").replace("/x", "");
    let subscription = format!(
        "/subscriptions/{}/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters",
        fixture.names.subscription
    );
    for list in [group, subscription] {
        let first = fixture.arm.get(&format!("{}&$top=2", at(&list))).await?.expect(200)?.json();
        assert_eq!(first["value"].as_array().map(Vec::len), Some(2), "{list}");
        let next = path_of(first["nextLink"].as_str().unwrap_or_default());
        let last = fixture.arm.get(&next).await?.expect(200)?.json();
        assert_eq!((&last["value"][0]["name"], last.get("nextLink")), (&json!("c3"), None), "{list}");
    }
    Ok(())
}

#[tokio::test]
async fn a_patch_changes_one_member_and_a_put_replaces_the_rest() -> Result<()> {
    let fixture = Fixture::with_cluster("c1").await?;
    let path = at(&fixture.names.cluster("c1"));
    let patch = json!({"properties": {"nodeDrainTimeoutMinutes": 7}});
    let accepted = fixture.arm.patch(&path, &patch).await?.expect(202)?;
    assert!(accepted.header("location").is_some() && accepted.header("azure-asyncoperation").is_some());
    fixture.backend.complete_all().await?;
    let patched = fixture.arm.get(&path).await?.expect(200)?.json();
    assert_eq!(patched["properties"]["nodeDrainTimeoutMinutes"], 7);
    assert_eq!(patched["tags"], json!({"team": "blue"}), "the rest is as it was");

    let body = cluster_body(&fixture.names, "c1", GA);
    let replaced = fixture.arm.put(&path, &body).await?.expect(200)?.json();
    assert_eq!(replaced["properties"]["nodeDrainTimeoutMinutes"], 0, "omitted: back to the default");
    Ok(())
}

#[tokio::test]
async fn a_deleted_cluster_takes_its_children_along() -> Result<()> {
    let fixture = Fixture::with_cluster("c1").await?;
    fixture.put_node_pool("c1", "np1").await?;
    let (cluster, pool) = (at(&fixture.names.cluster("c1")), at(&fixture.names.node_pool("c1", "np1")));
    let accepted = fixture.arm.delete(&cluster).await?.expect(202)?;
    assert!(accepted.header("location").is_some());
    for path in [&cluster, &pool] {
        let shown = fixture.arm.get(path).await?.expect(200)?.json();
        assert_eq!(shown["properties"]["provisioningState"], "Deleting", "{path}");
    }
    fixture.backend.complete_all().await?;
    fixture.arm.get(&cluster).await?.expect(404)?;
    fixture.arm.get(&pool).await?.expect(404)?;
    fixture.arm.delete(&cluster).await?.expect(204)?;
    Ok(())
}
