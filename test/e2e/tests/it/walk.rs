//! The walk of a client through one cluster's life, in every api-version.

use anyhow::{Context, Result};
use aro_arm::hcp::version::ApiVersion;
use aro_fixtures::{cluster_body, external_auth_body, node_pool_body};
use serde_json::json;

use crate::support::{at, path_of, registered};

async fn walk(version: ApiVersion) -> Result<()> {
    let (stack, names) = registered().await?;
    let (arm, backend) = (stack.arm(), stack.backend()?);
    let cluster = names.cluster("Walk-1");

    let created =
        arm.put(&at(&cluster, version), &cluster_body(&names, "Walk-1", version)).await?.expect(201)?;
    assert_eq!(created.json()["properties"]["provisioningState"], "Accepted");
    assert_eq!(created.json()["id"], cluster.as_str());
    assert_eq!(created.header("content-type"), Some("application/json"));
    assert_eq!(created.header("retry-after"), Some("1"));
    assert!(created.header("location").is_none(), "PUT answers have no Location");
    let status = path_of(created.header("azure-asyncoperation").context("a link to follow")?)?.to_owned();
    assert_eq!(arm.get(&status).await?.expect(200)?.json()["status"], "Accepted");

    let shown = arm.get(&at(&cluster, version)).await?.expect(200)?;
    assert_eq!(shown.json()["properties"]["version"]["id"], "4.22");
    assert_eq!(shown.body, created.body, "what was answered is what is stored");

    // A child is accepted while its parent still is: it waits for it.
    let node_pool = names.node_pool("Walk-1", "np-1");
    let made = arm.put(&at(&node_pool, version), &node_pool_body(version)).await?.expect(201)?;
    let subnet = &made.json()["properties"]["platform"]["subnetId"];
    assert_eq!(
        subnet,
        &shown.json()["properties"]["platform"]["subnetId"],
        "the cluster's subnet by default"
    );
    let external_auth = names.external_auth("Walk-1", "auth-1");
    arm.put(&at(&external_auth, version), &external_auth_body(version)).await?.expect(201)?;

    let patch = json!({"properties": {"nodeDrainTimeoutMinutes": 7}});
    let refused = arm.patch(&at(&cluster, version), &patch).await?.expect(409)?;
    assert_eq!(refused.json()["error"]["message"], "Cannot update resource while resource is \"Accepted\"");

    backend.complete_all().await?;
    assert_eq!(arm.get(&status).await?.expect(200)?.json()["status"], "Succeeded");
    let changed = arm.patch(&at(&cluster, version), &patch).await?.expect(202)?;
    assert!(changed.header("location").is_some() && changed.header("retry-after").is_some());
    backend.complete_all().await?;
    let result = path_of(changed.header("location").context("a result to read")?)?.to_owned();
    assert_eq!(arm.get(&result).await?.expect(200)?.json()["properties"]["nodeDrainTimeoutMinutes"], 7);

    // A read-modify-write of the whole object changes nothing but what was changed.
    let mut whole = arm.get(&at(&cluster, version)).await?.expect(200)?.json();
    whole["properties"]["nodeDrainTimeoutMinutes"] = json!(9);
    let replaced = arm.put(&at(&cluster, version), &whole).await?.expect(200)?;
    assert_eq!(replaced.json()["properties"]["nodeDrainTimeoutMinutes"], 9);
    backend.complete_all().await?;
    let after = arm.get(&at(&cluster, version)).await?.expect(200)?.json();
    assert_eq!(after["properties"], whole["properties"]);

    for (path, patch) in [
        (&node_pool, json!({"properties": {"replicas": 3}})),
        (&external_auth, json!({"properties": {"claim": {"mappings": {"username": {"claim": "sub"}}}}})),
    ] {
        arm.patch(&at(path, version), &patch).await?.expect(202)?;
    }
    backend.complete_all().await?;
    assert_eq!(arm.get(&at(&node_pool, version)).await?.expect(200)?.json()["properties"]["replicas"], 3);

    let listed = arm.get(&at(&format!("{cluster}/nodePools"), version)).await?.expect(200)?.json();
    assert_eq!(listed["value"].as_array().map(Vec::len), Some(1));

    let deleted = arm.delete(&at(&cluster, version)).await?.expect(202)?;
    assert!(deleted.body.is_empty() && deleted.header("content-length") == Some("0"));
    assert_eq!(arm.get(&at(&cluster, version)).await?.json()["properties"]["provisioningState"], "Deleting");
    assert_eq!(
        arm.get(&at(&node_pool, version)).await?.json()["properties"]["provisioningState"],
        "Deleting"
    );
    backend.complete_all().await?;
    arm.get(&at(&cluster, version)).await?.expect(404)?;
    let result = path_of(deleted.header("location").context("a result to read")?)?.to_owned();
    arm.get(&result).await?.expect(204)?;
    arm.delete(&at(&cluster, version)).await?.expect(204)?;
    stack.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_lives_and_dies_in_2024_06_10_preview() -> Result<()> {
    walk(ApiVersion::V2024_06_10Preview).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_lives_and_dies_in_2025_12_23_preview() -> Result<()> {
    walk(ApiVersion::V2025_12_23Preview).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_lives_and_dies_in_2026_06_30_preview() -> Result<()> {
    walk(ApiVersion::V2026_06_30Preview).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_lives_and_dies_in_2026_09_01_preview() -> Result<()> {
    walk(ApiVersion::V2026_09_01Preview).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_lives_and_dies_in_2026_10_01() -> Result<()> {
    walk(ApiVersion::V2026_10_01).await
}
